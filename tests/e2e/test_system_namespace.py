"""The system namespace: invisible on every route, in every method, by every detour."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links

FORMS = [
    ".svc-system",
    ".svc-system/",
    ".svc-system/plugins",
    ".svc-system/plugins/files",
    ".svc-system/a/b/c",
    ".system",
    ".system/x",
    "%2Esvc-system/x",
    "%2esystem",
    "/.svc-system/x",
    "./.svc-system/x",
    "//.//.system//x",
    ".svc%2dsystem",
    ".svc-system%2Fplugins",
]


@pytest.mark.parametrize("prefix", ["/files/", "/engine/", "/links/"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("form", FORMS)
def test_every_method_answers_404(http: Client, prefix: str, method: str, form: str) -> None:
    if (prefix, method) == ("/links/", "PATCH"):
        method = "GET"
    body = {"PUT": b'{"target": "/x"}', "PATCH": b'{"to": "/x"}'}.get(method)
    response = http.request(method, prefix + form, body, {"Content-Type": "application/json"})
    assert response.status == 404, response.body
    if method != "HEAD":
        assert_error(response, 404, "NOT_FOUND")


@pytest.mark.parametrize(
    "query", [{"recursive": "true"}, {"depth": "-1"}, {"deleted": "true"}, {"nofollow": "true"}]
)
def test_no_parameter_opens_it(http: Client, query: dict[str, str]) -> None:
    for method in ("GET", "DELETE"):
        assert_error(http.request(method, "/files/.svc-system", **query), 404, "NOT_FOUND")


def test_it_looks_exactly_like_something_missing(http: Client) -> None:
    hidden, missing = http.get("/files/.svc-system/x"), http.get("/files/.no-such-thing/x")
    assert hidden.json()["code"] == missing.json()["code"]
    assert {name.lower() for name in hidden.headers} == {name.lower() for name in missing.headers}
    assert hidden.json()["error"].replace(".svc-system", "*") == missing.json()["error"].replace(
        ".no-such-thing", "*"
    )


def test_listings_globs_and_totals_do_not_show_it(http: Client, area: str) -> None:
    http.store(f"{area}/x", b"")
    for query in (
        {},
        {"glob": ".s*"},
        {"glob": "**"},
        {"depth": "-1"},
        {"depth": "-1", "glob": "/.svc-system/**"},
        {"deleted": "true"},
    ):
        response = http.get("/files/", limit=1000, **query)
        assert response.status == 200
        for item in response.json()["items"]:
            assert item["path"].split("/")[1] not in (".svc-system", ".system")
    assert http.listing("/", limit=1)["total"] == len(http.names("/"))


@pytest.mark.parametrize(
    "hidden", ["/.svc-system", "/.svc-system/plugins/files", "/.system", "//.svc-system/./x"]
)
@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/files/mkdir", {"path": "HIDDEN"}),
        ("/files/copy", {"paths": ["HIDDEN"], "destination": "AREA"}),
        ("/files/copy", {"paths": ["AREA/x"], "destination": "HIDDEN"}),
        ("/files/download", {"paths": ["HIDDEN"]}),
        ("/files/download", {"paths": ["AREA/x", "HIDDEN"]}),
        ("/files/restore", {"path": "HIDDEN"}),
        ("/files/batch", {"operations": [{"op": "put", "path": "HIDDEN", "content": ""}]}),
        ("/files/batch", {"operations": [{"op": "delete", "path": "HIDDEN"}]}),
        ("/files/batch", {"operations": [{"op": "move", "from": "HIDDEN", "to": "AREA/y"}]}),
        ("/files/batch", {"operations": [{"op": "move", "from": "AREA/x", "to": "HIDDEN"}]}),
        ("/files/batch", {"operations": [{"op": "copy", "from": "HIDDEN", "to": "AREA/y"}]}),
        ("/files/batch", {"operations": [{"op": "copy", "from": "AREA/x", "to": "HIDDEN"}]}),
        ("/blobs/commit", {"files": [{"path": "HIDDEN", "content_type": "a/b", "chunk_hashes": []}]}),
    ],
)
def test_no_body_reaches_it(http: Client, area: str, route: str, body: Any, hidden: str) -> None:
    http.store(f"{area}/x", b"x")

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("HIDDEN", hidden).replace("AREA", area)
        if isinstance(value, list):
            return [fill(item) for item in value]
        if isinstance(value, dict):
            return {name: fill(item) for name, item in value.items()}
        return value

    response = http.post(route, fill(body))
    assert response.status in (404, 409), response.body
    assert_error(response, response.status)
    assert http.names(area) == ["x"]


def test_fetch_does_not_read_it(http: Client, area: str) -> None:
    for body in ({"paths": ["/.svc-system/plugins/files"]}, {"items": [{"path": "/.system/x"}]}):
        response = http.post("/files/fetch", body)
        if response.status == 200:
            (item,) = response.json()["items"]
            assert "content" not in item
        else:
            assert_error(response, 404, "NOT_FOUND")


def test_nothing_is_renamed_into_it(http: Client, area: str) -> None:
    http.store(f"{area}/x", b"x")
    for to in ("/.svc-system", "/.svc-system/x", "/.system/x"):
        assert_error(http.send_json("PATCH", files(f"{area}/x"), {"to": to}), 404, "NOT_FOUND")
    assert http.read(f"{area}/x") == b"x"


@pytest.mark.parametrize("target", ["/.svc-system", "/.svc-system/plugins", "/.system", "/./.svc-system/x"])
def test_no_link_leads_into_it(http: Client, area: str, target: str) -> None:
    response = http.send_json("PUT", links(f"{area}/door"), {"target": target})
    assert response.status in (201, 400, 404)
    for name in ("door", "door/plugins", "door/plugins/files"):
        for method in ("GET", "HEAD"):
            assert http.request(method, files(f"{area}/{name}")).status == 404
    assert http.put_file(f"{area}/door/new", b"x").status in (
        (404,) if response.status == 201 else (201, 404)
    )


def test_no_link_to_the_root_leads_into_it(http: Client, area: str) -> None:
    response = http.send_json("PUT", links(f"{area}/root"), {"target": "/"})
    if response.status == 201:
        assert http.get(files(f"{area}/root/.svc-system/plugins")).status == 404
        assert http.put_file(f"{area}/root/.svc-system/new", b"x").status == 404
        assert not {".svc-system", ".system"} & set(http.names(f"{area}/root"))


def test_a_copy_or_zip_of_everything_leaves_it_out(http: Client, area: str) -> None:
    http.store(f"{area}/x", b"x")
    response = http.post("/files/download", {"paths": [area]})
    with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
        assert not [name for name in archive.namelist() if "system" in name.split("/")[0]]
    assert_error(http.get("/files/deleted", path="/.svc-system"), 404, "NOT_FOUND")


def test_the_plugin_records_are_no_blobs(http: Client) -> None:
    for content in (b"{}", b"", b'{"id":"files"}'):
        response = http.get(f"/blobs/{blake3(content).hexdigest()}")
        assert response.status in (200, 404)
        if response.status == 200:
            assert response.body == content


def test_such_names_deeper_down_are_ordinary(http: Client, area: str) -> None:
    http.store(f"{area}/.svc-system/x", b"mine")
    assert http.read(f"{area}/.svc-system/x") == b"mine"
    assert http.put_file("/.SVC-SYSTEM-of-mine/x", b"mine").status in (200, 201)
    http.delete(files("/.SVC-SYSTEM-of-mine"), recursive="true")
