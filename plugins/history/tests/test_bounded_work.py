"""What one request looks at, at most, and how its answer says that there is more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

import pytest

from svc.plugin import Database
from svc_history.blaming import BlameLimits, blame_entries, blame_lines
from svc_history.files import commit_history
from svc_history.log import Page, find_commit, log_page
from svc_history.reading import History
from svc_history.view import HistoryView
from svc_history.viewer import Viewer

FILES = 6
MOVES = 8


@pytest.fixture
def database(tmp_path: FilePath) -> Iterator[Database]:
    """Two commits that write to /d, after one of /still, and eight that move HEAD between the two."""
    with Database(tmp_path / "x.svcdb") as opened:
        opened.register_view(HistoryView(listed=0))
        with opened.transaction(actor="ann") as transaction:
            transaction.put(("still", "f"), b"line\n")
            transaction.put(("still", "g"), b"\0")
        roots = []
        for content in (b"1", b"2"):
            with opened.transaction(actor="bob") as transaction:
                for number in range(FILES):
                    transaction.put(("d", str(number)), content)
            roots.append(opened.head().root)
        for number in range(MOVES):
            with opened.transaction(actor="cid") as transaction:
                transaction.set_ref("HEAD", roots[number % 2])
        yield opened


def pages_of(page: Callable[[str | None], Page], most: int = 50) -> list[list[Any]]:
    """The rows of each page."""
    found: list[list[Any]] = []
    after: str | None = None
    while len(found) < most:
        one = page(after)
        found.append(one.rows)
        if (after := one.next_cursor) is None:
            return found
    pytest.fail("The pages come to no end.")


def log_pages(database: Database, path: tuple[str, ...] = ()) -> list[list[Any]]:
    history, viewer = History(database), Viewer(database)
    return pages_of(lambda after: log_page(history, viewer, path=path, fork=None, limit=100, after=after))


def history_pages(database: Database, path: tuple[str, ...]) -> list[list[Any]]:
    history, viewer = History(database), Viewer(database)
    return pages_of(lambda after: commit_history(history, viewer, path, limit=100, after=after))


@pytest.mark.parametrize("path", [(), ("d",)])
@pytest.mark.parametrize("pages", [log_pages, history_pages])
def test_a_page_ends_where_no_more_can_be_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch, pages: Any, path: tuple[str, ...]
) -> None:
    whole = pages(database, path)
    assert len(whole) == 1
    assert [row["changes"]["modified"] for row in whole[0][: MOVES + 1]] == [FILES] * (MOVES + 1)
    monkeypatch.setattr("svc_history.counting.MOST_COUNTED", FILES + 3)
    short = pages(database, path)
    assert [row for page in short for row in page] == whole[0]
    assert len(short) > 3


@pytest.mark.parametrize("path", [(), ("d",)])
@pytest.mark.parametrize("pages", [log_pages, history_pages])
def test_a_commit_that_changed_more_than_is_counted_has_no_counts(
    database: Database, monkeypatch: pytest.MonkeyPatch, pages: Any, path: tuple[str, ...]
) -> None:
    whole = pages(database, path)[0]
    monkeypatch.setattr("svc_history.counting.MOST_COUNTED", FILES - 2)
    rows = [row for page in pages(database, path) for row in page]
    assert [row["changes"] for row in rows[:MOVES]] == [None] * MOVES
    assert [{**row, "changes": 0} for row in rows] == [{**row, "changes": 0} for row in whole]
    entry = find_commit(History(database), Viewer(database), str(database.head().sequence))
    assert entry.as_json()["changes"] is None


@pytest.mark.parametrize("pages", [log_pages, history_pages])
def test_commits_that_did_nothing_to_a_path_count_towards_the_work_of_a_page(
    database: Database, monkeypatch: pytest.MonkeyPatch, pages: Any
) -> None:
    [whole] = pages(database, ("still", "f"))
    assert [row["sequence"] for row in whole] == [1]
    for module in ("log", "files"):
        monkeypatch.setattr(f"svc_history.{module}.MOST_EXAMINED", 3)
    assert pages(database, ("still", "f")) == [[], [], whole]


def test_the_last_commit_of_an_entry_is_searched_for_so_long(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, viewer, version = History(database), Viewer(database), database.at()

    def entries(path: tuple[str, ...]) -> list[list[Any]]:
        return pages_of(lambda after: blame_entries(history, viewer, version, path, limit=100, after=after))

    [whole] = entries(("still",))
    assert [(row["sequence"], "truncated" in row) for row in whole] == [(1, False), (1, False)]
    monkeypatch.setattr("svc_history.blaming.MOST_EXAMINED", 3)
    [rows] = entries(("still",))
    oldest_seen = database.head().sequence - 2
    assert [(row["sequence"], row["truncated"]) for row in rows] == [(oldest_seen, True)] * 2
    monkeypatch.setattr("svc_history.blaming._MOST_LOOKED_AT", 2)
    assert entries(("still",)) == [[row] for row in rows]
    assert [len(page) for page in entries(("d",))] == [2, 2, 2]


def test_a_blame_that_takes_too_long_says_so(database: Database) -> None:
    history, viewer, version = History(database), Viewer(database), database.at()
    entry = version.get(("still", "f"))
    assert entry is not None
    for seconds, sequence in ((20.0, 1), (0.0, database.head().sequence)):
        limits = BlameLimits(100, 100, seconds)
        blame = blame_lines(history, viewer, version, ("still", "f"), entry, limits)
        assert blame is not None
        assert ([one.sequence for one in blame.origins], blame.truncated) == ([sequence], not seconds)


# -- callers who do not see everything ---------------------------------------------------------------


def log_rows(http: Any, **query: str) -> list[Any]:
    rows: list[Any] = []
    for _ in range(50):
        page = http.get("/versions/log", params=query).json
        rows += page["commits"]
        if not page["has_more"]:
            return rows
        query["after"] = page["next_cursor"]
    pytest.fail("The pages come to no end.")


def test_what_may_be_hidden_is_looked_at_so_long(
    http: Any, commit: Any, make_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = commit({"/open": b"1", **{f"/secret/{number}": b"1" for number in range(9)}})
    last = commit({"/zoo": b"1", **{f"/secret/{number}": b"2" for number in range(9)}})
    http.become(make_user({"/": "rl", "/secret": ""}))
    assert [row["version"] for row in log_rows(http)] == [last, first]
    monkeypatch.setattr("svc_history.counting.MOST_COUNTED", 5)
    rows = log_rows(http)
    assert [(row["version"], row["changes"], row["message"]) for row in rows] == [(first, None, None)]
    assert http.get(f"/versions/commits/{last}").status_code == 404


def test_changes_of_a_commit_are_looked_for_so_long(
    http: Any, commit: Any, make_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"/{place}{number}": b"1" for place in "abc" for number in range(4)}
    version = commit({**files, **{f"/secret/{number}": b"1" for number in range(9)}, "/zoo": b"1"})
    http.become(make_user({"/": "rl", "/secret": ""}))
    monkeypatch.setattr("svc_history.counting.MOST_COUNTED", 5)
    found: list[str] = []
    query: dict[str, str] = {}
    pages = 0
    while True:
        page = http.get(f"/versions/commits/{version}", params=query).json
        pages += 1
        found += [row["path"] for row in page["changes"]]
        if not page["has_more"]:
            break
        query["after"] = page["next_cursor"]
    assert found == sorted(files)
    assert pages == 4
    assert page["truncated"] is True
    http.become(make_user({"/": "rl"}))
    assert "truncated" not in http.get(f"/versions/commits/{version}").json
