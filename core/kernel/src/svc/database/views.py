"""Views: data that are computed from the commits, with a mark of how far they are.

A view's data and its mark are written in one transaction: after a crash it continues from there, and a
rebuild from the log gives exactly what incremental work gave. The mark names the last commit by its identity:
data of another log are computed anew. A reader names the commit that it must see, and the view catches up
first: clients read their own writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import lmdb

from svc.database.view import View
from svc.database.view_applying import apply_until
from svc.database.view_batches import Applying, BegunCommits
from svc.database.view_damage import Damage, note_damage, read_damage
from svc.database.view_environment import ViewEnvironment
from svc.database.view_files import remove_other_formats
from svc.database.view_horizon import (
    Collecting,
    begins_at_horizon,
    can_go_on,
    commit_to_start_at,
    first_mark,
    restarted,
    tree_at,
)
from svc.database.view_marks import (
    MARK_KEY,
    OTHER_MARK_KEY,
    ViewMark,
    mark_is_of_log,
    storage_directory,
)
from svc.database.view_storage import ViewStorage
from svc.database.view_work import More, ViewWork
from svc.errors import InvalidInput, ServiceUnavailable
from svc.findings import describe_failure
from svc.objects.environments import SharedEnvironment

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["ViewReader"]

T = TypeVar("T")

COMMITS_PER_TRANSACTION = 512
TRANSACTION_SECONDS = 0.2
CHANGES_PER_TRANSACTION = 2000
"""Each may change a page of its own, and LMDB keeps the memory of all that it has ever changed at once."""

_READ_ATTEMPTS = 8


class ViewFailure(NamedTuple):
    """That a view could not be applied in this process, or could not do its work.

    ``applied`` is the last commit that was in it; ``reason``, what was raised, is a sentence without secrets.
    """

    applied: int
    reason: str
    since_ms: int


class ViewReader:
    """A view of one open database.

    Args:
        database: the database whose feed is followed.
        view: what to compute.
        directory: where the data of all views live.
    """

    def __init__(self, database: Database, view: View, directory: FilePath) -> None:
        self._database = database
        self._executor = database.executor
        self._view = view
        self._views = directory
        self._directory = storage_directory(directory, view)
        self._data = ViewEnvironment(
            view.name, self._directory, database.executor, read_only=database.read_only
        )
        # The last mark that was found to be of this log: looking at it again costs a comparison.
        self._good: tuple[bytes, ViewMark] | None = None
        self._begun: BegunCommits | None = None
        self._begun_aside: BegunCommits | None = None
        self._collecting = Collecting(database)
        # The horizon that the data were found to be by.
        self._collected = 0
        self._failure: ViewFailure | None = None
        self._work = ViewWork()

    @property
    def name(self) -> str:
        """The view's name."""
        return self._view.name

    @property
    def applied(self) -> int:
        """Number of the last commit that is wholly in the view."""
        with self._data.watched():
            with self._data.open().begin() as transaction:
                mark = self._mark(transaction)
            return self._executor.run(self._take_over) if mark is None else mark.applied

    @property
    def has_work(self) -> bool:
        """Whether there may be work beside what follows from commits: of its own, or behind a collection."""
        return self._works or self._database.horizon() > self._collected

    @property
    def _works(self) -> bool:
        return type(self._view).work is not View.work

    @property
    def _may_be_full(self) -> bool:
        return type(self._view).is_full is not View.is_full

    def failure(self) -> ViewFailure | None:
        """Why the view does not get on in this process; None when it does, or another has brought it on."""
        failure = self._failure
        if failure is not None:
            with self._data.open().begin() as transaction:
                mark = self._mark(transaction)
            if mark is not None and mark.applied > failure.applied:
                failure = self._failure = None
        return failure

    def damage(self) -> Damage | None:
        """Damage that was found of late in the view's data, by any process; they were made anew then."""
        return read_damage(self._directory)

    def note_damage(self, reason: str) -> None:
        """Tells of damage in files of the view's own, some of which it makes anew by itself: log, findings.

        Args:
            reason: what is damaged, a sentence without secrets.
        """
        note_damage(self._directory, self._view.name, reason)

    def use(self, view: View) -> None:
        """Goes on with another object of the same view, whose plugin has got other settings perhaps.

        Raises:
            InvalidInput: its data are not those of the view that it replaces.
        """
        present = self._view
        if (view.name, view.format, view.keeps_files) != (present.name, present.format, present.keeps_files):
            raise InvalidInput(f"The view {view.name} has other data than the view {present.name}.")
        self._view = view

    def read(self, function: Callable[[ViewStorage], T], *, minimum: int | None = None) -> T:
        """Calls a function with the view's data, once they hold what the caller must see.

        Rows of a commit that is half applied may be among them.

        Args:
            function: reads from the storage; what it returns is returned. The storage is only valid
                inside it.
            minimum: number of the commit that must be in the view; None, or one that is not made yet,
                means HEAD's. Blocks until the view has caught up.

        Raises:
            ServiceUnavailable: another database keeps its views in the same place.
            DamagedView: the data are damaged, and were made anew, or begin to be.
        """
        with self._data.watched():
            return self._read(function, minimum)

    def _read(self, function: Callable[[ViewStorage], T], minimum: int | None) -> T:
        for _ in range(_READ_ATTEMPTS):
            needed = self._needed(minimum)
            shared = self._data.open()
            with shared.begin() as transaction:
                mark = self._mark(transaction)
                if mark is not None and mark.applied >= needed:
                    storage = self._storage(transaction, shared, mark)
                    try:
                        return function(storage)
                    except FileNotFoundError:
                        # Another process has just begun anew, with another directory.
                        if storage.directory is None or storage.directory.is_dir():
                            raise
            self.catch_up(needed)
        raise ServiceUnavailable(
            f"The view {self._view.name} is computed anew again and again: another program follows another "
            "database in the same place.",
            retry_after=1,
        )

    def catch_up(self, minimum: int | None = None, *, should_stop: Callable[[], bool] = lambda: False) -> int:
        """Applies what the feed holds up to a commit; returns the number of the last one in the view.

        That is a smaller one when the view ``is_full``: whoever wants more lets it ``work``
        first, or waits until another process has done so.

        Args:
            minimum: number of the commit; None means HEAD's.
            should_stop: asked after every transaction, which take 0.2 seconds and a step of the view each;
                when it says so, this returns although the view has not caught up.
        """
        needed = self._needed(minimum)
        applied = self.applied
        with self._data.watched():
            while applied < needed and not should_stop():
                reached = self._executor.run(self._apply_some)
                if reached is None:
                    break
                applied = reached
        return applied

    def work(self, *, should_stop: Callable[[], bool] = lambda: False) -> bool:
        """Lets the view do some of its own work, in one transaction; returns whether more is left.

        A commit that is half applied comes first: then this goes on with it. Behind a collection the data
        are first brought to what they would be if they were made anew. Takes 0.2 seconds and a step of the
        view. In a server it runs in a thread, and blocks the greenlet that calls it.

        Args:
            should_stop: asked by the view every few milliseconds; when it says so, the rest is left.

        Raises:
            InsufficientStorage: the disk is full. What the view itself raises passes; nothing of the
                transaction is kept then.
        """
        with self._data.watched():
            return self.has_work and self._executor.run(self._work_some, should_stop)

    def rebuild(self) -> None:
        """Forgets the view's data and computes them anew: from the first commit there is, or as it starts.

        The view's own work is not done here.
        """
        with self._data.watched():
            shared = self._data.open()
            with self._data.writing(shared) as transaction:
                self._empty(shared, transaction)
        self.catch_up()

    def close(self) -> None:
        """Closes the view's data."""
        self._data.close()
        for begun in (self._begun, self._begun_aside):
            if begun is not None:
                begun.batch.close()
        self._begun = self._begun_aside = None
        self._data.remove()

    def remove_other_formats(self) -> None:
        """Removes what programs with other formats of this view left; nobody may have the database open."""
        remove_other_formats(self._views, self._view.name, self._directory)

    def _needed(self, minimum: int | None) -> int:
        head = self._database.head().sequence
        return head if minimum is None else min(minimum, head)

    def _apply_some(self) -> int | None:
        """Applies a transaction of commits, in a plain thread without a greenlet switch. None: full."""
        shared = self._data.open()
        deadline = time.monotonic() + TRANSACTION_SECONDS
        work = Applying(self._view)
        try:
            with self._database.hold(), self._data.writing(shared) as transaction:
                self._work.look(transaction)
                mark = self._mark(transaction)
                horizon = self._database.horizon()
                if mark is None or not can_go_on(work.view, mark, horizon):
                    mark = self._empty(shared, transaction)
                elif (
                    self._may_be_full
                    # What is begun, or what a collection overtook, goes on.
                    and not mark.steps
                    and mark.applied >= horizon
                    and work.view.is_full(self._storage(transaction, shared, mark))
                ):
                    self._work.note(transaction, changes=False)
                    return None
                begun, self._begun = self._begun, None
                mark = self._apply_to(shared, transaction, mark, work, begun, deadline)
                transaction.put(MARK_KEY, mark.pack())
                self._work.note(transaction, changes=True)
        except BaseException as error:
            work.close()
            self._note_failure(error)
            raise
        if work.begun is None:
            work.close()
        # Only what was committed may be gone on with.
        self._begun, self._good, self._failure = work.begun, (mark.pack(), mark), None
        return mark.applied

    def _apply_to(
        self,
        shared: SharedEnvironment,
        transaction: lmdb.Transaction[bytes],
        mark: ViewMark,
        work: Applying,
        begun: BegunCommits | None,
        deadline: float,
    ) -> ViewMark:
        horizon = self._database.horizon()
        mark = restarted(mark, horizon)
        if begun is not None and begun.mark == mark.pack() and begun.view is work.view:
            storage = begun.storage
            storage.move_to(transaction, shared.databases[mark.side], horizon)
            work.batch, work.begun = begun.batch, begun
        else:
            if begun is not None:
                begun.batch.close()
            storage = self._storage(transaction, shared, mark)

        def is_over(taken: int) -> bool:
            return (
                taken >= COMMITS_PER_TRANSACTION
                or storage.changes >= CHANGES_PER_TRANSACTION
                or time.monotonic() >= deadline
                # It is asked whether it is full before each call of ``apply``.
                or (taken > 0 and self._may_be_full)
            )

        mark = apply_until(self._database, mark, work, storage, horizon, is_over)
        storage.write()
        return mark

    def _note_failure(self, error: BaseException) -> None:
        self._work.forget()
        if isinstance(error, Exception):
            now_ms = time.time_ns() // 1_000_000
            since_ms = now_ms if self._failure is None else self._failure.since_ms
            applied = 0 if self._good is None else self._good[1].applied
            self._failure = ViewFailure(applied, describe_failure(error), since_ms)

    # -- the view's own work -------------------------------------------------------------------

    def _work_some(self, should_stop: Callable[[], bool]) -> bool:
        """Does one transaction of work, in a plain thread without a greenlet switch."""
        shared = self._data.open()
        deadline = time.monotonic() + TRANSACTION_SECONDS

        def is_over(storage: ViewStorage) -> bool:
            return storage.changes >= CHANGES_PER_TRANSACTION or time.monotonic() >= deadline or should_stop()

        more: More = True
        aside = Applying(self._view)
        try:
            with self._database.hold(), self._data.writing(shared) as transaction:
                self._work.look(transaction)
                horizon = self._database.horizon()
                present = self._mark(transaction)
                mark = present
                if mark is None or not can_go_on(self._view, mark, horizon):
                    mark = self._empty(shared, transaction)
                changes = mark is not present
                if not mark.steps and mark.applied >= horizon:
                    if mark.horizon < horizon:
                        mark = self._follow_horizon(shared, transaction, mark, horizon, aside, is_over)
                        changes = True
                    elif self._works:
                        storage = self._storage(transaction, shared, mark)
                        at = tree_at(self._database, mark)
                        more, wrote = self._work.run(self._view, at, storage, is_over)
                        changes = changes or wrote
                    else:
                        more = False
                    if changes:
                        # Also where nothing but rows that were not there were deleted: it shall count.
                        transaction.put(MARK_KEY, mark.pack())
                self._work.note(transaction, changes=changes)
        except BaseException as error:
            aside.close()
            self._note_failure(error)
            raise
        if aside.begun is None:
            aside.close()
        self._begun_aside = aside.begun
        self._collected = mark.horizon
        if mark.steps or mark.applied < horizon:
            self._apply_some()
        else:
            self._failure = None
        if callable(more):
            more()
        return bool(more)

    # -- behind a collection ---------------------------------------------------------------------

    def _follow_horizon(
        self,
        shared: SharedEnvironment,
        transaction: lmdb.Transaction[bytes],
        mark: ViewMark,
        horizon: int,
        aside: Applying,
        is_over: Callable[[ViewStorage], bool],
    ) -> ViewMark:
        """Brings the data after a collection closer to those of a rebuild; returns their mark."""
        self._work.forget()  # What it keeps in itself is of rows that may go now.
        view = self._view
        if view.takes_collected:
            storage = self._storage(transaction, shared, mark)
            return self._collecting.run(view, mark, horizon, storage, is_over)
        if not begins_at_horizon(view):
            return mark._replace(horizon=horizon)  # It knows HEAD alone.
        if self._view.keeps_files:
            return self._empty(shared, transaction)
        return self._make_aside(shared, transaction, mark, horizon, aside)

    def _make_aside(
        self,
        shared: SharedEnvironment,
        transaction: lmdb.Transaction[bytes],
        mark: ViewMark,
        horizon: int,
        aside: Applying,
    ) -> ViewMark:
        """Makes the data anew in the other database while these are read; returns the mark of these."""
        begun, self._begun_aside = self._begun_aside, None
        made = ViewMark.unpack(transaction.get(OTHER_MARK_KEY))
        usable = (
            made is not None and made.side != mark.side and mark_is_of_log(made, self._database, self._view)
        )
        if made is None or not usable or not can_go_on(self._view, made, horizon):
            transaction.drop(shared.databases[1 - mark.side], delete=False)
            made = first_mark(self._database, self._view, horizon, 1 - mark.side)
        deadline = time.monotonic() + TRANSACTION_SECONDS
        made = self._apply_to(shared, transaction, made, aside, begun, deadline)
        if made.applied < mark.applied or made.steps:
            transaction.put(OTHER_MARK_KEY, made.pack())
            return mark
        transaction.drop(shared.databases[mark.side], delete=False)
        transaction.delete(OTHER_MARK_KEY)
        return made

    # -- the data ------------------------------------------------------------------------------

    def _mark(self, transaction: lmdb.Transaction[bytes]) -> ViewMark | None:
        """The mark of the data; None when they are not of this format, this database and this log."""
        value = transaction.get(MARK_KEY)
        if self._view.keeps_files and not self._data.has_files(transaction):
            return None
        good = self._good
        if good is not None and good[0] == value:
            return good[1]
        mark = ViewMark.unpack(value)
        if value is None or mark is None or not mark_is_of_log(mark, self._database, self._view):
            return None
        self._good = value, mark
        return mark

    def _take_over(self) -> int:
        """Empties data of another format or log, unless another process has done so meanwhile."""
        shared = self._data.open()
        with self._data.writing(shared) as transaction:
            return (self._mark(transaction) or self._empty(shared, transaction)).applied

    def _empty(self, shared: SharedEnvironment, transaction: lmdb.Transaction[bytes]) -> ViewMark:
        self._work.forget()
        for side in shared.databases:
            transaction.drop(side, delete=False)
        transaction.delete(OTHER_MARK_KEY)
        mark = first_mark(self._database, self._view, self._database.horizon())
        started = commit_to_start_at(self._database, self._view)
        if started is not None:
            mark = mark._replace(applied=started.commit.sequence, identity=started.identity)
        transaction.put(MARK_KEY, mark.pack())
        if self._view.keeps_files:
            self._data.begin_files(transaction)
        if started is not None:
            storage = self._storage(transaction, shared, mark)
            self._view.start(storage, started)
            storage.write()
        return mark

    def _storage(
        self, transaction: lmdb.Transaction[bytes], shared: SharedEnvironment, mark: ViewMark
    ) -> ViewStorage:
        directory = self._data.files_of(transaction) if self._view.keeps_files else None
        horizon = self._database.horizon()
        return ViewStorage(transaction, shared.databases[mark.side], directory, horizon)
