"""The view's own work: what commits left for later, a piece at a time, by one process.

A lock on a file keeps others out while something is half done: segments that are being written, files that
are being parsed. A token in the storage tells whether what is remembered here follows from what is stored: a
transaction that was lost, or somebody else's work, makes it begin anew.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Generator
from pathlib import Path as FilePath

from svc.plugin import Version, ViewStorage
from svc_query.indexing import keys
from svc_query.indexing.applying import new_job
from svc_query.indexing.flushing import flush
from svc_query.indexing.jobs import run_job
from svc_query.indexing.maintenance import drop_unused, merge, remove_unknown_directories, wipe
from svc_query.indexing.reconciling import Extensions, Reconciler
from svc_query.indexing.rows import JobRow, State
from svc_query.indexing.table import NUMBER_LIMIT, Table
from svc_query.indexing.waiting import WaitingFiles

__all__ = ["FLUSH_DOCUMENTS", "Worker", "is_long"]

FLUSH_DOCUMENTS = 1_024
"""The tail is flushed when it has so many documents: queries test each of them."""

JOB_FLUSH_DOCUMENTS = 16_384
"""The same while a job goes on, and however many commits come."""

MERGED_AT_ONCE = 8
"""While a job goes on, merges are looked for after so many flushes."""

IDLE_FLUSH_DOCUMENTS = 200
"""The same when so many came at once, with one commit or a job, and there is nothing else to do."""

QUIET_FLUSH_DOCUMENTS = 32
"""The same when no commit has come for ``QUIET_SECONDS``; fewer are tested faster than they are written."""

QUIET_SECONDS = 1.0

FLUSH_BYTES = 32 * 1024 * 1024
"""The tail is flushed when its rows have so many bytes, however many documents they are."""

_LOCK = "work.lock"
_MOST_RETRIED = 1_000
_TURN_SECONDS = 0.25
"""How long files below one top-level directory are brought in while others wait."""
"""Documents that an index did not take, and that a process makes anew when it begins."""


class Worker:
    """Does the work of a view in one process.

    Attributes:
        table, extensions, directory, at: see ``Host``.
        hurries: whether all that can be done is to be done now.
        flush_until: documents with smaller numbers are to be flushed now.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.extensions: Extensions = None  # type: ignore[assignment]
        self.directory: FilePath = None  # type: ignore[assignment]
        self.at: Version = None  # type: ignore[assignment]
        self._lock: int | None = None
        self._locked = FilePath()
        self._token: bytes | None = None
        self._bulk: Generator[None, None, None] | None = None
        self._waiting = WaitingFiles()
        self._turns: dict[str, int] = {}
        self._maintained: tuple[int, int, int] | None = None
        self._is_new = True
        self._has_retried = False
        self._merge_at = 0
        self.hurries = False
        self.flush_until = 0
        self._seen = (-1, 0.0)
        self._last_number = 0
        self._came_at_once = False

    def work(
        self, storage: ViewStorage, at: Version, extensions: Extensions, should_stop: Callable[[], bool]
    ) -> bool | Callable[[], None]:
        """Does some work; returns whether more is left for this process, or what waits for more."""
        assert storage.directory is not None, "the view keeps files"
        if extensions is not self.extensions:
            self._drop_generators()
        self.extensions, self.at = extensions, at
        if not self._take_lock(storage.directory):
            return False
        if self._token is None or storage.get(keys.WORK) != self._token:
            self._drop_generators()
        try:
            more = self._some(storage, should_stop)
        except BaseException:
            self.release()
            raise
        if more:
            self._token = secrets.token_bytes(8)
            storage.put(keys.WORK, self._token)
        else:
            self._let_go()
            self._waiting.trim()
        return more

    def release(self) -> None:
        """Lets another process go on; what is half done is begun anew there."""
        self._let_go()
        self._waiting.close()

    def pause(self) -> None:
        """As ``release``, by who goes on soon: the child processes stay."""
        self._let_go()

    def _let_go(self) -> None:
        self._drop_generators()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _drop_generators(self) -> None:
        bulk, self._bulk = self._bulk, None
        if bulk is not None:
            bulk.close()
        self._waiting.forget()
        self._token = None
        self._is_new = True

    def _take_lock(self, directory: FilePath) -> bool:
        if self._lock is not None and self._locked == directory:
            return True
        self._let_go()
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock, self._locked, self.directory = lock, directory, directory
        return True

    # -- what there is to do -------------------------------------------------------------------

    def _some(self, storage: ViewStorage, should_stop: Callable[[], bool]) -> bool | Callable[[], None]:
        if self._is_new:
            remove_unknown_directories(self)
            self._is_new = False
            if not self._has_retried:
                self._has_retried = True
                self._retry_untaken()
        self._follow_extensions()
        missing = self.extensions.missing(self.table.state)
        if missing is not None:
            # Whoever has it works on; this one holds the lock now, so nobody does.
            if self.table.jobs() or self.table.has_waiting():
                self.extensions.refuse(missing)
            return False
        while True:
            did_bulk = self._bulk_step()
            is_reading = self._waiting.step(self, self.at)
            if not did_bulk:
                return self._waiting.wait if is_reading else False
            if should_stop():
                return True

    def _retry_untaken(self) -> None:
        """Makes documents anew that an index did not take, once in each process: the type may be mended."""
        table = self.table
        left = _MOST_RETRIED
        for place, documents in list(table.untaken()):
            tried = documents[:left]
            left -= len(tried)
            table.set_untaken(place, documents - tried)
            reconciler = Reconciler(table, self.extensions, self.at)
            for number in tried:
                row = table.row(number)
                if row is not None:
                    path = tuple(row.path.split("\x01"))
                    reconciler.path(path, self.at.get(path), number + 1)

    def _follow_extensions(self) -> None:
        """Adds a job over everything where other index types or parsers are in use than before."""
        state, extensions = self.table.state, self.extensions
        if extensions.are_noted(state) or not extensions.may_replace(state):
            return
        if state.documents or state.types or state.parsers:
            until = 0 if state.types == extensions.type_names else state.next_number
            self.table.add_job(new_job((), "extensions", self.at, until))
        extensions.note(self.table.change())

    def _bulk_step(self) -> bool:
        """Does a step of what is not about single files that wait; False when there is nothing."""
        if self._bulk is None:
            self._bulk = self._choose()
            if self._bulk is None:
                return False
        try:
            next(self._bulk)
        except StopIteration:
            self._bulk = None
        return True

    def _choose(self) -> Generator[None, None, None] | None:
        state = self.table.state
        if state.wipes or state.next_number >= NUMBER_LIMIT:
            return self._renew()
        jobs = self.table.jobs_to_do(self.at)
        is_asked = state.flushed < min(self.flush_until, state.next_number)
        is_large = is_long(state) or (not jobs and state.next_number - state.flushed >= FLUSH_DOCUMENTS)
        if is_asked or is_large or (not jobs and self._flushes_early(state)):
            self._came_at_once = False
            return flush(self)
        if jobs and state.flushes < self._merge_at:
            return self._run_job(*self._next_job(jobs))
        if jobs:
            # Queries go on meanwhile: they shall not have to look into ever more segments.
            self._merge_at = state.flushes + MERGED_AT_ONCE
            return merge(self)
        if self._maintained != _maintenance_mark(state):
            return self._maintain()
        return None

    def _flushes_early(self, state: State) -> bool:
        """Whether a tail that is not large is flushed already."""
        came = state.next_number - self._last_number
        self._last_number = state.next_number
        self._came_at_once = self._came_at_once or came >= IDLE_FLUSH_DOCUMENTS
        tail = state.next_number - state.flushed
        if tail < min(QUIET_FLUSH_DOCUMENTS, IDLE_FLUSH_DOCUMENTS):
            return False
        if tail >= IDLE_FLUSH_DOCUMENTS and self._came_at_once and not self.table.has_waiting():
            return True
        return self._is_quiet(state)

    def _is_quiet(self, state: State) -> bool:
        """Whether no commit has come for a moment: whoever reads what was just written waits for no flush."""
        now = time.monotonic()
        if self._seen[0] != state.sequence:
            self._seen = state.sequence, now
        return self.hurries or now - self._seen[1] >= QUIET_SECONDS

    def _next_job(self, jobs: list[tuple[int, JobRow]]) -> tuple[int, float]:
        """Returns the job whose top-level directory has waited longest, and until when it has its turn.

        A directory that was copied with all that it holds keeps those of others from being indexed no longer.
        """
        number, row = min(jobs, key=lambda job: self._turns.get(job[1].top, 0))
        others = any(job.top != row.top for _, job in jobs)
        self._turns = {job.top: self._turns.get(job.top, 0) for _, job in jobs}
        self._turns[row.top] = max(self._turns.values()) + 1
        return number, time.monotonic() + _TURN_SECONDS if others else float("inf")

    def _run_job(self, number: int, until: float) -> Generator[None, None, None]:
        state = self.table.state
        epoch = state.epoch
        while True:
            rows = dict(self.table.jobs())
            state = self.table.state
            if number not in rows or state.epoch != epoch:
                return
            if run_job(self.table, self.extensions, self.at, number, rows[number]):
                return
            if is_long(state) or time.monotonic() >= until:
                return
            yield

    def _maintain(self) -> Generator[None, None, None]:
        mark = _maintenance_mark(self.table.state)
        self._merge_at = 0
        yield from merge(self)
        yield from drop_unused(self)
        # What was dropped is gone for readers that come from now on.
        remove_unknown_directories(self)
        self._maintained = mark

    def _renew(self) -> Generator[None, None, None]:
        """Begins a new numbering: everything goes, and a job over the root brings it back."""
        if not self.table.state.wipes:
            self.table.change().wipes = True
            self.table.add_job(new_job((), "build", self.at))
            yield
        yield from wipe(self)
        self._maintained = None

    @property
    def children(self) -> tuple[int, ...]:
        """Process ids of the child processes that parse files."""
        return self._waiting.children

    def has_lock(self) -> bool:
        """Whether this process is at work."""
        return self._lock is not None


def is_long(state: State) -> bool:
    """Whether the tail is as long as it gets: it is flushed before anything is added."""
    tail = state.next_number - state.flushed
    return tail >= JOB_FLUSH_DOCUMENTS or state.tail_bytes >= FLUSH_BYTES


def _maintenance_mark(state: State) -> tuple[int, int, int]:
    """Changes when there may be something to merge or to drop."""
    return state.flushes, state.dead // 4_096, state.next_configuration
