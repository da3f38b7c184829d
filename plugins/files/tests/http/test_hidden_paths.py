"""A path that a caller may not see looks like one where nothing is, whichever way the caller asks."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from falcon.testing import Result

from svc.plugin import ROOT_IDENTITY, Identity, parse_path
from svc.plugins import Plugins
from svc_testing import serve_in_process

from .conftest import Http, scoped_root, user  # noqa: TID252

HIDDEN = ("none", "file", "dir", "dangling", "outward", "circle", "outward/a", "dir/x", "file/x", "none/x")
"""Paths below ``/hidden``, one for each thing that may be there."""

CALLERS = [
    user({"/mine": "crudl", "/open": "rl"}),
    scoped_root(("/mine/**", "crudl---"), ("/open/**", "-r--l---")),
]


def own_link(name: str) -> str:
    """The link in the caller's own directory that leads to a hidden path."""
    return f"/mine/to-{name.replace('/', '-')}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path_factory.mktemp("hidden") / "t.svcdb", plugins) as (app, database, mode):

        def become(other: Identity) -> None:
            mode.identity = other

        http = Http(app, database, become)
        http.fill("/open/a", "/mine/x", "/hidden/file", "/hidden/dir/x")
        links = {
            "/hidden/dangling": "/open/none",
            "/hidden/outward": "/open",
            "/hidden/circle": "/mine/to-circle",
        }
        links |= {f"/mine/to-{name.replace('/', '-')}": f"/hidden/{name}" for name in HIDDEN}
        with database.transaction() as transaction:  # No route makes a circle.
            for path, target in links.items():
                transaction.link(parse_path(path), target)
        yield http


def batch(**operation: Any) -> Callable[[Http, str], Result]:
    """A batch of one operation; ``{}`` in its texts stands for the path that the request is about."""

    def send(http: Http, path: str) -> Result:
        filled = {
            key: value.replace("{}", path) if isinstance(value, str) else value
            for key, value in operation.items()
        }
        return http.post("/files/batch", {"operations": [filled]})

    return send


def merge_patch(http: Http, path: str) -> Result:
    headers = {"Content-Type": "application/merge-patch+json"}
    return http("PATCH", f"/files{path}", body="{}", headers=headers)


REQUESTS: dict[str, Callable[[Http, str], Result]] = {
    "get": lambda http, path: http.get(f"/files{path}"),
    "head": lambda http, path: http("HEAD", f"/files{path}"),
    "get below": lambda http, path: http.get(f"/files{path}/a"),
    "put": lambda http, path: http.put(f"/files{path}", b"x"),
    "put below": lambda http, path: http.put(f"/files{path}/n", b"x"),
    "delete below": lambda http, path: http.delete(f"/files{path}/x"),
    "merge": merge_patch,
    "rename from below": lambda http, path: http("PATCH", f"/files{path}/x", json={"to": "/mine/new"}),
    "rename to below": lambda http, path: http("PATCH", "/files/mine/x", json={"to": f"{path}/x"}),
    "get a link below": lambda http, path: http.get(f"/links{path}/a"),
    "put a link below": lambda http, path: http("PUT", f"/links{path}/n", json={"target": "/open"}),
    "delete a link below": lambda http, path: http.delete(f"/links{path}/a"),
    "fetch": lambda http, path: http.post("/files/fetch", {"paths": [path]}),
    "fetch below": lambda http, path: http.post("/files/fetch", {"paths": [f"{path}/a"]}),
    "download": lambda http, path: http.post("/files/download", {"paths": [path]}),
    "mkdir": lambda http, path: http.post("/files/mkdir", {"path": path, "exist_ok": True}),
    "mkdir below": lambda http, path: http.post("/files/mkdir", {"path": f"{path}/d"}),
    "copy into": lambda http, path: http.post("/files/copy", {"paths": ["/mine/x"], "destination": path}),
    "copy from below": lambda http, path: http.post(
        "/files/copy", {"paths": [f"{path}/x"], "destination": "/mine/new"}
    ),
    "commit of chunks": lambda http, path: http.post(
        "/blobs/commit", {"files": [{"path": path, "chunk_hashes": []}]}
    ),
    "batch put": batch(op="put", path="{}", content="x"),
    "batch put below": batch(op="put", path="{}/x", content="x"),
    "batch link below": batch(op="link", path="{}/x", target="/open"),
    "batch mkdir": batch(op="mkdir", path="{}/x"),
    "batch delete below": batch(op="delete", path="{}/x"),
    "batch move from below": batch(op="move", path="{}/x", to="/mine/new"),
    "batch move to below": batch(op="move", path="/mine/x", to="{}/x"),
    "batch copy from below": batch(op="copy", path="{}/x", to="/mine/new"),
    "batch copy to below": batch(op="copy", path="/mine/x", to="{}/x"),
}

DIRECTLY: dict[str, Callable[[Http, str], Result]] = {
    **REQUESTS,
    "put a link": lambda http, path: http("PUT", f"/links{path}", json={"target": "/open"}),
    "delete": lambda http, path: http.delete(f"/files{path}", params={"recursive": "true"}),
    "rename from": lambda http, path: http("PATCH", f"/files{path}", json={"to": "/mine/new"}),
    "rename to": lambda http, path: http("PATCH", "/files/mine/x", json={"to": path}),
    "copy from": lambda http, path: http.post("/files/copy", {"paths": [path], "destination": "/mine/new"}),
    "batch link": batch(op="link", path="{}", target="/open"),
    "batch delete": batch(op="delete", path="{}", recursive=True),
    "batch move from": batch(op="move", path="{}", to="/mine/new"),
    "batch move to": batch(op="move", path="/mine/x", to="{}"),
    "batch copy from": batch(op="copy", path="{}", to="/mine/new"),
    "deleted": lambda http, path: http.get("/files/deleted", params={"path": path}),
    "restore": lambda http, path: http.post("/files/restore", {"path": path}),
}


def require_same_answers(
    http: Http, caller: Identity, request: Callable[[Http, str], Result], path_of: Callable[[str], str]
) -> None:
    """Makes sure that a request is denied for each hidden path, in words that differ by the path alone."""
    http.become(caller)
    before = http.database.head().root
    answers = {}
    for name in HIDDEN:
        path = path_of(name)
        answer = request(http, path)
        text = answer.text.replace(path, "ASKED").replace(f"/hidden/{name}", "HIDDEN")
        headers = {key for key in answer.headers if key.startswith("x-svc")}
        answers[name] = (answer.status_code, text, headers)
    status, text, _ = answers["none"]
    expected, code = (404, "NOT_FOUND") if caller.rules else (403, "FORBIDDEN")
    assert status == expected or f'"code":"{code}"' in text  # a fetch says it for each item
    assert answers == dict.fromkeys(HIDDEN, answers["none"])
    assert http.database.head().root == before


@pytest.fixture(params=CALLERS, ids=["user", "scoped key"])
def caller(request: pytest.FixtureRequest) -> Identity:
    identity: Identity = request.param
    return identity


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_link_of_ones_own_tells_nothing_of_a_hidden_path(
    tree: Http, request_name: str, caller: Identity
) -> None:
    require_same_answers(tree, caller, REQUESTS[request_name], own_link)


@pytest.mark.parametrize("request_name", DIRECTLY)
def test_a_hidden_path_looks_like_one_with_nothing(tree: Http, request_name: str, caller: Identity) -> None:
    require_same_answers(tree, caller, DIRECTLY[request_name], lambda name: f"/hidden/{name}")


def test_where_a_hidden_link_leads_is_told_neither_when_a_link_is_read_nor_when_it_is_made(
    tree: Http, caller: Identity
) -> None:
    tree.become(caller)
    for name in HIDDEN:
        assert tree.get(f"/links{own_link(name)}").json["resolved"] is None
        # To those who see both links this is a circle.
        target = {"target": f"/hidden/{name}"}
        assert tree("PUT", f"/links{own_link(name)}", json=target).status_code == 200
    tree.become(ROOT_IDENTITY)
    answer = tree("PUT", f"/links{own_link('circle')}", json={"target": "/hidden/circle"})
    assert answer.status_code == 400
    assert tree.get(f"/files{own_link('outward')}/a").content == b"/open/a"


def test_a_zip_holds_nothing_behind_a_hidden_link(tree: Http, caller: Identity) -> None:
    tree.become(caller)
    archive = tree.post("/files/download", {"paths": ["/mine"]})
    assert zipfile.ZipFile(io.BytesIO(archive.content)).namelist() == ["mine/x"]
