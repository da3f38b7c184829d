"""Carries a committed plan out, and says so in the log: at the end of a collection, and after a crash."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from svc.clock import now_ms
from svc.database.collection.plan import Sweeper, decode_plan
from svc.database.collection.record import PLAN_PATH, STATE_PATH, CollectionState, read_state
from svc.database.commit import DatabaseTotals
from svc.database.committer import CommitRequest, Committer
from svc.database.operations import Delete, Put
from svc.database.references import HEAD_NAME
from svc.database.version import Version
from svc.errors import CorruptRecord, InsufficientStorage, ServiceUnavailable, SvcError
from svc.hashing import ObjectKind
from svc.limits import MAXIMUM_TREE_ENTRIES
from svc.log import FIRST, CollectableStorage
from svc.log.creation import FULL
from svc.objects.content import ContentWriter

if TYPE_CHECKING:
    from svc.database.database import Database
    from svc.database.state import SharedState

__all__ = [
    "carry_out",
    "carry_out_at_opening",
    "knows_last_sweep",
    "last_sweep",
    "note_done_at_opening",
]

logger = logging.getLogger(__name__)


def carry_out(
    database: Database,
    pause: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> bool | None:
    """Carries out the plan that stands in the database, if one does; blocks.

    Returns whether the file system could take the space back; None where there was no plan. After
    ``InsufficientStorage`` or ``ServiceUnavailable`` (the disk is full, or failed) the next collection, or
    whoever opens the database, carries the plan out. ``DatabaseLatched``: the disk failed.
    """
    state = database._state
    system = database.system()
    recorded = read_state(system)
    if not recorded.pending:
        return None
    sweeper = Sweeper(state.log.storage, state.sync_ahead, pause)
    end = state.log.tail
    try:
        sweeper.sweep(_plan_of(system, state.log.tail), lambda offset: progress(offset, end))
    except OSError as error:
        raise _failure(error) from error
    with state.commit_lock():
        state.settled_head()
        recount = _begin_recount(state)
    request = _end_request(state, recorded)
    request.recount = recount()
    database.commit_alone(request, lambda head: None)
    return sweeper.can_punch


def last_sweep(state: SharedState) -> bytes:
    """Returns the name of the last plan that HEAD's system tree knows; empty where there was none."""
    return bytes.fromhex(read_state(Version(state.objects, state.head().system_root)).sweep)


def knows_last_sweep(state: SharedState) -> bool:
    """Whether the key index has forgotten what the last collection destroyed.

    One that is older than that, put back from a copy, still holds it: deduplication would find what is gone.
    """
    try:
        sweep = last_sweep(state)
    except SvcError:
        return False  # It cannot even be read by this index.
    return not sweep or sweep in state.index.sweeps()


def carry_out_at_opening(state: SharedState, rebuilt: bool) -> bool:
    """As ``carry_out``, for who opens the log and has it alone; the caller holds the commit lock.

    Returns whether there was a plan: then an index that was made before this holds what is not there any
    more. If the index was ``rebuilt`` in this opening, a disk that is full or fails raises as in
    ``carry_out``. Else it is no reason not to open: the index knows nothing of what is to be destroyed.
    ``CorruptRecord``: the plan cannot be read.
    """
    system = Version(state.objects, state.head().system_root)
    try:
        recorded = read_state(system)
    except CorruptRecord as error:
        if "offset" in error.details:
            raise
        # A repair found that this is lost. What a plan did not get to is collected once more.
        return False
    if not recorded.pending or not isinstance(state.log.storage, CollectableStorage):
        return False
    began = time.monotonic()
    try:
        Sweeper(state.log.storage, state.log.sync).sweep(_plan_of(system, state.log.tail))
    except OSError as error:
        if rebuilt:
            raise _failure(error) from error
        logger.warning("A collection that was interrupted could not be finished: %s", error)
        return False
    logger.info("A collection that was interrupted is finished, in %.1f s", time.monotonic() - began)
    return True


def note_done_at_opening(state: SharedState) -> None:
    """Commits that the plan was carried out; the caller holds the commit lock.

    Where there is no space for it, the plan is carried out again by the next opening, which does no harm.
    """
    recorded = read_state(Version(state.objects, state.head().system_root))
    try:
        request = _end_request(state, recorded)
        request.recount = _begin_recount(state)()
        Committer(state, MAXIMUM_TREE_ENTRIES).commit_locked(request, lambda head: None)
    except InsufficientStorage as error:
        logger.warning("The end of a collection could not be noted: %s", error)


def _failure(error: OSError) -> SvcError:
    if error.errno in FULL:
        return InsufficientStorage("The disk is full; the next collection goes on with what was begun.")
    return ServiceUnavailable(
        f"The disk failed ({error.strerror}); the next collection goes on with what was begun."
    )


def _plan_of(system: Version, end: int) -> Iterator[tuple[int, int]]:
    entry = system.get(PLAN_PATH)
    if entry is None:
        raise CorruptRecord("The plan of a collection that was begun is missing.")
    for run in decode_plan(system.read_all(entry)):
        if not FIRST <= run[0] < run[1] <= end:
            raise CorruptRecord("The plan of a collection names a place where no record can stand.")
        yield run


def _begin_recount(state: SharedState) -> Callable[[], tuple[int, int]]:
    """Returns a function that computes the correction of the totals, so that they match the index.

    The caller holds the commit lock now, but not during the count: that reads the index as it is now.
    """
    sequence = state.head().sequence
    totals = state.read_commit(sequence)[0].totals if sequence else DatabaseTotals()
    count = state.index.begin_count(ObjectKind.CHUNK)

    def recount() -> tuple[int, int]:
        chunks, chunk_bytes = count()
        return chunks - totals.chunks, chunk_bytes - totals.chunk_bytes

    return recount


def _end_request(state: SharedState, recorded: CollectionState) -> CommitRequest:
    ended = CollectionState(
        horizon=recorded.horizon, at_ms=max(now_ms(), recorded.at_ms), sweep=recorded.sweep
    )
    writer = ContentWriter(state.objects, system=True, begin_blocking=state.executor.begin)
    content = writer.store_bytes(ended.encode())
    return CommitRequest(
        HEAD_NAME,
        [Delete(PLAN_PATH, recursive=True, system=True), Put(STATE_PATH, content, None, system=True)],
        content.pending,
        None,
        "Collect garbage: done",
    )
