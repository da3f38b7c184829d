"""A directory that nobody had looked into when the rights were decided goes only where everything may."""

from __future__ import annotations

from typing import Any

import pytest

from svc.plugin import ROOT_IDENTITY

from .conftest import Http, scoped_root  # noqa: TID252

CAREFUL = scoped_root(("/vis/**/*.key", "--------"), ("/vis/**", "crudl---"), ("/work/**", "crudl---"))

MADE = {
    "put": [{"op": "put", "path": "/work/new/x.key", "content": "x"}],
    "link": [{"op": "link", "path": "/work/new/x.key", "target": "/work/w"}],
    "mkdir": [{"op": "mkdir", "path": "/work/new/x.key"}],
    "copy": [{"op": "copy", "path": "/work/w", "to": "/work/new/x.key"}],
    "in place of a file": [
        {"op": "delete", "path": "/work/file"},
        {"op": "put", "path": "/work/file/x.key", "content": "x"},
        {"op": "move", "path": "/work/file", "to": "/work/new"},
    ],
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("op", ["copy", "move"])
def test_a_directory_that_a_batch_makes_goes_only_where_everything_may_be_made(
    http: Http, made: list[dict[str, Any]], op: str
) -> None:
    http.fill("/work/w", "/work/file", "/vis/a")
    http.become(CAREFUL)

    def relocate(source: str, target: str) -> list[dict[str, Any]]:
        return [*made, {"op": op, "path": source, "to": target}]

    answer = http.post("/files/batch", {"operations": relocate("/work/new", "/vis/n")})
    assert (answer.status_code, answer.json["operation"]) == (409, len(made)), answer.text
    assert http.get("/files/work/new").status_code == 404
    assert http.post("/files/batch", {"operations": relocate("/work/new", "/work/n")}).status_code == 200
    http.become(ROOT_IDENTITY)
    assert http.items("/files/vis", params={"depth": "-1"}) == ["/vis/a"]
    assert http.get("/files/work/n/x.key").status_code == 200


def test_a_file_that_a_batch_makes_goes_wherever_it_may(http: Http) -> None:
    http.fill("/vis/a")
    http.become(CAREFUL)
    put = {"op": "put", "path": "/work/f", "content": "x"}
    for op in ("copy", "move"):
        operations = [put, {"op": op, "path": "/work/f", "to": f"/vis/{op}"}]
        assert http.post("/files/batch", {"operations": operations}).status_code == 200
        assert http.get(f"/files/vis/{op}").content == b"x"


@pytest.mark.parametrize("way", ["rename", "copy", "delete"])
def test_a_file_that_becomes_a_directory_meanwhile_is_left_alone(
    http: Http, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    from svc_files import copying
    from svc_files.responders import files, patching

    module: Any = {"rename": patching, "copy": copying, "delete": files}[way]
    check = module.authorize_below

    def check_and_let_others_write(*arguments: Any) -> Any:
        guard = check(*arguments)
        with http.database.transaction() as transaction:
            transaction.delete(("vis", "f"))
            transaction.put(("vis", "f", "x.key"), b"not the caller's")
        return guard

    monkeypatch.setattr(module, "authorize_below", check_and_let_others_write)
    http.fill("/vis/f", "/work/w")
    http.become(CAREFUL)
    if way == "rename":
        answer = http("PATCH", "/files/vis/f", json={"to": "/work/f"})
    elif way == "copy":
        answer = http.post("/files/copy", {"paths": ["/vis/f"], "destination": "/work"})
    else:
        answer = http.delete("/files/vis/f", params={"recursive": "true"})
    assert answer.status_code == 409
    http.become(ROOT_IDENTITY)
    assert http.get("/files/vis/f/x.key").content == b"not the caller's"
    assert http.items("/files/work", params={"depth": "-1"}) == ["/work/w"]
