"""The contract of views: whatever happens on the way, a view is what rebuilding it would give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from svc.testing.view_storage import InterruptedStorage, MemoryViewStorage, StorageInterrupted

if TYPE_CHECKING:
    from svc.database import Database, View, ViewStorage

__all__ = ["ViewContract"]

MAXIMUM_INTERRUPTIONS = 40


class ViewContract:
    """Tests of a view. A subclass gives the fixture ``view``, and may replace ``history``."""

    @pytest.fixture
    def view(self) -> View:
        """The view under test: a fresh object."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'view'.")

    def history(self, database: Database) -> Iterator[None]:
        """Commits what views may meet, yielding after every commit: every kind of change, and all at once."""
        with database.transaction(actor="someone") as transaction:
            for number in range(5):
                transaction.put(("a", f"{number}.txt"), b"x" * number, content_type="text/plain")
        yield
        with database.transaction() as transaction:
            transaction.put(("a", "0.txt"), b"changed", content_type="text/plain")
        yield
        with database.transaction() as transaction:
            transaction.move(("a", "1.txt"), ("b", "moved.txt"))
            transaction.copy(("a",), ("c", "d"))
        yield
        with database.transaction() as transaction:
            transaction.link(("link",), "/a/0.txt")
            transaction.mkdir(("empty",))
        yield
        with database.transaction() as transaction:
            transaction.delete(("a",), recursive=True)
            transaction.delete(("link",))
        yield
        with database.transaction() as transaction:
            transaction.put(("a", "0.txt"), b"again", content_type="text/plain")
            transaction.delete(("c", "d", "2.txt"))
            transaction.put(("ü", "ß.txt"), b"", content_type="text/plain")
        yield

    def test_name_and_format_are_declared(self, view: View) -> None:
        """A view says what it is called and which layout its data have."""
        assert isinstance(view.name, str)
        assert view.name
        assert "/" not in view.name
        assert isinstance(view.format, int)

    def test_following_each_commit_equals_rebuilding(self, view: View, tmp_path: Path) -> None:
        """The law of views: incremental work gives exactly what a rebuild from the log gives."""
        with _open(tmp_path) as database:
            reader = database.register_view(view)
            for _ in self.history(database):
                reader.catch_up()
            followed = reader.read(_contents)
            reader.rebuild()
            assert reader.read(_contents) == followed

    def test_a_restart_between_commits_changes_nothing(self, view: View, tmp_path: Path) -> None:
        """A view goes on from its mark in another opening of the database."""
        with _open(tmp_path) as database:
            steps = self.history(database)
            for _ in zip(range(2), steps, strict=False):
                database.register_view(view).catch_up()
            for _ in steps:
                pass
        with _open(tmp_path) as database:
            reader = database.register_view(view)
            caught_up = reader.read(_contents)
            reader.rebuild()
            assert reader.read(_contents) == caught_up

    def test_a_torn_write_leaves_no_trace(self, view: View, tmp_path: Path) -> None:
        """A transaction that breaks off at any of its writes is lost, and applying the commit anew heals."""
        with _open(tmp_path) as database:
            for _ in self.history(database):
                pass
            contents: dict[bytes, bytes] = {}
            for sequence in range(1, database.head().sequence + 1):
                whole = _applied(view, database, sequence, MemoryViewStorage(contents))
                for writes in range(MAXIMUM_INTERRUPTIONS):
                    interrupted = InterruptedStorage(contents, writes)
                    try:
                        _applied(view, database, sequence, interrupted)
                    except StorageInterrupted:
                        again = _applied(view, database, sequence, MemoryViewStorage(contents))
                        assert again == whole
                    else:
                        break
                contents = whole

    def test_a_commit_that_comes_twice_changes_nothing_the_second_time(
        self, view: View, tmp_path: Path
    ) -> None:
        """Delivering the last commit again leaves the view as it is."""
        with _open(tmp_path) as database:
            for _ in self.history(database):
                pass
            contents: dict[bytes, bytes] = {}
            for sequence in range(1, database.head().sequence + 1):
                contents = _applied(view, database, sequence, MemoryViewStorage(contents))
                assert _applied(view, database, sequence, MemoryViewStorage(contents)) == contents


def _open(directory: Path) -> Database:
    from svc.database import Database

    return Database(directory / "view.svcdb")


def _contents(storage: ViewStorage) -> list[tuple[bytes, bytes]]:
    return list(storage.scan())


def _applied(view: View, database: Database, sequence: int, storage: MemoryViewStorage) -> dict[bytes, bytes]:
    """What the storage holds after a commit; views take any object with a storage's methods."""
    commit = database.commit(sequence)
    before, after = database.version_of(commit.parent_root), database.version_of(commit.root)
    view.apply(commit, before, after, cast(Any, storage))
    return storage.contents
