"""A directory that a caller sees in part tells nothing of what changed in the part that is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from svc.plugin import Identity
from svc_testing import simulate_collection

COMMIT = ("version", "sequence", "timestamp", "user")
NOTHING_KNOWN = dict.fromkeys(COMMIT)


@pytest.fixture
def callers(make_user: Any, make_key: Any) -> dict[str, Identity]:
    """Callers who see ``/vis`` without its secrets, and one who sees no more than the way to one file."""
    return {
        "user": make_user({"/": "-r--l---", "/vis/d/secret": "--------", "/vis/hidden": "--------"}),
        "key": make_key(
            ("/vis/d/secret/**", "--------"), ("/vis/hidden/**", "--------"), ("/vis/**", "-r--l---")
        ),
        "one file": make_key(("/vis/d/open", "-r------")),
    }


def sequences(commits: list[dict[str, Any]]) -> list[int]:
    return [one["sequence"] for one in commits]


def blame(http: Any, path: str, **query: Any) -> dict[str, dict[str, Any]]:
    """The commits of the rows, by path, over all pages."""
    rows: dict[str, dict[str, Any]] = {}
    while True:
        page = http.get(f"/versions/blame{path}", params=query).json
        rows.update({row["path"]: row for row in page["entries"]})
        if not page["has_more"]:
            return rows
        query["after"] = page["next_cursor"]


def blame_pages(http: Any, path: str) -> list[list[str]]:
    """The names on each page."""
    page = http.get(f"/versions/blame{path}").json
    pages = [[row["name"] for row in page["entries"]]]
    while page["has_more"]:
        page = http.get(f"/versions/blame{path}", params={"after": page["next_cursor"]}).json
        pages.append([row["name"] for row in page["entries"]])
    return pages


# -- blame -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["user", "key", "one file"])
def test_the_last_commit_of_a_directory_is_one_that_the_caller_may_see(
    http: Any, commit: Any, callers: dict[str, Identity], who: str
) -> None:
    commit({"/vis/d/open": b"1", "/vis/d/secret/x": b"1"}, "ann")
    seen = http.database.head()
    commit({"/vis/d/secret/x": b"2"}, "eve")
    commit({"/vis/d/secret/y": b"2"}, "eve")
    http.become(callers[who])
    for path, row_of in (("/vis", "/vis/d"), ("", "/vis")):
        row = blame(http, path)[row_of]
        assert (row["sequence"], row["timestamp"], row["user"]) == (seen.sequence, seen.time_ms, "ann")
        assert row["version"] == seen.root.hex()
        assert "truncated" not in row
        log = http.get("/versions/log", params={"path": row_of}).json["commits"]
        assert row["sequence"] == log[0]["sequence"]


def test_who_sees_everything_is_told_of_the_last_commit(http: Any, commit: Any, make_user: Any) -> None:
    commit({"/vis/d/open": b"1"}, "ann")
    commit({"/vis/d/secret/x": b"1"}, "eve")
    assert blame(http, "/vis")["/vis/d"]["user"] == "eve"
    http.become(make_user({"/vis": "-r-dl---"}))
    assert blame(http, "/vis")["/vis/d"]["user"] == "eve"


def test_hidden_commits_are_looked_at_so_long(
    http: Any, commit: Any, callers: dict[str, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit({"/vis/d/open": b"1", "/vis/z": b"1"}, "ann")
    for number in range(4):
        commit({"/vis/d/secret/x": str(number).encode()}, "eve")
    http.become(callers["user"])
    monkeypatch.setattr("svc_history.blaming.MOST_EXAMINED", 3)
    rows = blame(http, "/vis")
    assert {name: rows["/vis/d"][name] for name in COMMIT} == NOTHING_KNOWN
    assert rows["/vis/d"]["truncated"] is True
    assert (rows["/vis/z"]["user"], "truncated" in rows["/vis/z"]) == ("ann", False)


def test_a_page_ends_where_hidden_changes_were_too_many(
    http: Any, commit: Any, callers: dict[str, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit({"/vis/a/open": b"1", "/vis/b": b"1", "/vis/d/open": b"1", "/vis/z": b"1"}, "ann")
    commit({f"/vis/d/secret/{number}": b"1" for number in range(9)}, "eve")
    http.become(callers["user"])
    whole = blame(http, "/vis")
    assert [row["user"] for row in whole.values()] == ["ann"] * 4
    monkeypatch.setattr("svc_history.counting.MOST_COUNTED", 5)
    assert blame_pages(http, "/vis") == [["a", "b"], ["d"], ["z"]]
    rows = blame(http, "/vis")
    assert list(rows) == list(whole)
    assert {name: rows["/vis/d"][name] for name in COMMIT} == NOTHING_KNOWN
    assert rows["/vis/d"]["truncated"] is True
    assert rows["/vis/z"] == whole["/vis/z"]


def test_a_page_ends_where_hidden_commits_were_too_many(
    http: Any, commit: Any, callers: dict[str, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit({f"/vis/{name}/open": b"1" for name in "abd"}, "ann")
    for content in (b"1", b"2"):
        commit({"/vis/d/secret/x": content}, "eve")
    monkeypatch.setattr("svc_history.blaming._MOST_LOOKED_AT", 21)
    assert blame_pages(http, "/vis") == [["a", "b", "d"]]
    http.become(callers["user"])
    assert blame_pages(http, "/vis") == [["a", "b", "d"]]
    monkeypatch.setattr("svc_history.blaming._MOST_LOOKED_AT", 11)
    commit({"/vis/e/open": b"1"}, "ann")
    assert blame_pages(http, "/vis") == [["a", "b"], ["d"], ["e"]]


def test_a_search_that_ends_early_names_no_commit_that_may_be_hidden(
    http: Any, commit: Any, make_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit({"/vis/f": b"1"}, "ann")
    many = [commit({f"/own/{number}": content for number in range(1_001)}, "eve") for content in (b"1", b"2")]
    for number in range(4):
        transaction = http.database.transaction(actor="eve")
        transaction.set_ref("HEAD", bytes.fromhex(many[number % 2]))
        transaction.commit()
    monkeypatch.setattr("svc_history.blaming.MOST_EXAMINED", 3)
    row = blame(http, "/vis")["/vis/f"]
    assert (row["user"], row["truncated"]) == ("eve", True)
    http.become(make_user({"/vis": "-r-dl---"}))
    row = blame(http, "/vis")["/vis/f"]
    assert {name: row[name] for name in COMMIT} == NOTHING_KNOWN
    assert row["truncated"] is True


# -- the history of a path ---------------------------------------------------------------------------


@pytest.fixture
def snapshots(http: Any, commit: Any) -> None:
    """Four: nothing changes in ``/vis`` to the second, what is hidden to the third, what is open last."""
    for name, files in {
        "v1": {"/vis/d/open": b"1", "/vis/d/secret/x": b"1", "/zoo": b"1"},
        "v2": {"/zoo": b"2"},
        "v3": {"/vis/d/secret/x": b"2", "/vis/hidden/y": b"2"},
        "v4": {"/vis/d/secret/x": None},
        "v5": {"/vis/d/open": b"5", "/vis/d/secret/x": b"5"},
    }.items():
        commit(files)
        http.post("/versions/snapshots", {"name": name})


def change_types(http: Any, path: str) -> dict[str, str | None]:
    rows = http.get(f"/version/file-history{path}").json["history"]
    return {row["snapshot"]: row["change_type"] for row in rows}


@pytest.mark.usefixtures("snapshots")
@pytest.mark.parametrize("who", ["user", "key", "one file"])
@pytest.mark.parametrize("path", ["/vis/d", "/vis"])
def test_what_is_hidden_modifies_no_directory(
    http: Any, callers: dict[str, Identity], who: str, path: str
) -> None:
    same = dict.fromkeys(("v2", "v3", "v4"), "unchanged")
    hidden = {**same, "v3": "modified", "v4": "modified"}
    assert change_types(http, path) == {"v1": "added", **hidden, "v5": "modified"}
    http.become(callers[who])
    assert change_types(http, path) == {"v1": "added", **same, "v5": "modified"}


@pytest.mark.usefixtures("snapshots")
def test_so_does_the_root(http: Any, callers: dict[str, Identity]) -> None:
    http.become(callers["user"])
    expected = {"v1": "added", "v2": "modified", "v3": "unchanged", "v4": "unchanged", "v5": "modified"}
    assert change_types(http, "/") == expected
    http.become(callers["one file"])
    assert change_types(http, "/") == {**expected, "v2": "unchanged"}


@pytest.mark.usefixtures("snapshots")
def test_what_differs_too_much_to_be_looked_at_is_not_known(
    http: Any, commit: Any, callers: dict[str, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit({f"/vis/d/a{number}": b"1" for number in range(3)})
    commit({f"/vis/d/secret/{number}": b"1" for number in range(9)})
    http.post("/versions/snapshots", {"name": "v6"})
    commit({f"/vis/d/secret/{number}": b"2" for number in range(9)})
    http.post("/versions/snapshots", {"name": "v7"})
    http.become(callers["user"])
    whole = change_types(http, "/vis/d")
    assert (whole["v7"], whole["v6"]) == ("unchanged", "modified")
    monkeypatch.setattr("svc_history.counting.MOST_COUNTED", 5)
    page = http.get("/version/file-history/vis/d").json
    rows = page["history"]
    pages = 1
    while page["has_more"]:
        page = http.get("/version/file-history/vis/d", params={"after": page["next_cursor"]}).json
        rows += page["history"]
        pages += 1
    assert {row["snapshot"]: row["change_type"] for row in rows} == {**whole, "v7": None}
    assert len(rows) == len(whole)
    assert pages > 1


# -- collected commits -------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["user", "key", "one file"])
def test_a_collected_commit_of_what_is_hidden_is_not_of_the_directory_above(
    http: Any, commit: Any, callers: dict[str, Identity], who: str
) -> None:
    commit({"/vis/d/open": b"1", "/vis/d/secret/x": b"1", "/vis/e": b"1"}, "ann")
    seen = http.database.head().sequence
    commit({"/vis/d/secret/x": b"2"}, "eve")
    with http.database.transaction(actor="eve") as transaction:
        transaction.move(("vis", "d", "secret", "x"), ("vis", "hidden", "y"))
    simulate_collection(http.database)
    commit({"/zoo": b"1"}, "eve")
    http.become(callers[who])
    for path in ("/vis/d", "/vis"):
        log = http.get("/versions/log", params={"path": path}).json["commits"]
        assert sequences(log) == [seen]
        rows = http.get(f"/version/file-history{path}", params={"commits": "true"}).json["history"]
        # Whether it was a directory then is not known any more: who may see no more than the way has no row.
        assert sequences(rows) == ([] if who == "one file" else [seen])
    row = blame(http, "/vis")["/vis/d"]
    assert (row["sequence"], row["user"], row["collected"]) == (seen, "ann", True)


def test_a_collected_commit_that_moved_a_directory_away_is_of_the_one_above(
    http: Any, commit: Any, make_user: Any
) -> None:
    commit({"/a/d/f": b"1", "/b/f": b"1"}, "ann")
    with http.database.transaction(actor="bob") as transaction:
        transaction.move(("a", "d"), ("b", "d"))
    moved = http.database.head().sequence
    commit({"/a/d/f": b"2"}, "cid")
    simulate_collection(http.database, moved)
    http.become(make_user({"/": "-r--l---", "/a/secret": "--------"}))
    log = http.get("/versions/log", params={"path": "/a"}).json["commits"]
    assert moved in sequences(log)


def test_a_directory_of_which_nothing_is_known_but_what_is_hidden_has_no_commit(
    http: Any, commit: Any, make_user: Any
) -> None:
    commit({"/vis/d/secret/x": b"1", "/vis/f": b"1"}, "eve")
    simulate_collection(http.database)
    http.become(make_user({"/": "-r--l---", "/vis/d/secret": "--------"}))
    row = blame(http, "/vis")["/vis/d"]
    assert {name: row[name] for name in COMMIT} == NOTHING_KNOWN
    assert "truncated" not in row
