"""``/versions/log`` and ``/versions/commits``: what was committed, and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from svc_history.log import author_json
from svc_history.rows import MIXED, Author

Row = dict[str, Any]


def log(http: Any, **query: str) -> list[Row]:
    answer = http.get("/versions/log", params={"limit": "1000", **query})
    assert answer.status_code == 200, answer.text
    rows: list[Row] = answer.json["commits"]
    return rows


def versions(rows: list[Row]) -> list[str]:
    return [row["version"] for row in rows]


def test_commits_come_newest_first_with_who_and_what(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1", "/b": b"1"}, "ann", "begin")
    second = commit({"/a": b"2", "/b": None, "/c": b"1", "/d": b"1"}, "bob")
    rows = log(http)
    assert versions(rows) == [second, first]
    newest = rows[0]
    assert (newest["parent"], newest["user"], newest["message"]) == (first, "bob", None)
    assert newest["changes"] == {"added": 2, "modified": 1, "deleted": 1}
    assert newest["ref"] == "HEAD"
    at = http.database.commit(newest["sequence"])
    assert (newest["timestamp"], at.root.hex()) == (at.time_ms, second)
    assert rows[1]["changes"] == {"added": 2, "modified": 0, "deleted": 0}


def test_what_only_the_system_wrote_is_not_in_the_log(http: Any, commit: Any) -> None:
    commit({"/a": b"1"})
    before = log(http)
    assert http.post("/versions/snapshots", {"name": "s"}).status_code == 201
    assert log(http) == before


def test_the_log_of_a_path_has_the_commits_that_touched_it_or_what_is_below(http: Any, commit: Any) -> None:
    first = commit({"/d/a": b"1", "/d/e/b": b"1"})
    commit({"/x": b"1"})
    third = commit({"/d/e/b": b"2", "/x": b"2"})
    fourth = commit({"/d/a": None})
    assert versions(log(http, path="/d")) == [fourth, third, first]
    assert versions(log(http, path="/d/a")) == [fourth, first]
    assert [row["changes"] for row in log(http, path="/d")] == [
        {"added": 0, "modified": 0, "deleted": 1},
        {"added": 0, "modified": 1, "deleted": 0},
        {"added": 2, "modified": 0, "deleted": 0},
    ]
    assert log(http, path="/d/none") == []
    assert log(http, path="/") == log(http)


def test_the_log_of_a_fork_goes_on_where_it_began(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1"})
    second = commit({"/b": b"1"})
    assert http.post("/versions/forks", {"name": "draft"}).status_code == 201
    on_fork = commit({"/a": b"fork"}, "bob", fork="draft")
    on_head = commit({"/a": b"head"})
    rows = log(http, fork="draft")
    assert [(row["version"], row["ref"]) for row in rows] == [
        (on_fork, "forks/draft"),
        (second, "forks/draft"),
        (second, "HEAD"),
        (first, "HEAD"),
    ]
    assert (rows[0]["user"], rows[0]["changes"]["modified"]) == ("bob", 1)
    assert rows[1]["parent"] is None
    assert on_head not in versions(rows)
    assert versions(log(http))[0] == on_head
    assert versions(log(http, fork="draft", path="/a")) == [on_fork, first]
    assert versions(log(http, fork="draft", path="/b")) == [second]
    pages: list[Row] = []
    query = {"fork": "draft", "limit": "1"}
    while len(pages) < 10:
        page = http.get("/versions/log", params=query).json
        pages += page["commits"]
        if not page["has_more"]:
            break
        query["after"] = page["next_cursor"]
    assert pages == rows


def test_a_fork_of_an_older_version_goes_on_from_there(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1"})
    assert http.post("/versions/snapshots", {"name": "one"}).status_code == 201
    commit({"/a": b"2"})
    assert http.post("/versions/forks", {"name": "old", "base": "one"}).status_code == 201
    assert versions(log(http, fork="old")) == [first, first]


def test_a_name_that_is_used_again_has_its_own_log(http: Any, commit: Any) -> None:
    commit({"/a": b"1"})
    http.post("/versions/forks", {"name": "x"})
    gone = commit({"/a": b"2"}, fork="x")
    assert http.delete("/versions/forks/x").status_code == 200
    assert http.get("/versions/log", params={"fork": "x"}).status_code == 404
    http.post("/versions/forks", {"name": "x"})
    assert gone not in versions(log(http, fork="x"))


def test_pages_go_on_while_commits_are_made(http: Any, commit: Any) -> None:
    for number in range(9):
        commit({"/a": b"%d" % number})
    whole = log(http)
    rows: list[Row] = []
    query = {"limit": "4"}
    while True:
        page = http.get("/versions/log", params=query).json
        rows += page["commits"]
        if not page["has_more"]:
            assert page["next_cursor"] is None
            break
        query["after"] = page["next_cursor"]
        commit({"/later": b"%d" % len(rows)})
    assert rows == whole
    assert len(http.get("/versions/log").json["commits"]) == len(log(http)) == 11


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"fork": "none"}, 404),
        ({"fork": ""}, 400),
        ({"limit": "0"}, 400),
        ({"after": "?"}, 400),
        ({"path": "/a/../b"}, 400),
        ({"path": "/.svc-system/users"}, 404),
        ({"path": "/.system"}, 404),
    ],
)
def test_a_bad_parameter_is_refused(http: Any, commit: Any, query: dict[str, str], status: int) -> None:
    commit({"/a": b"1"})
    assert http.get("/versions/log", params=query).status_code == status


def test_a_cursor_of_a_fork_means_nothing_to_head(http: Any, commit: Any) -> None:
    commit({"/a": b"1"})
    http.post("/versions/forks", {"name": "x"})
    commit({"/a": b"2"}, fork="x")
    cursor = http.get("/versions/log", params={"fork": "x", "limit": "1"}).json["next_cursor"]
    answer = http.get("/versions/log", params={"after": cursor})
    assert (answer.status_code, answer.json["field"]) == (400, "after")


def test_the_caller_sees_commits_of_what_the_caller_may_read(
    http: Any, commit: Any, make_user: Any, make_key: Any
) -> None:
    both = commit({"/open/a": b"1", "/secret/b": b"1"}, "ann", "about /secret/b")
    commit({"/secret/b": b"2"}, "ann", "hidden")
    opened = commit({"/open/a": b"2"}, "ann", "seen")
    for who in (make_user({"/": "", "/open": "rl"}), make_key(("/open/**", "-r--l---"))):
        http.become(who)
        rows = log(http)
        assert [(row["version"], row["message"], row["changes"]["added"]) for row in rows] == [
            (opened, "seen", 0),
            (both, None, 1),
        ]
        assert log(http, path="/open/a") == rows
        assert http.get("/versions/log", params={"path": "/secret/b"}).status_code in (403, 404)


def test_where_everything_is_hidden_pages_are_short_but_come_to_an_end(
    http: Any, commit: Any, make_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_history.log.MOST_EXAMINED", 3)
    mine = commit({"/open": b"1"})
    for number in range(8):
        commit({"/secret": b"%d" % number})
    http.become(make_user({"/": "", "/open": "rl"}))
    found: list[str] = []
    query: dict[str, str] = {}
    for _ in range(4):
        page = http.get("/versions/log", params=query).json
        found += versions(page["commits"])
        if not page["has_more"]:
            break
        query["after"] = page["next_cursor"]
    assert found == [mine]


# -- one commit --------------------------------------------------------------------------------------


def test_a_commit_is_shown_with_what_it_changed(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1", "/d/b": b"12"}, "ann", "begin")
    second = commit({"/a": b"22", "/d": None, "/c": b"3"}, "bob", "go on")
    answer = http.get(f"/versions/commits/{second}").json
    assert (answer["version"], answer["parent"], answer["user"]) == (second, first, "bob")
    assert answer["totals"] == {"added": 1, "modified": 1, "deleted": 1}
    assert [(one["path"], one["change_type"], one["entry_type"]) for one in answer["changes"]] == [
        ("/a", "modified", 2),
        ("/c", "added", 2),
        ("/d", "deleted", 3),
        ("/d/b", "deleted", 2),
    ]
    modified = answer["changes"][0]
    assert (modified["before"]["size"], modified["after"]["size"]) == (1, 2)
    assert answer["changes"][1]["before"] is None
    by_number = http.get(f"/versions/commits/{answer['sequence']}").json
    assert by_number == answer


def test_the_changes_of_a_commit_come_in_pages(http: Any, commit: Any) -> None:
    version = commit({f"/d/{number:02}": b"x" for number in range(7)})
    whole = http.get(f"/versions/commits/{version}").json["changes"]
    assert len(whole) == 8
    rows: list[Row] = []
    query = {"limit": "3"}
    while True:
        page = http.get(f"/versions/commits/{version}", params=query).json
        rows += page["changes"]
        if not page["has_more"]:
            break
        query["after"] = page["next_cursor"]
    assert rows == whole


def test_a_commit_is_found_by_a_snapshot_and_by_a_time(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1"})
    http.post("/versions/snapshots", {"name": "2020-01-01"})
    commit({"/a": b"2"})
    assert http.get("/versions/commits/2020-01-01").json["version"] == first
    assert http.get("/versions/commits/2999-01-01").json["version"] == log(http)[0]["version"]
    assert http.get("/versions/commits/HEAD").json == http.get("/versions/commits/2999-01-01").json


@pytest.mark.parametrize("name", ["0", "999", "nothing", "0" * 64, "1970-01-02", "forks%2Fx"])
def test_a_commit_that_is_not_there_is_missing(http: Any, commit: Any, name: str) -> None:
    commit({"/a": b"1"})
    answer = http.get(f"/versions/commits/{name}")
    assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND")


def test_a_commit_of_which_nothing_may_be_seen_is_missing(http: Any, commit: Any, make_user: Any) -> None:
    hidden = commit({"/secret": b"1"})
    half = commit({"/secret": b"2", "/open": b"1"}, "ann", "secret")
    http.become(make_user({"/": "", "/open": "rl"}))
    assert http.get(f"/versions/commits/{hidden}").status_code == 404
    answer = http.get(f"/versions/commits/{half}").json
    assert [one["path"] for one in answer["changes"]] == ["/open"]
    assert (answer["totals"]["added"], answer["totals"]["modified"], answer["message"]) == (1, 0, None)


def test_of_a_commit_that_several_made_and_that_is_half_hidden_nobody_is_named() -> None:
    authors = (Author("ann", "one"), Author("bob", "two"))
    assert author_json(authors, MIXED, shows_messages=True) == {
        "user": None,
        "message": "one\ntwo",
        "users": ["ann", "bob"],
    }
    assert author_json(authors, MIXED, shows_messages=False) == {"user": None, "message": None}
    assert author_json(authors, 1, shows_messages=False) == {"user": "bob", "message": None}
    assert author_json(authors[:1], MIXED, shows_messages=False) == {"user": "ann", "message": None}


def test_commits_of_a_fork_that_did_not_touch_the_path_count_towards_the_work_of_a_page(
    http: Any, commit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_history.log.MOST_EXAMINED", 3)
    first = commit({"/a": b"1"})
    http.post("/versions/forks", {"name": "x"})
    on_fork = commit({"/a": b"2"}, fork="x")
    for number in range(7):
        commit({"/b": b"%d" % number}, fork="x")
    found: list[str] = []
    query = {"fork": "x", "path": "/a"}
    pages = 0
    while True:
        page = http.get("/versions/log", params=query).json
        pages += 1
        found += versions(page["commits"])
        if not page["has_more"]:
            break
        query["after"] = page["next_cursor"]
    assert found == [on_fork, first]
    assert pages >= 3
