"""The view of the history: the contract of views, and the law that it tells what the trees say."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.database import Database, ViewReader
from svc.errors import SvcError
from svc.paths import Path
from svc.testing import ViewContract
from svc.tree import Entry, EntryKind
from svc_versions.history.reading import History, joined
from svc_versions.history.rows import (
    MIXED,
    Author,
    ChangeType,
    Counts,
    DirectoryRow,
    FileRow,
    PathRow,
    decode_path,
    encode_row,
)
from svc_versions.history.view import HISTORY_VIEW, HistoryView

NAMES = st.sampled_from(["a", "b", "ä"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), PATHS, st.sampled_from([b"", b"one", b"two"])),
    st.tuples(st.just("delete"), PATHS, st.just(None)),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("copy"), PATHS, PATHS),
    st.tuples(st.just("mkdir"), PATHS, st.just(None)),
    st.tuples(st.just("link"), PATHS, st.just("/a")),
    st.tuples(st.just("restore"), st.integers(0, 5), st.just(None)),
    st.tuples(st.just("fork"), st.sampled_from(["x", "y/z"]), PATHS),
)


class TestHistoryView(ViewContract):
    """The view keeps the contract of views."""

    @pytest.fixture
    def view(self) -> HistoryView:
        return HistoryView()


class TestWithForks(ViewContract):
    """The same with forks that begin, change and end, and a HEAD that jumps."""

    @pytest.fixture
    def view(self) -> HistoryView:
        return HistoryView()

    def history(self, database: Database) -> Iterator[None]:
        with database.transaction(actor="ann", message="first") as transaction:
            transaction.put(("a",), b"1")
        yield
        first = database.head().root
        with database.transaction(actor="bob") as transaction:
            transaction.set_ref("forks/x", first)
        yield
        with database.transaction(actor="bob", ref="forks/x") as transaction:
            transaction.put(("b",), b"2")
        yield
        with database.transaction(actor="bob") as transaction:
            transaction.set_ref("HEAD", database.resolve_version(fork="x"))
        yield
        with database.transaction() as transaction:
            transaction.set_ref("forks/x", None)
        yield


@contextmanager
def opened() -> Iterator[tuple[Database, ViewReader]]:
    with tempfile.TemporaryDirectory() as directory, Database(FilePath(directory) / "x.svcdb") as database:
        yield database, database.register_view(HistoryView())


def perform(database: Database, operations: list[tuple[Any, ...]]) -> None:
    """One commit; what the present state refuses is left out."""
    for kind, first, second in operations:
        try:
            with database.transaction(actor=kind, message=str(first)) as transaction:
                if kind == "put":
                    transaction.put(first, second)
                elif kind == "delete":
                    transaction.delete(first, recursive=True)
                elif kind in ("move", "copy"):
                    getattr(transaction, kind)(first, second)
                elif kind == "mkdir":
                    transaction.mkdir(first)
                elif kind == "link":
                    transaction.link(first, second)
                elif kind == "restore":
                    sequence = max(1, database.head().sequence - first)
                    transaction.set_ref("HEAD", database.commit(sequence).parent_root)
                else:
                    transaction.set_ref(f"forks/{first}", database.head().root)
        except SvcError:
            continue


def entries_of(database: Database, root: bytes) -> dict[Path, Entry]:
    found: dict[Path, Entry] = dict(database.version_of(root).walk())
    return found


def naive_rows(database: Database) -> dict[Path, list[tuple[int, str, int, Any]]]:
    """What the view should hold, by walking the whole trees before and after every commit."""
    rows: dict[Path, list[tuple[int, str, int, Any]]] = {}
    for commit in database.commits():
        before, after = entries_of(database, commit.parent_root), entries_of(database, commit.root)
        touched = {
            path for path in before.keys() | after.keys() if _differs(before.get(path), after.get(path))
        }
        counts: dict[Path, Counts] = {}
        for path in touched:
            one = _counts(before.get(path), after.get(path))
            for length in range(len(path)):
                counts[path[:length]] = counts.get(path[:length], Counts()).plus(one)
        for path in touched | counts.keys():
            old, new = before.get(path), after.get(path)
            entry = new or old
            directory = not path or (entry is not None and entry.kind is EntryKind.DIRECTORY)
            change = ChangeType.MODIFIED
            if path and old is None:
                change = ChangeType.ADDED
            elif path and new is None:
                change = ChangeType.DELETED
            if directory:
                inside = counts.get(path, Counts())
                if old is not None and old.kind is not EntryKind.DIRECTORY:
                    inside = inside.plus(Counts(deleted=1))
                about: Any = inside
            else:
                assert entry is not None
                if old is not None and new is not None and _content(old) == _content(new):
                    change = ChangeType.UNCHANGED
                about = _content(entry)
            kind = int(EntryKind.DIRECTORY) if entry is None else int(entry.kind)
            rows.setdefault(path, []).append((commit.sequence, change.label, kind, about))
    return {path: one[::-1] for path, one in rows.items()}


def _content(entry: Entry) -> tuple[Any, ...]:
    return (entry.hash, entry.content_type)


def _counts(old: Entry | None, new: Entry | None) -> Counts:
    had = old is not None and old.kind is not EntryKind.DIRECTORY
    has = new is not None and new.kind is not EntryKind.DIRECTORY
    return Counts(int(has and not had), int(has and had), int(had and not has))


def _differs(old: Entry | None, new: Entry | None) -> bool:
    if old is None or new is None or old.kind is not new.kind:
        return True
    if old.kind is not EntryKind.DIRECTORY:
        return old != new
    # A directory of both sides counts by what is in it, and by itself when it has become empty.
    return (
        old != new
        and new.totals is not None
        and not (new.totals.files or new.totals.directories or new.totals.symlinks)
    )


def told(history: History, path: Path) -> list[tuple[int, str, int, Any]]:
    return [(sequence, row.change.label, row.kind, _about(row)) for sequence, row in history.of_path(path)]


def _about(row: PathRow) -> Any:
    return row.counts if isinstance(row, DirectoryRow) else (row.hash, row.content_type)


@given(st.lists(st.lists(OPERATIONS, max_size=3), max_size=8))
def test_the_view_tells_what_the_trees_say(commits: list[list[tuple[Any, ...]]]) -> None:
    with opened() as (database, reader):
        for operations in commits:
            perform(database, operations)
            reader.catch_up()
        followed = reader.read(lambda storage: list(storage.scan()))
        reader.rebuild()
        assert reader.read(lambda storage: list(storage.scan())) == followed
        history = History(database)
        expected = naive_rows(database)
        for path, rows in expected.items():
            assert told(history, path) == rows, path
        sequences = {row[0] for row in expected.get((), [])}
        assert {sequence for sequence, _ in history.commits()} == sequences
        for sequence, row in history.commits():
            assert row.counts == next(one[3] for one in expected[()] if one[0] == sequence)


def test_a_path_of_any_length_has_keys_of_one_length() -> None:
    long = tuple("x" * 255 for _ in range(15))
    other = (*long[:-1], "x" * 254 + "y")
    with opened() as (database, _):
        for path in (long, other, long):
            with database.transaction() as transaction:
                transaction.put(path, str(path == long).encode() + str(database.head().sequence).encode())
        history = History(database)
        assert [sequence for sequence, _ in history.of_path(long)] == [3, 1]
        assert [sequence for sequence, _ in history.of_path(other)] == [2]
        assert [sequence for sequence, _ in history.of_path(long[:1])] == [3, 2, 1]


def test_an_author_is_known_for_each_path_of_a_commit_that_several_made() -> None:
    with opened() as (database, _):
        barrier = Barrier(6)

        def write(name: str) -> None:
            barrier.wait()
            with database.transaction(actor=name, message=f"by {name}") as transaction:
                transaction.put((name, "file"), name.encode())

        threads = [Thread(target=write, args=(name,)) for name in "abcdef"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        history = History(database)
        for name in "abcdef":
            [(sequence, row)] = history.of_path((name, "file"))
            assert joined(history.commit(sequence).authors, row.author) == Author(name, f"by {name}")
            [(_, directory)] = history.of_path((name,))
            assert joined(history.commit(sequence).authors, directory.author).user == name


def test_several_authors_are_joined_by_what_they_agree_on() -> None:
    ann, bob = Author("ann", "one"), Author("bob", "two")
    assert joined((ann, bob), 1) == bob
    assert joined((ann, bob), MIXED) == Author(None, "one\ntwo")
    assert joined((ann, Author("ann", None)), MIXED) == Author("ann", "one")
    assert joined((), MIXED) == joined((), 0) == Author(None, None)


def test_rows_come_back_as_they_went() -> None:
    rows: list[PathRow] = [
        FileRow(ChangeType.DELETED, 2, 2, 1 << 50, b"\x00" * 32, None),
        FileRow(ChangeType.ADDED, 0, 8, 0, b"\xff" * 32, "text/plain"),
        DirectoryRow(ChangeType.MODIFIED, MIXED, Counts(1, 2, 3)),
    ]
    for row in rows:
        assert decode_path(encode_row(row)) == row


def test_what_only_the_system_wrote_is_no_history() -> None:
    with opened() as (database, _):
        with database.transaction() as transaction:
            transaction.put_system(("note",), b"x")
            transaction.set_ref("snapshots/empty", database.head().root)
        assert list(History(database).commits()) == []


def test_a_fork_has_rows_of_its_own_and_head_has_none_of_them() -> None:
    with opened() as (database, _):
        with database.transaction() as transaction:
            transaction.put(("a",), b"1")
        with database.transaction(actor="ann") as transaction:
            transaction.set_ref("forks/x/y", database.head().root)
        with database.transaction(actor="bob", ref="forks/x/y") as transaction:
            transaction.put(("a",), b"2")
            transaction.put(("b",), b"3")
        history = History(database)
        rows = list(history.of_fork("x/y"))
        assert [(row.counts, row.authors[0].user) for _, row in rows] == [
            (Counts(1, 1, 0), "bob"),
            (Counts(), "ann"),
        ]
        assert rows[1][1].parent_root is None
        assert [sequence for sequence, _ in history.commits()] == [1]
        assert list(history.of_path(("b",))) == []
        assert HISTORY_VIEW in database.views()
