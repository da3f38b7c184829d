"""What is served and what is not, with pages and without: types, caches, policies, notes, paths."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import svc_docs.assets
from falcon.testing import Result, TestClient
from svc_docs.assets import NOTE_PLACE

from svc_testing import Server, load_with_testing_auth, serve_in_process, start_server, used_by

PAGE = b"<!doctype html><title>%s</title>" + NOTE_PLACE + b"<h1>%s</h1>"
FILES = {
    "index.html": PAGE.replace(b"%s", b"First"),
    "http/index.html": PAGE.replace(b"%s", b"HTTP"),
    "http/metrics.html": PAGE.replace(b"%s", b"Metrics"),
    "http/metrics.md": b"# Metrics\n",
    "http/docs.html": PAGE.replace(b"%s", b"Docs"),
    "_static/furo.css": b"body {}",
    "_static/furo.js": b"'use strict'",
    "_static/file.png": b"\x89PNG",
    "objects.inv": b"\x00",
}
TYPES = {
    "html": "text/html; charset=utf-8",
    "md": "text/plain; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "inv": "application/octet-stream",
}
PLUGINS = {"http/metrics.html": "metrics", "http/docs.html": "docs"}
OUTSIDE = [
    "secret.txt",
    "../secret.txt",
    "manifest.json",
    "_static",
    "_static/",
    "http/none.html",
    "index.html/",
]


def write_pages(directory: Path, files: dict[str, bytes]) -> Path:
    pages = directory / "pages"
    listed = {}
    for name, content in files.items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_bytes(content)
        listed[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        listed[name] |= {"plugin": PLUGINS[name]} if name in PLUGINS else {}
    (directory / "secret.txt").write_text("secret")
    (pages / "secret.txt").write_text("secret")
    manifest = {
        "sources": "",
        "scripts": ["sha256-script"],
        "styles": ["sha256-style"],
        "style_attributes": ["sha256-attribute"],
        "sections": [
            {
                "title": "Use",
                "pages": [
                    {"name": "http/index", "title": "HTTP", "summary": "All routes"},
                    {"name": "http/metrics", "title": "Metrics", "summary": "Text", "plugin": "metrics"},
                ],
            },
            {"title": "Project", "pages": []},
        ],
        "files": listed,
    }
    (pages / "new.json").write_text(json.dumps(manifest))
    (pages / "new.json").rename(pages / "manifest.json")
    return pages


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Nobody signs in; there are pages in ``tmp_path`` once a test has written some."""
    monkeypatch.setattr(svc_docs.assets, "PAGES", tmp_path / "pages")
    with serve_in_process(tmp_path / "x.svcdb", load_with_testing_auth(*used_by("docs"))) as (app, _, mode):
        mode.identity = None
        yield TestClient(app)


@pytest.fixture
def pages(client: TestClient, tmp_path: Path) -> Path:
    return write_pages(tmp_path, FILES)


def policy_of(answer: Result) -> dict[str, str]:
    parts = [part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";")]
    return {name: rest for name, _, rest in parts}


def test_the_directory_has_its_slash(client: TestClient) -> None:
    answer = client.simulate_get("/docs")
    assert (answer.status_code, answer.headers["location"]) == (308, "/docs/")


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("name", FILES)
def test_every_file_has_its_bytes_type_and_tag(client: TestClient, name: str) -> None:
    answer = client.simulate_get(f"/docs/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == TYPES[name.rpartition(".")[2]]
    if name != "http/metrics.html":
        assert answer.content == FILES[name]
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["cache-control"] == "no-cache"
    tag = answer.headers["etag"]
    again = client.simulate_get(f"/docs/{name}", headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.simulate_get(f"/docs/{name}", headers={"If-Match": '"other"'}).status_code == 412
    head = client.simulate_head(f"/docs/{name}")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == answer.headers["content-length"]


@pytest.mark.usefixtures("pages")
def test_a_part_of_a_file(client: TestClient) -> None:
    answer = client.simulate_get("/docs/http/metrics.md", headers={"Range": "bytes=2-8"})
    assert (answer.status_code, answer.content) == (206, b"Metrics")
    assert client.simulate_get("/docs/http/metrics.md", headers={"Range": "bytes=99-"}).status_code == 416


@pytest.mark.usefixtures("pages")
def test_directories_are_their_first_pages(client: TestClient) -> None:
    assert client.simulate_get("/docs/").content == FILES["index.html"]
    assert client.simulate_get("/docs/http/").content == FILES["http/index.html"]


@pytest.mark.usefixtures("pages")
def test_the_policy_of_pages_allows_what_was_built_and_nothing_else(client: TestClient) -> None:
    assert policy_of(client.simulate_get("/docs/")) == {
        "default-src": "'none'",
        "script-src": "'self' 'sha256-script'",
        "style-src": "'self' 'sha256-style' 'unsafe-hashes' 'sha256-attribute'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    own = policy_of(client.simulate_get("/docs/api"))
    assert (own["script-src"], own["style-src"], own["form-action"]) == ("'self'", "'self'", "'none'")
    for path in ("/docs/_static/furo.js", "/docs/SKILL.md", "/docs/_api/page.js"):
        assert policy_of(client.simulate_get(path))["default-src"] == "'none'", path
    assert client.simulate_get("/docs/").headers["referrer-policy"] == "no-referrer"


@pytest.mark.usefixtures("pages")
def test_a_page_of_a_plugin_that_is_not_in_use_says_so_on_top(client: TestClient) -> None:
    answer = client.simulate_get("/docs/http/metrics.html")
    note = answer.content.partition(NOTE_PLACE)[2].partition(b"<h1>")[0]
    assert b"<code>metrics</code>" in note
    assert answer.content.replace(note, b"", 1) == FILES["http/metrics.html"]
    assert answer.headers["etag"] != client.simulate_get("/docs/http/docs.html").headers["etag"]
    part = client.simulate_get("/docs/http/metrics.html", headers={"Range": "bytes=-10"})
    assert part.content == answer.content[-10:]
    text = client.simulate_get("/docs/llms.txt").text
    assert "- [Metrics](/docs/http/metrics.md): Text (this server does not use its plugin metrics)\n" in text
    assert "- [HTTP](/docs/http/index.md): All routes\n" in text


@pytest.mark.usefixtures("pages")
def test_the_list_of_pages_has_the_form_of_llms_txt(client: TestClient) -> None:
    answer = client.simulate_get("/docs/llms.txt")
    lines = answer.text.splitlines()
    assert lines[0] == "# svc"
    assert lines[2].startswith("> ")
    assert [line for line in lines if line.startswith("## ")] == ["## This server", "## Use", "## Optional"]
    assert all(
        line.startswith("- [") for line in lines[lines.index("## This server") :] if line and line[0] != "#"
    )
    tag = answer.headers["etag"]
    assert client.simulate_get("/docs/llms.txt", headers={"If-None-Match": tag}).status_code == 304


def test_without_pages_there_is_all_that_needs_no_building(client: TestClient, tmp_path: Path) -> None:
    answer = client.simulate_get("/docs/")
    assert answer.status_code == 200
    assert "plugins/docs/building/build_pages.py" in answer.text
    for linked in ("api", "SKILL.md", "openapi.json", "llms.txt", "_api/page.css"):
        assert f'"{linked}"' in answer.text
        assert client.simulate_get(f"/docs/{linked}").status_code == 200, linked
    assert "were not built" in client.simulate_get("/docs/llms.txt").text
    assert client.simulate_get("/docs/http/index.html").status_code == 404
    # Nothing has to be started again once they are built, or built anew.
    write_pages(tmp_path, FILES)
    assert client.simulate_get("/docs/").content == FILES["index.html"]
    write_pages(tmp_path, {"index.html": b"new"})
    assert client.simulate_get("/docs/").content == b"new"
    assert client.simulate_get("/docs/http/index.html").status_code == 404


def test_the_document_of_operations_has_those_that_are_in_use(client: TestClient) -> None:
    answer = client.simulate_get("/docs/openapi.json")
    assert answer.json == client.simulate_get("/system/openapi.json").json
    assert answer.json["openapi"] == "3.1.0"
    assert {"/docs/", "/docs/{asset}", "/system/health"} <= set(answer.json["paths"])
    tag = answer.headers["etag"]
    assert client.simulate_get("/docs/openapi.json", headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_not_in_the_list_is_not_served(client: TestClient, name: str) -> None:
    answer = client.simulate_get(f"/docs/{name}")
    assert answer.status_code == 404
    assert answer.json["code"] == "NOT_FOUND"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with start_server(tmp_path_factory.mktemp("docs") / "x.svcdb", plugins=("docs",)) as running:
        yield running


def exchange(server: Server, target: bytes) -> bytes:
    """Sends a path as it is; clients would tidy it."""
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % target)
        with connection.makefile("rb") as stream:
            return stream.read()


@pytest.mark.parametrize(
    "target",
    [
        b"/docs/../descriptor.py",
        b"/docs/..",
        b"/docs/%2e%2e/descriptor.py",
        b"/docs/%2e%2e%2fdescriptor.py",
        b"/docs/_api/../../descriptor.py",
        b"/docs/_api%2f..%2fSKILL.md",
        b"/docs/..%5cdescriptor.py",
        b"/docs/%2fetc%2fpasswd",
        b"/docs//etc/passwd",
        b"/docs/SKILL.md%00",
        b"/docs/%00",
        b"/docs/SKILL.md/",
        b"/docs/" + b"a" * 3000,
        b"/docs/" + b"a/" * 1500,
        b"/docs/%F0%9F%92%A9",
    ],
)
def test_no_path_leads_out_over_a_socket(server: Server, target: bytes) -> None:
    head, _, body = exchange(server, target).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    assert json.loads(body)["code"] == "NOT_FOUND"
    assert b"docs" not in body


def test_what_is_no_text_is_refused_as_everywhere(server: Server) -> None:
    for target in (b"/docs/%ff", b"/docs/%zz"):
        head, _, body = exchange(server, target).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["code"] == "INVALID_PATH"


def test_a_real_server_sends_the_large_files_whole(server: Server) -> None:
    for name in ("_swagger-ui/swagger-ui-bundle.js", "_swagger-ui/swagger-ui.css", "SKILL.md", "api"):
        answer = server.get(f"/docs/{name}")
        assert answer.status == 200
        file = Path(svc_docs.assets.__file__).parent / "static" / (name if name != "api" else "api.html")
        assert answer.body == file.read_bytes()
