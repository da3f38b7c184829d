"""Group commit: whoever waits first commits for all who wait with it.

Transactions queue; the first becomes the leader, takes the commit lock, folds everything that is waiting,
appends it, syncs once, indexes it, publishes HEAD and wakes the others. What arrived meanwhile is the next
batch, and its first transaction leads that. No thread of its own is needed, and the same code serves threads
and greenlets: whoever gives up waiting (a killed greenlet, a timeout) stops neither the leader nor those
behind. The queue is bounded: where the disk can't keep up, whoever comes is told when to come back.

A kill between any two steps loses nothing acknowledged: HEAD's cell says that a commit was begun, and the
next holder of the lock finishes it from the log or finds that it never got there.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from msgspec import Struct, field

from svc.collector import collector_paused
from svc.database.commit import Commit
from svc.database.fold import Fold
from svc.database.head import Head
from svc.database.holds import Hold
from svc.database.operations import Operation, OperationResult, SetRef
from svc.database.origins import Origin
from svc.database.state import SharedState
from svc.errors import DatabaseLatched, ServiceUnavailable, SvcError
from svc.hashing import Hash, ObjectKind
from svc.metrics import Histogram, Level
from svc.native_locks import native_lock
from svc.objects.key_index import PackedPlace, Place, pack_place
from svc.objects.store import STORED_CHUNKS, PendingObjects
from svc.steps import Steps, present_steps

__all__ = ["CommitRequest", "Committer"]

_LARGEST_BATCH = 512
_LARGEST_BATCH_BYTES = 16 * 1024 * 1024
_MOST_WAITING = 4096
_MOST_WAITING_BYTES = 64 * 1024 * 1024
_LONGEST_RETRY_SECONDS = 30
_GATHERING_SECONDS = 0.003
_MOST_ON_THE_LOOP = 256
"""Operations and places that are folded and indexed on the event loop, in a millisecond; more in a thread."""

LOCK_SECONDS = Histogram("svc_commit_lock_seconds", "How long a process waited for the commit lock.")
COMMIT_SECONDS = Histogram("svc_commit_seconds", "How long a batch of transactions took to commit.")
COMMIT_TRANSACTIONS = Histogram(
    "svc_commit_transactions",
    "Transactions in a batch.",
    bounds=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
)
WAITING_TRANSACTIONS = Level("svc_commit_waiting_transactions", "Transactions that wait to be committed.")


def _event() -> threading.Event:
    """Returns an event as it is now: gevent's own where gevent came after this module."""
    return threading.Event()


class CommitRequest(Struct, eq=False):
    """One transaction that waits to be committed; without operations, objects that shall be kept.

    Attributes:
        results: one an operation; set when it is committed, as ``sequence``, ``version`` (the root of its
            tree after it) and ``time_ms`` are.
        error: set instead when it failed, until it is raised.
        hold: keeps what it refers to, until it is committed.
        recount: chunks and their stored bytes that are added to the totals; negative for what was collected.
        begins_sweep: whether it brings the plan of a collection.
        has_packs: whether it does so while packs hold commits.
        origins: for operations that were made elsewhere first, by their numbers, where.
        leads: whether it is its turn to commit what waits, and it has not begun.
        wake: set when it leads, and when it was dealt with.
        steps: of the request of HTTP that it is from; None where nobody observes that.
    """

    ref: str
    operations: list[Operation | SetRef]
    pending: PendingObjects
    actor: str | None = None
    message: str | None = None
    results: list[OperationResult] = field(default_factory=list)
    sequence: int = 0
    version: Hash = b""
    time_ms: int = 0
    error: BaseException | None = None
    hold: Hold | None = None
    recount: tuple[int, int] = (0, 0)
    begins_sweep: bool = False
    has_packs: bool = False
    leads: bool = False
    is_done: bool = False
    wake: threading.Event = field(default_factory=_event)
    steps: Steps | None = None
    origins: dict[int, Origin] = field(default_factory=dict)


class Committer:
    """Commits the transactions of one process."""

    def __init__(self, state: SharedState, maximum_entries: int) -> None:
        self._state = state
        self._executor = state.executor
        self._maximum_entries = maximum_entries
        # Of threads, not of greenlets: it is held for microseconds, and a lock of gevent that both share can
        # lose who waits for it.
        self._mutex = native_lock()
        self._queue: deque[CommitRequest] = deque()
        self._queued_bytes = 0
        self._batch_seconds = 0.0
        self._last_batch = 0
        self._has_leader = False
        self._parent: tuple[Commit, Hash] | None = None

    def submit(self, request: CommitRequest) -> None:
        """Commits a transaction and returns when it is durable; blocks.

        When it raises, nothing was applied: an operation's error, ``InsufficientStorage`` when the disk is
        full, ``DatabaseLatched`` after an I/O error, ``ServiceUnavailable`` with ``retry_after`` when too
        much waits already.
        """
        request.steps = present_steps()
        began = time.monotonic()
        try:
            with self._mutex:
                self._admit(request)
                request.leads = not self._has_leader
                self._has_leader = True
            # Callers may hold locks of paths, for which others wait with their turns.
            with self._executor.without_turn(waits_again=False):
                self._wait(request)
        except BaseException:
            self._withdraw(request)
            raise
        if request.steps is not None:
            request.steps.note("commit", began, time.monotonic())
        if request.error is not None:
            _raise_error_of(request)

    def _wait(self, request: CommitRequest) -> None:
        """Waits until a request was dealt with; leads meanwhile when it is its turn.

        Who leads may find that another leader has taken its request: one that leads on though the request
        that it led for was withdrawn. Then it waits for that one.
        """
        while not request.is_done:
            if request.leads:
                self._executor.run_shielded(partial(self._lead_for, request))
                continue
            request.wake.clear()
            if not _has_news(request):
                self._executor.wait_for(request.wake)

    def submit_alone(self, request: CommitRequest, prepare: Callable[[Head], None]) -> None:
        """Commits a transaction by itself, right after ``prepare`` under the same lock; blocks.

        ``prepare`` gets HEAD, and should take milliseconds; if it raises, nothing is committed.
        """
        with self._state.commit_lock():
            self.commit_locked(request, prepare)

    def commit_locked(self, request: CommitRequest, prepare: Callable[[Head], None]) -> None:
        """As ``submit_alone``, for one who holds the commit lock."""
        head = self._writable_head()
        prepare(head)
        fold = self._fold(head, [request])
        if request.error is not None:
            _raise_error_of(request)
        self._write(fold)

    def _writable_head(self) -> Head:
        head = self._state.settled_head()
        if head.latched:
            raise DatabaseLatched("The database takes no writes after an I/O error; see the log and health.")
        return head

    def _admit(self, request: CommitRequest) -> None:
        """Queues a request unless too much waits in memory, by number or bytes; the caller holds the mutex.

        One that is larger than the bound by itself is taken when nothing else waits.
        """
        waiting = len(self._queue)
        is_full = waiting >= _MOST_WAITING or self._queued_bytes + request.pending.size > _MOST_WAITING_BYTES
        if waiting and is_full:
            batches = max(waiting / _LARGEST_BATCH, self._queued_bytes / _LARGEST_BATCH_BYTES)
            seconds = math.ceil(batches * self._batch_seconds)
            raise ServiceUnavailable(
                "Too many writes are waiting for the disk.",
                retry_after=max(1, min(seconds, _LONGEST_RETRY_SECONDS)),
            )
        self._queue.append(request)
        WAITING_TRANSACTIONS.add(1)
        self._queued_bytes += request.pending.size

    def _withdraw(self, request: CommitRequest) -> None:
        """Takes back a request whose submitter waits no longer; one that is being committed goes on."""
        with self._mutex:
            if request in self._queue:
                self._queue.remove(request)
                WAITING_TRANSACTIONS.add(-1)
                self._queued_bytes -= request.pending.size
                if request.leads:
                    self._appoint_leader()

    def _appoint_leader(self) -> None:
        self._has_leader = bool(self._queue)
        if self._queue:
            self._queue[0].leads = True
            self._queue[0].wake.set()

    def _lead_for(self, request: CommitRequest) -> None:
        request.leads = False
        self._lead()

    def _lead(self) -> None:
        """Commits what waits once the lock is there: what comes until then goes along."""
        batch: list[CommitRequest] = []
        began = time.monotonic()
        try:
            self._gather()
            asked = time.monotonic()
            with self._state.commit_lock():
                locked = time.monotonic()
                LOCK_SECONDS.observe(locked - asked)
                batch = self._take_batch()
                _note(batch, "commit.lock", asked, locked)
                is_done = not batch or self._commit(batch)
            if not is_done:
                self._commit_one_by_one(batch)
        except BaseException as error:
            batch = batch or self._take_batch()
            is_answer = isinstance(error, SvcError)
            for request in batch:
                if request.error is None:
                    request.error = (
                        error
                        if is_answer
                        else ServiceUnavailable(
                            "The commit was interrupted; read the path to see whether it was applied."
                        )
                    )
            if not is_answer:
                raise
        finally:
            self._batch_seconds = time.monotonic() - began
            self._hand_over(batch)
            if batch:
                COMMIT_SECONDS.observe(self._batch_seconds)
                COMMIT_TRANSACTIONS.observe(len(batch))

    def _gather(self) -> None:
        """Waits for those who were answered with the last batch, while the loop has other work.

        A commit has a price of its own, whatever it brings: who leads with a few of them would pay it
        twice, and let the rest wait for two syncs. Where another process commits, they come meanwhile.
        """
        log = self._state.log
        if len(self._queue) < self._last_batch and log.try_acquire_commit_lock():
            log.release_commit_lock()
            self._executor.wait_until_idle(_GATHERING_SECONDS)

    def _take_batch(self) -> list[CommitRequest]:
        batch: list[CommitRequest] = []
        size = 0
        with self._mutex:
            while self._queue and len(batch) < _LARGEST_BATCH and size < _LARGEST_BATCH_BYTES:
                batch.append(self._queue.popleft())
                size += batch[-1].pending.size
            self._queued_bytes -= size
            WAITING_TRANSACTIONS.add(-len(batch))
        self._last_batch = len(batch)
        return batch

    def _hand_over(self, batch: list[CommitRequest]) -> None:
        """Wakes those who are done, and the one who leads next."""
        for request in batch:
            request.is_done = True
            request.wake.set()
        with self._mutex:
            self._appoint_leader()

    def _commit(self, batch: list[CommitRequest]) -> bool:
        """Commits a batch under the lock; False when it cannot be folded as a whole, and nothing was done."""
        if sum(len(request.operations) for request in batch) <= _MOST_ON_THE_LOOP:
            return self._fold_and_write(batch)
        with collector_paused():
            return self._fold_and_write(batch)

    def _fold_and_write(self, batch: list[CommitRequest]) -> bool:
        head = self._writable_head()
        try:
            fold = self._fold(head, batch)
        except Exception:
            if len(batch) == 1:
                raise
            return False
        if fold.commits:
            self._write(fold)
            _note(batch, "log.sync", *self._state.last_sync)
        return True

    def _commit_one_by_one(self, batch: list[CommitRequest]) -> None:
        """After a fold that failed as a whole: a damaged directory stops only those who change it."""
        for request in batch:
            request.error = None
            try:
                with self._state.commit_lock():
                    self._commit([request])
            except Exception as error:  # noqa: BLE001
                request.error = error

    def _fold(self, head: Head, batch: list[CommitRequest]) -> Fold:
        size = sum(len(request.operations) + len(request.pending.placed) for request in batch)
        if size <= _MOST_ON_THE_LOOP:
            return self._fold_now(head, batch)
        return self._executor.run_reserved(lambda: self._fold_now(head, batch))

    def _fold_now(self, head: Head, batch: list[CommitRequest]) -> Fold:
        fold = Fold(self._state.objects, head, self._parent_of(head.sequence), self._maximum_entries)
        for request in batch:
            fold.add(request)
        fold.finish()
        return fold

    def _parent_of(self, sequence: int) -> tuple[Commit, Hash] | None:
        if sequence == 0:
            return None
        if self._parent is None or self._parent[0].sequence != sequence:
            self._parent = self._state.read_commit(sequence)
        return self._parent

    def _write(self, fold: Fold) -> None:
        """Appends, syncs, indexes and publishes what was folded: in this order, or not at all."""
        state = self._state
        framed: list[bytes] = []
        places: list[tuple[Hash, Place]] = []
        placed: dict[Hash, PackedPlace] = {}
        for folded in fold.commits:
            framed += folded.records
            places += folded.places
            placed.update(folded.placed)
        # Not on the event loop: the disk takes its time, and others may be writing large pieces just now.
        offset = self._executor.run_reserved(lambda: state.append_and_sync(framed))
        STORED_CHUNKS.add(sum(folded.chunks for folded in fold.commits))
        located: list[tuple[Hash, PackedPlace]] = []
        commits: list[tuple[Commit, Place]] = []
        waiting = iter(fold.commits)
        for (hash, place), record in zip(places, framed, strict=True):
            located.append((hash, pack_place(offset, *place[1:])))
            if place.kind == ObjectKind.COMMIT:
                commits.append((next(waiting).commit, place._replace(offset=offset)))
            offset += len(record)
        located += placed.items()
        try:
            if len(located) <= _MOST_ON_THE_LOOP:
                state.index_and_publish(located, commits)
            else:
                self._executor.run_reserved(lambda: state.index_and_publish(located, commits))
        except Exception as error:
            # It is durable: whoever holds the lock next takes it into the index.
            raise ServiceUnavailable(
                "The write is in the log but could not be shown yet; read the path to see it."
            ) from error
        self._parent = (fold.commits[-1].commit, fold.commits[-1].hash)
        fold.share_nodes()


def _has_news(request: CommitRequest) -> bool:
    """Whether it leads or was dealt with: what it is woken for."""
    return request.is_done or request.leads


def _note(batch: list[CommitRequest], step: str, began: float, ended: float) -> None:
    """Notes a step that all of a batch wait for."""
    for request in batch:
        if request.steps is not None:
            request.steps.note(step, began, ended)


def _raise_error_of(request: CommitRequest) -> NoReturn:
    """Raises it, and lets go of it: else both would keep each other, and the request what it holds."""
    error, request.error = request.error, None
    assert error is not None
    try:
        raise error
    finally:
        del error, request
