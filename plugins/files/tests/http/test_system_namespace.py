"""The system namespace answers 404 on every file route, to everyone, in every method and disguise."""

from __future__ import annotations

from typing import Any

import pytest

from svc.plugin import ROOT_IDENTITY

from .conftest import Http, scoped_root, user  # noqa: TID252

SYSTEM = ["/.svc-system", "/.system", "/.svc-system/users/x", "/.system/a/b"]
CALLERS = [ROOT_IDENTITY, scoped_root(("/**", "crudlify")), user({"/": "crudlify"})]

PATH_ROUTES = [
    (method, base)
    for base in ("/files", "/engine", "/links")
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "POST", "OPTIONS")
]


@pytest.mark.parametrize(("method", "base"), PATH_ROUTES)
def test_by_url_in_every_method_and_spelling(http: Http, method: str, base: str) -> None:
    for caller in CALLERS:
        http.become(caller)
        for path in (*SYSTEM, "//.system", "/./.system", "/%2Esystem", "/.system%2Fa"):
            for query in ("", "recursive=true", "nofollow=true", "depth=-1&deleted=true"):
                answer = http(method, base + path, query_string=query, body='{"target": "/a", "to": "/b"}')
                assert answer.status_code == 404, (method, base + path)


BODIES: list[tuple[str, Any, int]] = [
    ("/files/mkdir", {"path": "SYSTEM"}, 404),
    ("/files/copy", {"paths": ["SYSTEM"], "destination": "/to"}, 404),
    ("/files/copy", {"paths": ["/a"], "destination": "SYSTEM"}, 404),
    ("/files/download", {"paths": ["SYSTEM"]}, 404),
    ("/files/download", {"paths": ["/a", "SYSTEM"]}, 404),
    ("/files/restore", {"path": "SYSTEM"}, 404),
    ("/files/batch", {"operations": [{"op": "put", "path": "SYSTEM", "content": ""}]}, 404),
    ("/files/batch", {"operations": [{"op": "delete", "path": "SYSTEM"}]}, 404),
    ("/files/batch", {"operations": [{"op": "mkdir", "path": "SYSTEM"}]}, 404),
    ("/files/batch", {"operations": [{"op": "link", "path": "SYSTEM", "target": "/a"}]}, 404),
    ("/files/batch", {"operations": [{"op": "link", "path": "/l", "target": "SYSTEM"}]}, 404),
    ("/files/batch", {"operations": [{"op": "move", "from": "SYSTEM", "to": "/b"}]}, 404),
    ("/files/batch", {"operations": [{"op": "move", "from": "/a", "to": "SYSTEM"}]}, 404),
    ("/files/batch", {"operations": [{"op": "copy", "from": "SYSTEM", "to": "/b"}]}, 404),
    ("/files/batch", {"operations": [{"op": "copy", "from": "/a", "to": "SYSTEM"}]}, 404),
    ("/blobs/commit", {"files": [{"path": "SYSTEM", "chunk_hashes": []}]}, 404),
]


def _filled(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, path) for item in value]
    return path if value == "SYSTEM" else value


@pytest.mark.parametrize(("route", "body", "status"), BODIES)
def test_by_body(http: Http, route: str, body: Any, status: int) -> None:
    http.fill("/a")
    version = http.database.head().root
    for caller in CALLERS:
        http.become(caller)
        for path in SYSTEM:
            assert http.post(route, _filled(body, path)).status_code == status
    assert http.database.head().root == version


def test_by_rename_query_and_fetch(http: Http) -> None:
    http.fill("/a")
    for path in SYSTEM:
        assert http("PATCH", "/files/a", json={"to": path}).status_code == 404
        assert http("PUT", "/links/l", json={"target": path}).status_code == 404
        assert http.get("/files/deleted", params={"path": path}).status_code == 404
        (item,) = http.post("/files/fetch", {"paths": [path]}).json["items"]
        assert item["code"] == "NOT_FOUND"


@pytest.fixture
def smuggled(http: Http, monkeypatch: pytest.MonkeyPatch) -> Http:
    """A user tree that holds the names all the same, and links to them: no door of ours makes such a one."""
    from svc.database import transaction

    http.fill("/a")
    with monkeypatch.context() as patched, http.database.transaction() as writing:
        patched.setattr(transaction, "refuse_system_path", lambda path: None)
        writing.put((".system", "secret"), b"secret")
        writing.put((".svc-system", "users", "u"), b"secret")
        writing.link(("direct",), "/.system/secret")
        writing.link(("directory",), "/.svc-system")
        writing.link(("twice",), "/directory/users")
    return http


def test_through_links(smuggled: Http) -> None:
    for path in ("/direct", "/directory", "/directory/users/u", "/twice", "/twice/u", "/twice/new"):
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
            if method == "DELETE" and path in ("/direct", "/directory", "/twice"):
                continue
            answer = smuggled(method, f"/files{path}", body='{"to": "/b"}' if method == "PATCH" else "x")
            if method == "PATCH" and path in ("/direct", "/directory", "/twice"):
                assert answer.status_code == 200
                assert smuggled("PATCH", "/files/b", json={"to": path}).status_code == 200
            else:
                assert answer.status_code == 404, (method, path)
    (item,) = smuggled.post("/files/fetch", {"paths": ["/direct"]}).json["items"]
    assert item["code"] == "NOT_FOUND"
    assert smuggled.get("/links/direct").json["resolved"] is None
    for body in (
        {"paths": ["/directory/users"], "destination": "/to"},
        {"paths": ["/a"], "destination": "/directory"},
    ):
        assert smuggled.post("/files/copy", body).status_code == 404
    assert smuggled.post("/files/mkdir", {"path": "/directory/new"}).status_code == 404


def test_through_listings_globs_and_downloads(smuggled: Http) -> None:
    visible = ["/a", "/direct", "/directory", "/twice"]
    page = smuggled.get("/files", params={"limit": "100"}).json
    assert [item["path"] for item in page["items"]] == visible
    assert page["total"] == 4
    assert smuggled.items("/files", params={"depth": "-1"}) == ["/a"]
    assert smuggled.items("/files", params={"depth": "-1", "glob": "**/secret"}) == []
    assert smuggled.items("/files", params={"glob": ".s*"}) == []
    archive = smuggled.post("/files/download", {"paths": ["/"]}).content
    assert b"secret" not in archive
    assert b".system" not in archive


def test_through_the_lists_of_deleted_files_and_chunks(
    smuggled: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blake3 import blake3

    from svc.database import transaction

    with monkeypatch.context() as patched, smuggled.database.transaction() as writing:
        patched.setattr(transaction, "refuse_system_path", lambda path: None)
        writing.delete((".system", "secret"))
    assert smuggled.get("/files/deleted").json["items"] == []
    assert smuggled.items("/files", params={"deleted": "true", "depth": "-1"}) == ["/a"]
    smuggled.become(user({"/": "crudlify"}))
    assert smuggled.get(f"/blobs/{blake3(b'secret').hexdigest()}").status_code == 404


def test_chunks_of_the_system_are_not_served(http: Http) -> None:
    from svc.plugin import ObjectKind, hash_object

    content = b"a secret of the system"
    with http.database.transaction() as writing:
        writing.put_system(("keys", "k"), content)
    for system in (False, True):
        name = hash_object(ObjectKind.CHUNK, content, system).hex()
        assert http.get(f"/blobs/{name}").status_code == 404
        assert http.post("/blobs/check", {"hashes": [name]}).json["have"] == []
