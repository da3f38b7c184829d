"""Directories of more files than anybody could list: what a commit does to them costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import pytest

from svc.plugin import Database, Path, ViewReader
from svc_history.blaming import BlameLimits, blame_entries, blame_lines, last_commit
from svc_history.counting import Counter
from svc_history.files import commit_history
from svc_history.log import find_commit, log_page
from svc_history.reading import History
from svc_history.view import HistoryView
from svc_history.viewer import Viewer

DOUBLINGS = 25
DEEP: Path = ("bomb", "a", *(f"c{number}" for number in range(DOUBLINGS - 1, -1, -1)), "f")
"""One of the files: in the last copy the last but one, and so on."""


@pytest.fixture
def database(tmp_path: FilePath) -> Iterator[Database]:
    """A database with 2^25 files, of which the first 24 doublings were a commit each."""
    with Database(tmp_path / "x.svcdb") as opened:
        opened.register_view(HistoryView())
        with opened.transaction(actor="ann") as transaction:
            transaction.put(("bomb", "a", "f"), b"line\n", content_type="text/plain")
        for number in range(DOUBLINGS):
            with opened.transaction(actor="bob") as transaction:
                transaction.copy(("bomb", "a"), ("bomb", "b"))
                transaction.move(("bomb", "b"), ("bomb", "a", f"c{number}"))
        yield opened


@pytest.fixture
def reader(database: Database) -> ViewReader:
    return database.view(HistoryView.name)


def rows(reader: ViewReader) -> int:
    return reader.read(lambda storage: sum(1 for _ in storage.scan()))


def told(database: Database, path: Path) -> list[tuple[int, str]]:
    page = commit_history(History(database), Viewer(database), path, limit=100, after=None)
    assert page.next_cursor is None
    return [(row["sequence"], row["change_type"]) for row in page.rows]


def log(database: Database, path: Path = (), limit: int = 100) -> list[tuple[int, dict[str, int] | None]]:
    found: list[Any] = []
    after: str | None = None
    while True:
        page = log_page(History(database), Viewer(database), path=path, fork=None, limit=limit, after=after)
        found += [(row["sequence"], row["changes"]) for row in page.rows]
        if (after := page.next_cursor) is None:
            return found


def counts(added: int = 0, modified: int = 0, deleted: int = 0) -> dict[str, int]:
    return {"added": added, "modified": modified, "deleted": deleted}


def test_a_copy_bomb_has_a_few_rows_for_each_doubling(database: Database, reader: ViewReader) -> None:
    assert rows(reader) <= 5 * (DOUBLINGS + 1)
    assert log(database)[0] == (DOUBLINGS + 1, counts(added=1 << (DOUBLINGS - 1)))
    assert log(database, ("bomb",))[-1] == (1, counts(added=1))
    # The innermost copy is the first, so the path came to be with the last.
    assert told(database, DEEP) == [(DOUBLINGS + 1, "added")]
    assert told(database, (*DEEP[:2], *DEEP[3:])) == [(DOUBLINGS, "added")]
    assert told(database, ("bomb", "a", "c3", "c9", "f")) == []


def test_deleting_moving_and_restoring_it_gives_one_row_each(database: Database, reader: ViewReader) -> None:
    head = database.head()
    before = rows(reader)
    with database.transaction(actor="cid") as transaction:
        transaction.delete(("bomb",), recursive=True)
    with database.transaction(actor="dan") as transaction:
        transaction.put_entry(("bomb",), database.version_of(head.root).get(("bomb",)))
    with database.transaction(actor="eve") as transaction:
        transaction.move(("bomb",), ("moved", "here"))
    with database.transaction(actor="fay", message="back") as transaction:
        transaction.set_ref("HEAD", head.root)
    # One of the directory, of its new place, of the root and of the commit.
    assert rows(reader) - before <= 4 * 4
    last = head.sequence
    every = 1 << DOUBLINGS
    assert log(database, limit=1)[:4] == [
        (last + 4, counts(every, 0, every)),
        (last + 3, counts(every, 0, every)),
        (last + 2, counts(added=every)),
        (last + 1, counts(deleted=every)),
    ]
    expected = [(last + 4, "added"), (last + 3, "deleted"), (last + 2, "added"), (last + 1, "deleted")]
    assert told(database, DEEP) == [*expected, (last, "added")]
    assert told(database, ("bomb",))[:4] == expected
    assert told(database, ("moved", "here", *DEEP[1:])) == [(last + 4, "deleted"), (last + 3, "added")]
    assert log(database, DEEP[:5])[:2] == [
        (last + 4, counts(added=1 << (DOUBLINGS - 3))),
        (last + 3, counts(deleted=1 << (DOUBLINGS - 3))),
    ]
    found = last_commit(History(database), Viewer(database), DEEP, last + 4)
    assert found is not None
    assert found.origin is not None
    assert (found.origin.sequence, found.origin.user) == (last + 4, "fay")
    entry = find_commit(History(database), Viewer(database), str(last + 4))
    assert (entry.counts, entry.authors[0].message) == ((every, 0, every), "back")


def test_lines_are_followed_through_all_copies(database: Database) -> None:
    version = database.at()
    entry = version.get(DEEP)
    assert entry is not None
    limits = BlameLimits(1 << 20, 1 << 20)
    blame = blame_lines(History(database), Viewer(database), version, DEEP, entry, limits)
    assert blame is not None
    assert [(one.sequence, one.path) for one in blame.origins] == [(1, ("bomb", "a", "f"))]
    page = blame_entries(History(database), Viewer(database), version, ("bomb", "a"), limit=3, after=None)
    assert [row["name"] for row in page.rows] == ["c0", "c1", "c10"]
    assert [row["sequence"] for row in page.rows] == [2, 3, 12]


def test_one_change_everywhere_is_counted_once_for_each_pair_of_directories(tmp_path: FilePath) -> None:
    """Two bombs of the same form with different files: 2^25 paths differ in 25 pairs of directories."""
    with Database(tmp_path / "x.svcdb") as opened:
        reader = opened.register_view(HistoryView(listed=20))
        for content in (b"1", b"2"):
            with opened.transaction() as transaction:
                if content == b"2":
                    transaction.delete(("bomb",), recursive=True)
                transaction.put(("bomb", "a", "f"), content)
                for number in range(DOUBLINGS):
                    transaction.copy(("bomb", "a"), ("bomb", "b"))
                    transaction.move(("bomb", "b"), ("bomb", "a", f"c{number}"))
        assert log(opened) == [(2, counts(modified=1 << DOUBLINGS)), (1, counts(added=1 << DOUBLINGS))]
        assert told(opened, DEEP) == [(2, "modified"), (1, "added")]
        assert rows(reader) <= 8
        counter = Counter(1_000)
        roots = [opened.version_of(opened.commit(number).root) for number in (1, 2)]
        assert counter.count(*roots, DEEP[:3]) == (0, 1 << (DOUBLINGS - 1), 0)
        assert counter.looked_at < 400
        with opened.transaction() as transaction:
            transaction.set_ref("forks/x", roots[0].root)
        with opened.transaction(ref="forks/x") as transaction:
            transaction.put_entry(("bomb",), roots[1].get(("bomb",)))
        assert rows(reader) <= 10
        page = log_page(History(opened), Viewer(opened), path=(), fork="x", limit=1, after=None)
        assert page.rows[0]["changes"] == counts(modified=1 << DOUBLINGS)
