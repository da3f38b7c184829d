"""What is made from everything below a directory is for those only who may see all of it."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def versions(http: Any, commit: Any) -> tuple[str, str]:
    first = commit({"/a": b"1"})
    second = commit({"/d/open": b"1", "/d/secret/x": b"12345678", "/own/y": b"1"})
    http.post("/versions/snapshots", {"name": "monday"})
    return first, second


def test_a_comparison(http: Any, versions: tuple[str, str], make_user: Any) -> None:
    query = {"from": versions[0], "to": versions[1]}

    def sides() -> dict[str, Any]:
        answer = http.get("/versions/compare", params=query).json
        return {change["path"]: change["after"] for change in answer["changes"]}

    whole = sides()
    http.become(make_user({"/d": "crudl---", "/d/secret": "--------", "/own": "crudl---"}))
    shown = sides()
    assert "/d/secret" not in shown
    assert (shown["/d"]["hash"], shown["/d"]["size"], shown["/d"]["updated_at"]) == (None, None, None)
    assert shown["/own"] == whole["/own"]
    assert shown["/d/open"] == whole["/d/open"]


def test_the_snapshots_of_a_directory(http: Any, versions: tuple[str, str], make_user: Any) -> None:
    http.become(make_user({"/d": "crudl---", "/d/secret": "--------", "/own": "crudl---"}))
    (row,) = http.get("/version/file-history/d").json["history"]
    assert (row["size"], row["content_hash"]) == (None, None)
    (row,) = http.get("/version/file-history/own").json["history"]
    assert row["size"] == 1
    assert row["content_hash"] is not None


def test_blame_of_a_directory(http: Any, versions: tuple[str, str], make_user: Any) -> None:
    http.become(make_user({"/": "crudl---", "/d/secret": "--------"}))
    rows = {row["path"]: row["size"] for row in http.get("/versions/blame").json["entries"]}
    assert rows == {"/a": 1, "/d": None, "/own": 1}


def test_that_a_directory_became_empty_of_what_is_hidden(http: Any, commit: Any, make_user: Any) -> None:
    before = commit({"/d/secret/x": b"1", "/own/y": b"1"})
    commit({"/d/secret/x": None, "/own/y": None})
    http.become(make_user({"/": "-r--l---", "/d/secret": "--------", "/own": "crudl---"}))
    changes = http.get("/versions/compare", params={"from": before}).json["changes"]
    assert [change["path"] for change in changes] == ["/own", "/own/y"]
    log = http.get("/versions/log", params={"path": "/d"}).json["commits"]
    assert [one["version"] for one in log] == [before]
