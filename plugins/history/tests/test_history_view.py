"""The view of the history: the contract of views, and the law that it tells what the trees say.

Each property holds also where a view tells nothing path by path, so that readers compare the trees.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from svc.errors import NotFound, SvcError
from svc.plugin import Commit, Database, Entry, EntryKind, Path, ViewReader
from svc_history.blaming import last_commit
from svc_history.counting import Counter
from svc_history.files import commit_history
from svc_history.log import log_page
from svc_history.reading import History, joined
from svc_history.rows import (
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
from svc_history.view import HISTORY_VIEW, MOST_LISTED, HistoryView
from svc_history.viewer import Viewer
from svc_testing import ViewContract, simulate_collection

NAMES = st.sampled_from(["a", "b", "ä"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
LISTED = st.sampled_from([0, 1, 3, MOST_LISTED])
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), PATHS, st.sampled_from([b"", b"one", b"two"])),
    st.tuples(st.just("delete"), PATHS, st.just(None)),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("copy"), PATHS, PATHS),
    st.tuples(st.just("mkdir"), PATHS, st.just(None)),
    st.tuples(st.just("link"), PATHS, st.just("/a")),
    st.tuples(st.just("restore"), st.integers(0, 5), st.just(None)),
    st.tuples(st.just("put back"), PATHS, st.integers(0, 5)),
    st.tuples(st.just("fork"), st.sampled_from(["x", "y/z"]), PATHS),
    st.tuples(st.just("promote"), st.sampled_from(["x", "y/z"]), st.just(None)),
    st.tuples(st.just("several"), st.lists(st.tuples(PATHS, PATHS), min_size=2, max_size=4), st.just(None)),
)


class TestHistoryView(ViewContract):
    """The view keeps the contract of views."""

    @pytest.fixture
    def view(self) -> HistoryView:
        return HistoryView()


class TestNothingListed(TestHistoryView):
    """The same where every directory that was replaced has one row for all."""

    @pytest.fixture
    def view(self) -> HistoryView:
        return HistoryView(listed=0)


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
def opened(listed: int = MOST_LISTED) -> Iterator[tuple[Database, ViewReader]]:
    with tempfile.TemporaryDirectory() as directory, Database(FilePath(directory) / "x.svcdb") as database:
        yield database, database.register_view(HistoryView(listed))


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
                    transaction.set_ref("HEAD", earlier_root(database, first))
                elif kind == "put back":
                    entry = database.version_of(earlier_root(database, second)).get(first)
                    if entry is not None:
                        transaction.put_entry(first, entry)
                elif kind == "promote":
                    transaction.set_ref("HEAD", database.resolve_version(fork=first))
                elif kind == "several":
                    # A delete, a move or a copy where something stands already, and a put: all in one commit.
                    for number, (path, other) in enumerate(first):
                        if number % 2 and database.at().get(path) is not None:
                            transaction.delete(path, recursive=True)
                            transaction.copy(other, path)
                        else:
                            transaction.put((*path, "x"), b"several")
                else:
                    transaction.set_ref(f"forks/{first}", database.head().root)
        except SvcError:
            continue


def earlier_root(database: Database, back: int) -> bytes:
    root: bytes = database.commit(max(1, database.head().sequence - back)).parent_root
    return root


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


def rows_of_path(history: History, path: Path, before: int | None = None) -> Iterator[tuple[int, PathRow]]:
    for one in history.looked_at(path, before):
        if one.row is not None:
            yield one.sequence, one.row


def shown_rows(history: History, path: Path) -> list[tuple[int, str, int, Any]]:
    return [
        (sequence, row.change.label, row.kind, _about(history, sequence, path, row))
        for sequence, row in rows_of_path(history, path)
    ]


def _about(history: History, sequence: int, path: Path, row: PathRow) -> Any:
    if isinstance(row, FileRow):
        return (row.hash, row.content_type)
    return counted(history.database, sequence, path) if row.counts is None else row.counts


def counted(database: Database, sequence: int, path: Path) -> Counts | None:
    commit = database.commit(sequence)
    return Counter().count(database.version_of(commit.parent_root), database.version_of(commit.root), path)


def paths_of(expected: dict[Path, Any]) -> set[Path]:
    """All that ever was, and some that never was."""
    return {*expected, ("a", "none"), ("none",), ("b", "a", "a", "a", "a")}


@given(LISTED, st.lists(st.lists(OPERATIONS, max_size=3), max_size=8))
def test_the_view_tells_what_the_trees_say(listed: int, commits: list[list[tuple[Any, ...]]]) -> None:
    with opened(listed) as (database, reader):
        for operations in commits:
            perform(database, operations)
            reader.catch_up()
        followed = reader.read(lambda storage: list(storage.scan()))
        reader.rebuild()
        assert reader.read(lambda storage: list(storage.scan())) == followed
        history = History(database)
        expected = naive_rows(database)
        for path in paths_of(expected):
            assert shown_rows(history, path) == expected.get(path, []), path
        sequences = {row[0] for row in expected.get((), [])}
        assert {sequence for sequence, _ in history.commits()} == sequences
        for sequence, row in history.commits():
            counts = counted(database, sequence, ()) if row.counts is None else row.counts
            assert counts == next(one[3] for one in expected[()] if one[0] == sequence)


@given(
    LISTED,
    st.lists(
        st.tuples(st.lists(OPERATIONS, max_size=3), st.booleans(), st.one_of(st.none(), st.integers(0, 3))),
        max_size=8,
    ),
)
def test_collections_leave_what_rebuilding_gives(
    listed: int, commits: list[tuple[list[tuple[Any, ...]], bool, int | None]]
) -> None:
    with opened(listed) as (database, reader):
        for operations, follows, collects in commits:
            perform(database, operations)
            if follows:
                reader.catch_up()
            if collects is not None and database.head().sequence:
                simulate_collection(database, max(1, database.head().sequence - collects))
            if follows:
                reader.work()
            read_everything(database)
        reader.catch_up()
        while reader.work():
            pass
        kept = reader.read(lambda storage: list(storage.scan()))
        reader.rebuild()
        assert reader.read(lambda storage: list(storage.scan())) == kept


def read_everything(database: Database) -> None:
    """Whatever was collected: nobody is told of damage, and nothing is raised."""
    history, viewer = History(database), Viewer(database)
    log_page(history, viewer, path=(), fork=None, limit=100, after=None)
    for path in [("a",), ("b", "a"), *(path for path, _ in database.at().walk())][:5]:
        commit_history(history, viewer, path, limit=100, after=None)
        log_page(history, viewer, path=path, fork=None, limit=100, after=None)
        last_commit(history, viewer, path, database.head().sequence)


@given(LISTED, st.lists(st.lists(OPERATIONS, max_size=3), max_size=6), st.integers(1, 3))
def test_pages_of_any_size_list_what_the_view_tells(
    listed: int, commits: list[list[tuple[Any, ...]]], limit: int
) -> None:
    with opened(listed) as (database, _):
        for operations in commits:
            perform(database, operations)
        history, viewer = History(database), Viewer(database)
        expected = naive_rows(database)
        for path in paths_of(expected):
            rows = expected.get(path, [])
            pages: list[Any] = []
            after: str | None = None
            while True:
                page = commit_history(history, viewer, path, limit=limit, after=after)
                pages += page.rows
                if (after := page.next_cursor) is None:
                    break
            assert [(row["sequence"], row["change_type"], row["entry_type"]) for row in pages] == [
                row[:3] for row in rows
            ]
            assert [row["changes"] for row in pages if "changes" in row] == [
                row[3]._asdict() for row in rows if row[2] == EntryKind.DIRECTORY
            ]
            log: list[Any] = []
            while True:
                page = log_page(history, viewer, path=path, fork=None, limit=limit, after=after)
                log += page.rows
                if (after := page.next_cursor) is None:
                    break
            assert [row["sequence"] for row in log] == [row[0] for row in rows]
            found = last_commit(history, viewer, path, database.head().sequence)
            assert (found and found.origin and found.origin.sequence) == (rows[0][0] if rows else None)


class SplitByAuthor(HistoryView):
    """Sees each change of a commit as a transaction of its own, by the first name of its path."""

    def apply(self, commit: Commit, *args: Any, **options: Any) -> Generator[None]:
        parts = [
            replace(record, actor=change.path[-1], changes=(change,))
            for record in commit.transactions
            for change in record.changes
        ]
        return super().apply(replace(commit, transactions=tuple(parts)), *args, **options)


@pytest.mark.parametrize("listed", [0, MOST_LISTED])
def test_what_several_put_into_a_new_directory_is_of_each_of_them(tmp_path: FilePath, listed: int) -> None:
    with Database(tmp_path / "x.svcdb") as database:
        reader = database.register_view(SplitByAuthor(listed))
        with database.transaction() as transaction:
            transaction.put(("old", "deep", "f"), b"1")
            transaction.put(("gone", "deep", "f"), b"1")
        with database.transaction() as transaction:
            transaction.put(("new", "ann"), b"1")
            transaction.put(("new", "below", "bob"), b"1")
            transaction.copy(("old",), ("new", "cid"))
            transaction.delete(("gone",), recursive=True)
            transaction.mkdir(("new", "dan"))
        history = History(database)
        users = {
            path: joined(history.commit(2).authors, row.author).user
            for path in [
                ("new",),
                ("new", "ann"),
                ("new", "below"),
                ("new", "below", "bob"),
                ("new", "cid"),
                ("new", "cid", "deep", "f"),
                ("new", "dan"),
                ("gone",),
                ("gone", "deep", "f"),
            ]
            for sequence, row in rows_of_path(history, path)
            if sequence == 2
        }
        assert list(users.values()) == [None, "ann", "bob", "bob", "cid", "cid", "dan", "gone", "gone"]
        assert reader.applied == 2


class TestInShortSteps(TestHistoryView):
    """The same where a step is three rows, so that a commit has several."""

    @pytest.fixture
    def view(self, monkeypatch: pytest.MonkeyPatch) -> HistoryView:
        monkeypatch.setattr("svc_history.view._ROWS_PER_STEP", 3)
        return HistoryView()


def test_a_part_of_a_newer_commit_is_not_shown(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(tmp_path / "x.svcdb") as database:
        reader = database.register_view(HistoryView())
        with database.transaction() as transaction:
            transaction.put(("d", "f"), b"1")
        history = History(database)
        first = database.head()
        with database.transaction() as transaction:
            transaction.put(("d", "f"), b"2")
        reader.catch_up()
        # Another process has applied commit 2, of which this one does not know yet.
        monkeypatch.setattr(database, "head", lambda: first)
        for path in ((), ("d",), ("d", "f")):
            assert [sequence for sequence, _ in rows_of_path(history, path)] == [1]
            assert [sequence for sequence, _ in rows_of_path(history, path, 1 << 40)] == [1]
        assert [sequence for sequence, _ in history.commits()] == [1]
        with pytest.raises(NotFound):
            history.commit(2)


def test_a_path_of_any_length_has_keys_of_one_length() -> None:
    long = tuple("x" * 255 for _ in range(15))
    other = (*long[:-1], "x" * 254 + "y")
    with opened() as (database, _):
        for path in (long, other, long):
            with database.transaction() as transaction:
                transaction.put(path, str(path == long).encode() + str(database.head().sequence).encode())
        history = History(database)
        assert [sequence for sequence, _ in rows_of_path(history, long)] == [3, 1]
        assert [sequence for sequence, _ in rows_of_path(history, other)] == [2]
        assert [sequence for sequence, _ in rows_of_path(history, long[:1])] == [3, 2, 1]


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
            [(sequence, row)] = rows_of_path(history, (name, "file"))
            assert joined(history.commit(sequence).authors, row.author) == Author(name, f"by {name}")
            [(_, directory)] = rows_of_path(history, (name,))
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
        assert list(rows_of_path(history, ("b",))) == []
        assert HISTORY_VIEW in database.views()
