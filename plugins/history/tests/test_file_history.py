"""``/version/file-history``: what became of a path, over snapshots and over commits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from svc.plugin import ROOT_IDENTITY, Identity, ScopedRule

ROUTES = ("/version/file-history", "/versions/file-history", "/versions/history")


def snapshot(http: Any, name: str) -> None:
    assert http.post("/versions/snapshots", {"name": name}).status_code in (200, 201)


def changes(answer: Any) -> list[tuple[str | None, str]]:
    return [(row["snapshot"], row["change_type"]) for row in answer.json["history"]]


@pytest.fixture
def four(commit: Any, http: Any) -> Any:
    """Four snapshots: without the file, with it, changed, and (after another file changed) the same."""
    commit({"/other": b"0"})
    snapshot(http, "one")
    commit({"/docs/a.txt": b"first"})
    snapshot(http, "two")
    commit({"/docs/a.txt": b"second!"})
    snapshot(http, "three")
    commit({"/other": b"1"})
    snapshot(http, "four")
    return http


@pytest.mark.parametrize("route", ROUTES)
def test_a_file_is_followed_from_snapshot_to_snapshot_newest_first(four: Any, route: str) -> None:
    answer = four.get(f"{route}/docs/a.txt")
    assert (answer.status_code, answer.json["path"]) == (200, "/docs/a.txt")
    assert changes(answer) == [("four", "unchanged"), ("three", "modified"), ("two", "added")]
    newest = answer.json["history"][0]
    assert newest["size"] == 7
    assert newest["content_type"] == "text/plain"
    assert len(newest["content_hash"]) == 64
    assert newest["content_hash"] != answer.json["history"][2]["content_hash"]
    snapshots = {one["name"]: one for one in four.get("/version/snapshots").json}
    assert [row["timestamp"] for row in answer.json["history"]] == [
        snapshots[name]["created_at"] for name in ("four", "three", "two")
    ]


def test_a_deleted_file_shows_when_it_went_and_when_it_came_back(commit: Any, four: Any) -> None:
    commit({"/docs/a.txt": None})
    snapshot(four, "five")
    commit({"/other": b"2"})
    snapshot(four, "six")
    commit({"/docs/a.txt": b"again"})
    snapshot(four, "seven")
    answer = four.get("/version/file-history/docs/a.txt")
    assert changes(answer)[:3] == [("seven", "added"), ("five", "deleted"), ("four", "unchanged")]
    deleted = answer.json["history"][1]
    before = answer.json["history"][2]
    assert (deleted["size"], deleted["entry_type"]) == (0, 2)
    for member in ("content_type", "content_hash"):
        assert deleted[member] == before[member] is not None
    commits = four.get("/version/file-history/docs/a.txt?commits=true").json["history"]
    [gone] = [row for row in commits if row["change_type"] == "deleted"]
    assert (gone["size"], gone["content_hash"]) == (0, before["content_hash"])
    assert gone["content_type"] == before["content_type"]


@pytest.mark.parametrize("query", ["", "?commits=true"])
def test_what_never_existed_has_an_empty_history(four: Any, query: str) -> None:
    answer = four.get("/version/file-history/never/was", query_string=query.lstrip("?"))
    assert (answer.status_code, answer.json["history"]) == (200, [])
    assert answer.json["path"] == "/never/was"


def test_every_commit_that_touched_a_file_is_told(commit: Any, http: Any) -> None:
    first = commit({"/a": b"1", "/b": b"1"}, "ann", "begin")
    commit({"/b": b"2"}, "bob", "not this one")
    third = commit({"/a": b"2"}, "bob", "change")
    time.sleep(0.002)  # within one millisecond it would be the same state
    fourth = commit({"/a": b"2"}, "cid")
    fifth = commit({"/a": None}, "dan", "gone")
    rows = http.get("/version/file-history/a", params={"commits": "true"}).json["history"]
    assert [(row["change_type"], row["version"], row["user"], row["message"]) for row in rows] == [
        ("deleted", fifth, "dan", "gone"),
        ("unchanged", fourth, "cid", None),
        ("modified", third, "bob", "change"),
        ("added", first, "ann", "begin"),
    ]
    assert {row["snapshot"] for row in rows} == {None}
    for row in rows:
        at = http.database.commit(row["sequence"])
        assert (at.root.hex(), at.time_ms) == (row["version"], row["timestamp"])
    assert (rows[2]["size"], rows[2]["content_type"]) == (1, "text/plain")


def test_a_directory_counts_what_each_commit_changed_below_it(commit: Any, http: Any) -> None:
    commit({"/d/a": b"1", "/d/e/b": b"1", "/x": b"1"})
    commit({"/x": b"2"})
    commit({"/d/a": b"2", "/d/e/b": None, "/d/c": b"1"})
    rows = http.get("/versions/history/d", params={"commits": "true"}).json["history"]
    assert [(row["change_type"], row["entry_type"], row["changes"]) for row in rows] == [
        ("modified", 3, {"added": 1, "modified": 1, "deleted": 1}),
        ("added", 3, {"added": 2, "modified": 0, "deleted": 0}),
    ]
    everything = http.get("/versions/history/", params={"commits": "true"}).json
    assert (everything["path"], len(everything["history"])) == ("/", 3)


def test_a_restored_version_shows_as_what_it_did_to_the_file(commit: Any, http: Any) -> None:
    root = bytes.fromhex(commit({"/a": b"old", "/b": b"old"}))
    commit({"/a": b"new", "/b": None, "/c": b"new"})
    with http.database.transaction(actor="ann", message="back") as transaction:
        transaction.set_ref("HEAD", root)
    told = {
        path: http.get(f"/versions/history/{path}", params={"commits": "true"}).json["history"][0]
        for path in "abc"
    }
    assert {path: row["change_type"] for path, row in told.items()} == {
        "a": "modified",
        "b": "added",
        "c": "deleted",
    }
    assert {row["message"] for row in told.values()} == {"back"}


@pytest.mark.parametrize("mode", ["true", "false"])
def test_pages_neither_repeat_nor_skip(commit: Any, http: Any, mode: str) -> None:
    for number in range(7):
        commit({"/a": b"%d" % number})
        snapshot(http, f"s{number}")
    whole = http.get("/versions/history/a", params={"commits": mode}).json
    assert (len(whole["history"]), whole["has_more"], whole["next_cursor"]) == (7, False, None)
    rows: list[Any] = []
    query = {"commits": mode, "limit": "2"}
    while True:
        page = http.get("/versions/history/a", params=query).json
        rows += page["history"]
        assert page["has_more"] is (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        query["after"] = page["next_cursor"]
        commit({"/a": b"more %d" % len(rows)})
        snapshot(http, f"later{len(rows)}")
    assert rows == whole["history"]


def test_a_page_goes_on_behind_a_snapshot_that_was_deleted(four: Any) -> None:
    page = four.get("/versions/history/docs/a.txt", params={"limit": "1"}).json
    assert four.delete("/versions/snapshots/four").status_code == 200
    rest = four.get("/versions/history/docs/a.txt", params={"after": page["next_cursor"]})
    assert changes(rest) == [("three", "modified"), ("two", "added")]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"limit": "9" * 400}, "limit"),
        ({"after": "x"}, "after"),
        ({"after": "MR9jb21taXRzHzE"}, "after"),
        ({"after": "ü"}, "after"),
        ({"after": "MR9zbmFwc2hvdHMfeB94H3g"}, "after"),
        ({"commits": "perhaps"}, "commits"),
        ({"commits": "true", "after": "MR9jb21taXRzHy0x"}, "after"),
    ],
)
def test_a_bad_parameter_is_refused(commit: Any, http: Any, query: dict[str, str], field: str) -> None:
    commit({"/a": b"1"})
    answer = http.get("/versions/history/a", params=query)
    assert (answer.status_code, answer.json["code"], answer.json["field"]) == (400, "INVALID_INPUT", field)


@pytest.mark.parametrize("path", [".svc-system/users", ".system", ".svc-system"])
@pytest.mark.parametrize("route", [*ROUTES, "/versions/blame"])
def test_the_system_namespace_has_no_history(http: Any, make_user: Any, route: str, path: str) -> None:
    for who in (ROOT_IDENTITY, make_user({"/": "crudlify"})):
        http.become(who)
        answer = http.get(f"{route}/{path}")
        assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND")


def test_a_bad_path_is_refused(http: Any) -> None:
    answer = http.get("/versions/history/a/../b")
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_PATH")


def test_who_may_not_read_a_path_does_not_see_its_history(
    commit: Any, http: Any, make_user: Any, make_key: Any
) -> None:
    commit({"/open/a": b"1", "/secret/b": b"1"})
    snapshot(http, "one")
    http.become(make_user({"/": "", "/open": "rl"}))
    assert http.get("/versions/history/open/a").status_code == 200
    assert http.get("/versions/history/secret/b").status_code == 403
    http.become(make_key(("/open/**", "-r--l---")))
    assert changes(http.get("/versions/history/open/a")) == [("one", "added")]
    for path in ("secret/b", "secret/none"):
        answer = http.get(f"/versions/history/{path}")
        assert (answer.status_code, answer.json["error"]) == (404, "There is nothing at this path.")


@pytest.mark.parametrize("mode", ["true", "false"])
def test_a_deleted_file_is_for_those_who_may_delete(
    commit: Any, http: Any, make_user: Any, mode: str
) -> None:
    commit({"/a": b"1"})
    snapshot(http, "one")
    commit({"/a": None})
    http.become(make_user({"/": "rl"}))
    assert http.get("/versions/history/a", params={"commits": mode}).json["history"] == []
    http.become(make_user({"/": "rld"}))
    assert http.get("/versions/history/a", params={"commits": mode}).json["history"] != []


def test_a_directory_counts_only_what_the_caller_may_see(commit: Any, http: Any, make_user: Any) -> None:
    commit({"/d/open": b"1", "/d/secret": b"1"}, "ann", "both: /d/secret too")
    commit({"/d/secret": b"2"}, "ann", "hidden")
    commit({"/d/open": b"2"}, "ann", "seen")
    http.become(make_user({"/": "rl", "/d/secret": ""}))
    rows = http.get("/versions/history/d", params={"commits": "true"}).json["history"]
    assert [(row["message"], row["changes"]["added"], row["changes"]["modified"]) for row in rows] == [
        ("seen", 0, 1),
        (None, 1, 0),
    ]
    rows = http.get("/versions/history/d/open", params={"commits": "true"}).json["history"]
    assert [row["message"] for row in rows] == ["seen", None], "a message may name what is hidden"


def test_a_share_link_is_told_of_commits_and_of_no_snapshot(four: Any) -> None:
    rules = (ScopedRule("/docs/**", "-r--l---"),)
    four.become(Identity(None, "share", key_id="link", rules=rules))
    for path in ("/docs/a.txt", "/docs"):
        answer = four.get(f"/versions/history{path}")
        assert (answer.status_code, answer.json["history"], answer.json["has_more"]) == (200, [], False)
    commits = four.get("/versions/history/docs/a.txt", params={"commits": "true"})
    assert changes(commits) == [(None, "modified"), (None, "added")]
