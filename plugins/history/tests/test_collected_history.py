"""The history of collected versions: commits go on, and say what is not known any more."""

from __future__ import annotations

from typing import Any

import pytest

from repair_material import flip, records_of
from svc.hashing import ObjectKind
from svc.plugin import collect as collect_garbage
from svc_history.view import HISTORY_VIEW
from svc_testing import simulate_collection

TEXT = b"one\ntwo\n"


@pytest.fixture(params=["kept up", "not yet"])
def collect(request: pytest.FixtureRequest, http: Any) -> Any:
    """Collects what lies before HEAD, or a commit; the view has followed, or has not got to it yet."""

    def run(horizon: int | None = None) -> None:
        reader = http.database.view(HISTORY_VIEW)
        reader.catch_up()
        simulate_collection(http.database, horizon)
        if request.param == "kept up":
            reader.catch_up()
            while reader.work():
                pass

    return run


def get(http: Any, url: str, **query: str) -> Any:
    answer = http.get(url, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json


def test_the_log_goes_on_and_says_which_commits_are_collected(http: Any, commit: Any, collect: Any) -> None:
    first = commit({"/a": b"1", "/b": b"1"}, message="began")
    second = commit({"/a": b"2"})
    collect()
    third = commit({"/a": b"3"})
    rows = get(http, "/versions/log")["commits"]
    assert [(row["version"], row.get("collected"), row["changes"]) for row in rows] == [
        (third, None, {"added": 0, "modified": 1, "deleted": 0}),
        (second, True, None),
        (first, True, None),
    ]
    assert rows[2]["message"] == "began"
    of_b = get(http, "/versions/log", path="/b")["commits"]
    assert [(row["version"], row["collected"], "certain" in row) for row in of_b] == [(first, True, False)]


def test_a_commit_that_reached_below_a_directory_is_not_certain_to_have_touched_a_path(
    http: Any, commit: Any, collect: Any
) -> None:
    commit({"/d/a": b"1"})
    with http.database.transaction() as transaction:
        transaction.move(("d",), ("e",))
    moved = http.database.head().root.hex()
    collect()
    rows = get(http, "/versions/log", path="/e/a")["commits"]
    assert [(row["version"], row["collected"], row["certain"]) for row in rows] == [(moved, True, False)]
    rows = get(http, "/versions/log", path="/e")["commits"]
    assert [(row["version"], "certain" in row) for row in rows] == [(moved, False)]


def test_a_collected_commit_is_shown_by_number_and_by_version(http: Any, commit: Any, collect: Any) -> None:
    first = commit({"/a": b"1"}, message="began")
    commit({"/a": b"2"})
    collect()
    for name in (str(http.database.commit_of(bytes.fromhex(first))), first):
        shown = get(http, f"/versions/commits/{name}")
        assert (shown["collected"], shown["message"], shown["version"]) == (True, "began", first)
        assert (shown["totals"], shown["changes"], shown["has_more"]) == (None, [], False)


def test_blame_says_which_lines_it_cannot_tell(http: Any, commit: Any, collect: Any) -> None:
    commit({"/t": b"one\n"})
    second = commit({"/t": TEXT})
    collect()
    third = commit({"/t": TEXT + b"three\n"})
    answer = get(http, "/versions/blame/t")
    assert [(line["version"], line.get("collected")) for line in answer["lines"]] == [
        (second, True),
        (second, True),
        (third, None),
    ]
    entries = get(http, "/versions/blame/")["entries"]
    assert [(row["version"], row.get("collected")) for row in entries] == [(third, None)]


def test_blame_of_an_entry_that_only_a_collected_commit_touched(http: Any, commit: Any, collect: Any) -> None:
    first = commit({"/old": b"\0"})
    commit({"/new": b"1"})
    collect()
    entries = {row["name"]: row for row in get(http, "/versions/blame/")["entries"]}
    assert (entries["old"]["version"], entries["old"]["collected"]) == (first, True)
    assert get(http, "/versions/blame/old")["entries"][0]["collected"] is True


def test_the_commits_of_a_file_go_on(http: Any, commit: Any, collect: Any) -> None:
    before = http.database.head().sequence
    commit({"/a": b"1"})
    commit({"/a": None})
    commit({"/a": b"2"})
    collect()
    commit({"/a": b"3"})
    rows = get(http, "/versions/history/a", commits="true")["history"]
    assert [
        (row["sequence"] - before, row["change_type"], row["size"], row.get("collected")) for row in rows
    ] == [
        (5, "modified", 1, None),
        (3, None, None, True),
        (2, "deleted", None, True),
        (1, None, None, True),
    ]


def test_what_names_a_collected_version_answers_404(http: Any, commit: Any, collect: Any) -> None:
    first = commit({"/a": b"1"})
    http.post("/versions/snapshots", {"name": "kept"})
    second = commit({"/a": b"2"})
    commit({"/a": b"3"})
    collect()
    assert get(http, "/versions/compare", **{"from": first})["totals"]["modified"] == 1
    for url, query in (
        ("/versions/compare", {"from": second}),
        ("/versions/compare", {"from": "HEAD", "to": second}),
        ("/versions/blame/a", {"version": second}),
    ):
        answer = http.get(url, params=query)
        assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND"), answer.text
        assert answer.json["collected"] is True
        assert "was collected" in answer.json["error"]


def test_the_log_of_a_fork_ends_where_its_beginning_is_not_known(
    http: Any, commit: Any, collect: Any
) -> None:
    commit({"/a": b"1"})
    http.post("/versions/forks", {"name": "draft"})
    commit({"/b": b"1"}, fork="draft")
    commit({"/a": b"2"})
    collect()
    last = commit({"/b": b"2"}, fork="draft")
    rows = get(http, "/versions/log", fork="draft")["commits"]
    assert (rows[0]["version"], "collected" in rows[0]) == (last, False)
    assert [row["collected"] for row in rows[1:]] == [True, True]
    assert {row["ref"] for row in rows} == {"forks/draft"}


def test_who_sees_little_is_told_nothing_of_what_collected_commits_hid(
    http: Any, commit: Any, collect: Any, make_user: Any
) -> None:
    hidden = commit({"/hidden/a": b"1"}, message="secret")
    seen = commit({"/open/a": b"1", "/hidden/b": b"1"}, message="secret")
    collect()
    http.become(make_user({"/open": "rl"}))
    rows = get(http, "/versions/log")["commits"]
    assert [(row["version"], row["message"], row["changes"]) for row in rows] == [(seen, None, None)]
    assert http.get(f"/versions/commits/{hidden}").status_code == 404
    rows = get(http, "/versions/history/open/a", commits="true")["history"]
    assert [(row["version"], row["message"]) for row in rows] == [(seen, None)]


def test_a_damaged_record_shows_who_sees_little_the_rest(
    http: Any, commit: Any, collect: Any, make_user: Any
) -> None:
    seen = commit({"/open/a": b"1"})
    lost = commit({"/open/b": b"1", "/hidden/b": b"1"})
    sequence = http.database.head().sequence
    http.database.view(HISTORY_VIEW).catch_up()
    place = records_of(http.database.path, ObjectKind.COMMIT)[sequence - 1].offset
    last = commit({"/open/c": b"1"})
    collect(sequence)
    flip(http.database.path, *range(place + 100, place + 150))
    http.database.drop_caches()
    http.become(make_user({"/open": "rl"}))
    assert [row["version"] for row in get(http, "/versions/log")["commits"]] == [last, seen]
    assert http.get(f"/versions/commits/{sequence}").status_code == 404
    assert http.get(f"/versions/commits/{lost}").status_code == 404
    for path in ("/open", "/open/b"):
        shown = [row["version"] for row in get(http, "/versions/log", path=path)["commits"]]
        assert lost in shown
        get(http, f"/versions/blame{path}")
        of_path = get(http, f"/versions/history{path}", commits="true")["history"]
        assert {row["version"] for row in of_path} >= set(shown)


def test_commits_that_a_collection_has_packed_are_in_the_log_as_before(http: Any) -> None:
    database = http.database
    began = database.head().sequence
    for number in range(200):
        with database.transaction(actor="somebody", message=f"number {number}") as transaction:
            transaction.put(("a",), b"%d" % number)
    versions = [database.commit(sequence).root.hex() for sequence in range(began + 1, began + 201)]
    collect_garbage(database)
    assert database.objects.index.commit_place(5) is None
    first = get(http, "/versions/log", limit="120")
    second = get(http, "/versions/log", limit="120", after=first["next_cursor"])
    rows = first["commits"] + second["commits"]
    told = {row["version"]: row for row in rows if row["message"] and row["message"].startswith("number")}
    assert [told[version]["message"] for version in versions] == [f"number {n}" for n in range(200)]
    shown = get(http, f"/versions/commits/{began + 5}")
    assert (shown["collected"], shown["message"]) == (True, "number 4")
