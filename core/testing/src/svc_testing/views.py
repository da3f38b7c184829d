"""The contract of views: whatever happens on the way, a view is what rebuilding it would give."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Self, cast

import pytest

from svc_testing.collecting import simulate_collection
from svc_testing.view_storage import MemoryViewStorage, StorageInterrupted

if TYPE_CHECKING:
    from svc.database import CommitStep, Database, View, ViewReader, ViewStorage

__all__ = ["ViewContract"]

MAXIMUM_INTERRUPTIONS = 40
MAXIMUM_WORK = 10_000
"""Calls of ``work`` until nothing may be left."""
COLLECTIONS = 4
"""Histories with collections at places of their own."""
SIZES = (1, 2, 64)
"""How many commits a batch gets at once; a view that takes them one by one is tested with 1 alone."""


class ViewContract:
    """Tests of a view. A subclass gives the fixture ``view``, and may replace ``history``.

    The work of a view is done before its contents are compared.
    """

    @pytest.fixture
    def view(self) -> View:
        """The view under test: a fresh object, bound to a context where it needs one."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'view'.")

    def contents(self, storage: ViewStorage) -> object:
        """What the view holds, in a form that can be compared; replace it for a view that keeps files."""
        return list(storage.scan())

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
            followed = self._finished(reader)
            reader.rebuild()
            assert self._finished(reader) == followed

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
            caught_up = self._finished(reader)
            reader.rebuild()
            assert self._finished(reader) == caught_up

    def test_a_torn_write_leaves_no_trace(self, view: View, tmp_path: Path) -> None:
        """A transaction that breaks off at any of its writes is lost, and applying it anew heals.

        What it wrote to files stays: those may be ahead of the data.
        """
        with self._made(view, tmp_path) as trial:
            for state, commits, whole in trial.transactions(self):
                for writes in range(MAXIMUM_INTERRUPTIONS):
                    interrupted = state.copy(trial.directory(), writes)
                    try:
                        trial.apply(interrupted, commits)
                    except StorageInterrupted:
                        again = MemoryViewStorage(state.contents, interrupted.directory)
                        trial.apply(again, commits)
                        assert trial.finished(self, again, commits) == whole
                    else:
                        break

    def test_a_restart_at_any_step_changes_nothing(self, view: View, tmp_path: Path) -> None:
        """Commits that are cut off behind one of their steps go on from there, to the same data."""
        with self._made(view, tmp_path) as trial:
            for state, commits, whole in trial.transactions(self):
                steps = trial.apply(state.copy(trial.directory()), commits)
                for cut in range(1, min(steps, MAXIMUM_INTERRUPTIONS) + 1):
                    storage = state.copy(trial.directory())
                    trial.apply(storage, commits, cut=cut)
                    again = MemoryViewStorage(storage.contents, storage.directory)
                    left = trial.apply(again, commits, start=cut)
                    assert trial.finished(self, again, commits) == whole
                    assert left in (steps, steps - cut)

    def test_files_that_are_ahead_of_the_data_change_nothing(self, view: View, tmp_path: Path) -> None:
        """A transaction that is lost behind its end, its files written, comes again to the same data."""
        if not view.keeps_files:
            return
        with self._made(view, tmp_path) as trial:
            for state, commits, whole in trial.transactions(self):
                lost = state.copy(trial.directory())
                trial.apply(lost, commits)
                again = MemoryViewStorage(state.contents, lost.directory)
                trial.apply(again, commits)
                assert trial.finished(self, again, commits) == whole

    def test_a_commit_that_comes_twice_changes_nothing_the_second_time(
        self, view: View, tmp_path: Path
    ) -> None:
        """Delivering the last commits again leaves the view as it is."""
        with self._made(view, tmp_path) as trial:
            for state, commits, whole in trial.transactions(self):
                twice = state.copy(trial.directory())
                trial.apply(twice, commits)
                trial.apply(twice, commits)
                assert trial.finished(self, twice, commits) == whole

    def test_batches_of_any_size_give_the_same(self, view: View, tmp_path: Path) -> None:
        """How many commits come at once makes no difference."""
        with self._made(view, tmp_path) as trial:
            results = []
            for size in trial.sizes():
                storage = MemoryViewStorage({}, trial.directory())
                commits: list[CommitStep] = []
                for commits in trial.runs(size):
                    trial.apply(storage, commits)
                results.append(trial.finished(self, storage, commits))
            assert all(result == results[0] for result in results)

    def test_its_directory_belongs_to_its_data(self, view: View, tmp_path: Path) -> None:
        """A view that keeps files gets another directory when its data begin anew, and the old one goes."""
        with _open(tmp_path) as database:
            for _ in self.history(database):
                pass
            reader = database.register_view(view)
            held = self._finished(reader)
            first = reader.read(_directory)
            if not view.keeps_files:
                assert first is None
                return
            assert first is not None
            reader.rebuild()
            second = reader.read(_directory)
            assert second is not None
            assert (second.is_dir(), first.exists(), second.parent) == (True, False, first.parent)
            shutil.rmtree(second)
            assert self._finished(reader) == held

    def test_work_may_be_done_between_commits_and_by_others(self, view: View, tmp_path: Path) -> None:
        """Two openings do a little work in turns while commits come, and rebuilding gives the same."""
        with _open(tmp_path) as database, _open(tmp_path) as other:
            readers = [database.register_view(view), other.register_view(view)]
            if not readers[0].has_work:
                return
            for number, _ in enumerate(self.history(database)):
                readers[number % 2].catch_up()
                for turn in range(number):
                    readers[(number + turn // 2) % 2].work(should_stop=_at_once)
            worked = self._finished(readers[1])
            readers[0].rebuild()
            assert self._finished(readers[0]) == worked
            assert self._finished(readers[1]) == worked

    def test_work_that_is_cut_off_changes_nothing(self, view: View, tmp_path: Path) -> None:
        """Work that breaks off at any of its writes, or ends after any call, is done from what is stored."""
        from svc.database import View

        if type(view).work is View.work:
            return
        with self._made(view, tmp_path) as trial:
            for state, commits, whole in trial.transactions(self):
                applied = state.copy(trial.directory())
                trial.apply(applied, commits)
                for writes in range(MAXIMUM_INTERRUPTIONS):
                    again = trial.work_until_torn(applied.copy(trial.directory(), writes), commits)
                    assert trial.finished(self, again, commits) == whole
                for calls in range(MAXIMUM_INTERRUPTIONS):
                    begun = applied.copy(trial.directory())
                    more = all(trial.work(begun, commits, _at_once) for _ in range(calls))
                    again = MemoryViewStorage(begun.contents, begun.directory)
                    assert trial.finished(self, again, commits) == whole
                    if not more:
                        break

    def test_beginning_at_any_commit_gives_the_same(self, view: View, tmp_path: Path) -> None:
        """A view that starts at HEAD holds what one holds that has followed every commit."""
        if not view.starts_at_head:
            return
        with self._made(view, tmp_path) as trial:
            steps = [step for (step,) in trial.runs(1)]
            storage = MemoryViewStorage({}, trial.directory())
            trial.apply_all(storage, steps)
            followed = trial.finished(self, storage, steps)
            for number in range(len(steps)):
                for calls in (0, 1, MAXIMUM_WORK):
                    storage = MemoryViewStorage({}, trial.directory())
                    trial.start(storage, steps[number])
                    for _ in range(calls):
                        if not trial.work(storage, steps[: number + 1], _at_once):
                            break
                    trial.apply_all(storage, steps[number + 1 :])
                    assert trial.finished(self, storage, steps) == followed

    @pytest.mark.parametrize("seed", range(COLLECTIONS))
    def test_collections_leave_what_rebuilding_gives(self, view: View, tmp_path: Path, seed: int) -> None:
        """The law of views holds over collections at any place, whether the view has kept up or lags behind.

        A collection destroys the trees of commits; what a view held of those, one made anew cannot know.
        """
        chance = Random(seed)
        with _open(tmp_path) as database:
            reader = database.register_view(view)
            for _ in self.history(database):
                if chance.random() < 0.7:
                    reader.catch_up()
                if chance.random() < 0.5:
                    reader.work(should_stop=_at_once)
                if chance.random() < 0.4:
                    self._collect(database, chance)
                if chance.random() < 0.3:
                    self._finished(reader)
            self._collect(database, chance)
            kept = self._finished(reader)
            reader.rebuild()
            assert self._finished(reader) == kept

    def test_a_collection_while_the_view_is_at_work_leaves_what_rebuilding_gives(
        self, view: View, tmp_path: Path
    ) -> None:
        """A view whose transactions end behind each of their steps loses trees in the middle of a commit."""
        from svc.database import views

        with pytest.MonkeyPatch.context() as patched, _open(tmp_path) as database:
            patched.setattr(views, "TRANSACTION_SECONDS", 0.0)
            reader = database.register_view(view)
            for number, _ in enumerate(self.history(database)):
                turns = iter([False] * (2 if number % 4 == 3 else MAXIMUM_WORK))
                reader.catch_up(should_stop=lambda turns=turns: next(turns, True))  # type: ignore[misc]
                if number % 2:
                    simulate_collection(database)
                reader.work(should_stop=_at_once)
            kept = self._finished(reader)
            reader.rebuild()
            assert self._finished(reader) == kept

    def test_commits_that_lose_their_trees_leave_what_records_give(self, view: View, tmp_path: Path) -> None:
        """A view that takes commits without trees ends up alike, whether they had trees when they came."""
        from svc.database import View

        if not view.takes_collected or type(view).collect is View.collect:
            return
        with self._made(view, tmp_path) as trial:
            steps = [step for (step,) in trial.runs(1)]
            for place in range(1, len(steps) + 1):
                bare = [trial.without_trees(step) for step in steps[:place]]
                expected = MemoryViewStorage({}, trial.directory())
                for step in (*bare, *steps[place:]):
                    trial.apply(expected, [step])
                storage = MemoryViewStorage({}, trial.directory())
                for step in steps:
                    trial.apply(storage, [step])
                for step in bare:
                    trial.collect(storage, step)
                    trial.collect(storage, step)
                assert self.contents(cast("ViewStorage", storage)) == self.contents(
                    cast("ViewStorage", expected)
                )

    def _collect(self, database: Database, chance: Random) -> None:
        head = database.head().sequence
        if head:
            simulate_collection(database, chance.randint(max(1, database.horizon()), head))

    def _finished(self, reader: ViewReader) -> object:
        reader.catch_up()
        for _ in range(MAXIMUM_WORK):
            if not reader.work():
                return reader.read(self.contents)
        pytest.fail(f"The work of the view {reader.name} does not end.")

    def _made(self, view: View, directory: Path) -> _Trial:
        database = _open(directory)
        for _ in self.history(database):
            pass
        return _Trial(view, database, directory / "files-of-the-view")


class _Trial:
    def __init__(self, view: View, database: Database, directory: Path) -> None:
        self._view = view
        self._database = database
        self._directory = directory
        self._numbers = count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def directory(self) -> Path | None:
        if not self._view.keeps_files:
            return None
        directory = self._directory / str(next(self._numbers))
        directory.mkdir(parents=True)
        return directory

    def sizes(self) -> Iterator[int]:
        from svc.database.view_batches import most_at_once

        return (size for size in SIZES if size <= most_at_once(self._view))

    def runs(self, size: int) -> Iterator[list[CommitStep]]:
        steps = self._steps()
        while run := list(islice(steps, size)):
            yield run

    def transactions(
        self, contract: ViewContract
    ) -> Iterator[tuple[MemoryViewStorage, list[CommitStep], object]]:
        """Every run of commits of every size, with the data before it and what the view holds after it."""
        for size in self.sizes():
            state = MemoryViewStorage({}, self.directory())
            for commits in self.runs(size):
                after = state.copy(self.directory())
                self.apply(after, commits)
                whole = self.finished(contract, after, commits)
                yield state, commits, whole
                state = after

    def apply(
        self, storage: MemoryViewStorage, commits: list[CommitStep], *, start: int = 0, cut: int | None = None
    ) -> int:
        """Applies commits as one transaction does; returns how many steps that were."""
        batch = self._view.begin(cast("ViewStorage", storage))
        try:
            steps = sum(1 for _ in islice(batch.apply(commits, start) or (), cut))
            batch.end()
        finally:
            batch.close()
        return steps

    def apply_all(self, storage: MemoryViewStorage, commits: list[CommitStep]) -> None:
        size = max(self.sizes())
        for first in range(0, len(commits), size):
            self.apply(storage, commits[first : first + size])

    def without_trees(self, step: CommitStep) -> CommitStep:
        from svc.database.view_horizon import collected_step

        return collected_step(step.commit, step.identity)

    def collect(self, storage: MemoryViewStorage, step: CommitStep) -> None:
        for _ in self._view.collect(step, cast("ViewStorage", storage)) or ():
            pass

    def start(self, storage: MemoryViewStorage, commit: CommitStep) -> None:
        from svc.database import EMPTY_ROOT

        before = self._database.version_of(EMPTY_ROOT)
        self._view.start(cast("ViewStorage", storage), commit._replace(before=before))

    def work(
        self, storage: MemoryViewStorage, commits: list[CommitStep], should_stop: Callable[[], bool]
    ) -> bool:
        """Lets the view work once on top of commits; returns whether more is left."""
        return bool(self._view.work(cast("ViewStorage", storage), commits[-1].after, should_stop))

    def work_until_torn(self, storage: MemoryViewStorage, commits: list[CommitStep]) -> MemoryViewStorage:
        """Lets the view work until a write fails; returns what was committed, with the files as they are."""
        committed = dict(storage.contents)
        try:
            for _ in range(MAXIMUM_WORK):
                if not self.work(storage, commits, _at_once):
                    break
                committed = dict(storage.contents)
        except StorageInterrupted:
            return MemoryViewStorage(committed, storage.directory)
        return MemoryViewStorage(storage.contents, storage.directory)

    def finished(
        self, contract: ViewContract, storage: MemoryViewStorage, commits: list[CommitStep]
    ) -> object:
        """Lets the view do all its work; returns what it holds then."""
        for _ in range(MAXIMUM_WORK):
            if not self.work(storage, commits, _never):
                return contract.contents(cast("ViewStorage", storage))
        pytest.fail("The work of the view does not end.")

    def _steps(self) -> Iterator[CommitStep]:
        from svc.database import CommitStep

        database = self._database
        for commit, identity in database.feed():
            before, after = database.version_of(commit.parent_root), database.version_of(commit.root)
            yield CommitStep(commit, before, after, identity)


def _open(directory: Path) -> Database:
    from svc.database import Database

    return Database(directory / "view.svcdb")


def _at_once() -> bool:
    return True


def _never() -> bool:
    return False


def _directory(storage: ViewStorage) -> Path | None:
    return storage.directory
