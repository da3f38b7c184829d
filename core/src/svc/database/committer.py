"""Group commit: whoever waits first commits for all who wait with it.

Transactions queue; the first becomes the leader, takes the database's commit lock, folds everything
that is waiting, appends it, syncs once, indexes it, publishes HEAD and wakes the others. What arrived
meanwhile is the next batch, and its first transaction leads that. No thread or greenlet of its own is
needed, and the same code serves both.

A kill between any two steps loses nothing acknowledged: HEAD's cell says that a commit was begun, and
the next holder of the lock finishes it from the log or finds that it never got there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from svc.database.commit import Commit
from svc.database.fold import Fold
from svc.database.operations import Operation, OperationResult, SetRef
from svc.database.state import SharedState
from svc.errors import DatabaseLatched, ServiceUnavailable, SvcError
from svc.hashing import Hash, ObjectKind
from svc.objects.key_index import Place
from svc.objects.store import PendingObjects

__all__ = ["CommitRequest", "Committer"]

_LARGEST_BATCH = 512


@dataclass(slots=True, eq=False)
class CommitRequest:
    """One transaction that waits to be committed; without operations, objects that shall be kept.

    Attributes:
        ref: the tree that its operations change.
        operations: what to do, in order.
        pending: the objects that it brings.
        results: set when it is committed, one an operation.
        sequence: number of its commit, version: root of its tree after it, time_ms: when; all set
            when it is committed.
        error: set instead when it failed.
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
    finished: bool = False
    wake: threading.Event = field(default_factory=threading.Event)


class Committer:
    """Commits the transactions of one process.

    Args:
        state: log, index and HEAD cell that all processes share.
        on_commit: called after each batch, outside the lock.
    """

    def __init__(self, state: SharedState, on_commit: Callable[[], None] | None = None) -> None:
        self._state = state
        self._on_commit = on_commit
        self._mutex = threading.Lock()
        self._queue: deque[CommitRequest] = deque()
        self._has_leader = False
        self._parent: tuple[Commit, Hash] | None = None

    def submit(self, request: CommitRequest) -> None:
        """Commits a transaction and returns when it is durable; blocks.

        Raises:
            SvcError: what its operations raised, ``InsufficientStorage`` when the disk is full,
                ``DatabaseLatched`` after an I/O error; nothing of it was applied.
        """
        with self._mutex:
            self._queue.append(request)
            leads = not self._has_leader
            self._has_leader = True
        if not leads:
            request.wake.wait()
        if not request.finished:
            self._lead()
        if request.error is not None:
            raise request.error

    def _lead(self) -> None:
        with self._mutex:
            count = min(len(self._queue), _LARGEST_BATCH)
            batch = [self._queue.popleft() for _ in range(count)]
        try:
            self._commit(batch)
        except BaseException as error:
            outcome = error if isinstance(error, SvcError) else None
            for request in batch:
                if request.error is None:
                    request.error = outcome or ServiceUnavailable(
                        "The commit was interrupted; read the path to see whether it was applied."
                    )
            if outcome is None:
                raise
        finally:
            self._hand_over(batch)
        if self._on_commit is not None:
            self._on_commit()

    def _hand_over(self, batch: list[CommitRequest]) -> None:
        """Wakes those who are done, and the one who leads next."""
        for request in batch:
            request.finished = True
            request.wake.set()
        with self._mutex:
            if self._queue:
                self._queue[0].wake.set()
            else:
                self._has_leader = False

    def _commit(self, batch: list[CommitRequest]) -> None:
        state = self._state
        with state.commit_lock():
            head = state.settled_head()
            if head.latched:
                raise DatabaseLatched(
                    "The database takes no writes after an I/O error; see the log and health."
                )
            fold = Fold(state.objects, head, self._parent_of(head.sequence))
            for request in batch:
                try:
                    fold.add(request)
                except SvcError as error:
                    request.error = error
            fold.finish()
            if fold.commits:
                self._write(fold)

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
        placed: dict[Hash, Place] = {}
        for folded in fold.commits:
            framed += folded.records
            places += folded.places
            placed.update(folded.placed)
        offset = state.append_and_sync(framed)
        located: list[tuple[Hash, Place]] = []
        commits: list[tuple[Commit, Place]] = []
        waiting = iter(fold.commits)
        for (hash, place), record in zip(places, framed, strict=True):
            located.append((hash, place._replace(offset=offset)))
            if place.kind == ObjectKind.COMMIT:
                commits.append((next(waiting).commit, located[-1][1]))
            offset += len(record)
        located += placed.items()
        state.index_and_publish(located, commits)
        self._parent = (fold.commits[-1].commit, fold.commits[-1].hash)
        fold.share_nodes()
