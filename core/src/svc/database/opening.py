"""Opening a database: from whatever a crash left to a state that all three parts agree on.

The log is the truth. The key index is used when it belongs to this log and this boot of the machine
(or was closed in order), caught up when it is behind, and made anew when it cannot be trusted.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import lmdb

from svc.database.catch_up import Progress, catch_up
from svc.database.commit import Commit
from svc.database.state import SharedState
from svc.errors import CorruptRecord, DatabaseBusy, InsufficientStorage, SvcError
from svc.hashing import ObjectKind
from svc.log import FIRST, RECORD_HEADER_SIZE, DamagedRegion, Log, Recovery, record_size
from svc.log.framing import decode_header
from svc.objects.key_index import CoverageMark, KeyIndex

__all__ = ["Opened", "open_state"]


@dataclass(slots=True)
class Opened:
    """An opened database.

    Attributes:
        state: log, index and HEAD's cell.
        directory: where what can be rebuilt lives.
        temporary: whether that directory is this opening's own, and goes with it.
        recovery: what was found behind the last commit; None when somebody else has it open.
        rebuilt: whether the key index was made anew.
    """

    state: SharedState
    directory: Path
    temporary: bool
    recovery: Recovery | None
    rebuilt: bool

    def discard_temporary(self) -> None:
        """Deletes the directory when it is this opening's own."""
        if self.temporary:
            shutil.rmtree(self.directory, ignore_errors=True)


def open_state(path: Path, *, read_only: bool, create: bool, progress: Progress | None) -> Opened:
    """Opens a database file and brings log, index and HEAD into agreement; blocks.

    Args:
        path: the ``.svcdb`` file.
        read_only: open for reading; nothing of the database is written.
        create: make it when it is missing.
        progress: called while the key index is being made anew.

    Raises:
        SvcError: as ``Log.open``; ``DatabaseBusy`` when what lies beside the log was removed while
            another process has the database open.
    """
    log = Log.open(path, read_only=read_only, create=create)
    try:
        if read_only:
            return _open_for_reading(log, progress)
        return _open_for_writing(log, progress)
    except BaseException:
        log.close()
        raise


def _open_for_writing(log: Log, progress: Progress | None) -> Opened:
    directory = log.state_directory
    recovery = None
    index = None
    # Others who open the log meanwhile wait for the commit lock, until all parts agree.
    log.acquire_commit_lock()
    try:
        index, mark = _usable_index(log, directory / "index")
        rebuilt = index is None
        if log.alone:
            recovery = _recover(log, mark)
            if index is None:
                KeyIndex.destroy(directory / "index")
                index = KeyIndex(directory / "index")
        elif index is None:
            raise DatabaseBusy(
                f"{directory.name} was removed or replaced while another process has the database open; "
                "stop that process first."
            )
        state = SharedState(log, index, SharedState.cell_of(log))
        _agree(state, mark, log.alone, progress)
    except BaseException:
        if index is not None:
            index.close()
        raise
    finally:
        log.release_commit_lock()
    return Opened(state, directory, False, recovery, rebuilt)


def _recover(log: Log, mark: CoverageMark | None) -> Recovery:
    """Recovers a log that nobody else has open; the caller holds the commit lock.

    A sync that fails is told once: what it lost reads well until the machine is started anew. So it is
    noted in HEAD's cell, and what was not durable before is cut by the next opening.
    """
    cell = SharedState.cell_of(log)
    known = mark.covered if mark is not None else FIRST
    durable = _durable_end(log, known)
    try:
        head = SharedState.present_head(cell) if not log.needs_recovery else None
        if head is not None and head.latched:
            start = max(known, head.commit_end)
            # A commit that says otherwise was made later: the cell is of an earlier course of events.
            if durable <= start:
                return log.recover(start, holding_commit_lock=True, unsynced=True)
        try:
            return log.recover(durable, holding_commit_lock=True, one_batch=True)
        except OSError:
            if head is not None:
                cell.write(replace(head, latched=True).pack())
            raise
    finally:
        cell.close()


def _agree(state: SharedState, mark: CoverageMark | None, alone: bool, progress: Progress | None) -> None:
    """Catches the index up and publishes HEAD; the caller holds the commit lock."""
    if alone:
        start, sequence = (mark.covered, mark.sequence) if mark is not None else (FIRST, 0)
        pending = 0
        try:
            catch_up(state.log, state.index, start, sequence, progress)
        except InsufficientStorage:
            if mark is None:
                raise
            # What an index that can be trusted does not know, nobody was told of: reads need not wait
            # for space, and the next writer finishes it.
            pending = start
        state.publish(replace(state.head_of_index(), pending_from=pending))
    elif state.is_current() and mark is not None and mark.sequence >= state.head().sequence:
        with suppress(InsufficientStorage):
            state.settled_head()
    else:
        # HEAD's cell was lost, or whoever made the index anew was killed.
        state.roll_forward(state.head_of_index())


def _open_for_reading(log: Log, progress: Progress | None) -> Opened:
    index, mark = _usable_index(log, log.state_directory / "index", read_only=True)
    if index is not None and mark is not None:
        state = SharedState(log, index, SharedState.cell_of(log))
        return Opened(state, log.state_directory, False, None, False)
    if log.needs_recovery:
        # Writes nothing here; it tells what of the log's end a recovery would keep.
        log.recover(_durable_end(log, FIRST), one_batch=True)
    directory = Path(tempfile.mkdtemp(prefix="svc-"))
    try:
        index = KeyIndex(directory / "index")
        catch_up(log, index, FIRST, 0, progress)
        return Opened(SharedState(log, index, None), directory, True, None, True)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _usable_index(
    log: Log, directory: Path, read_only: bool = False
) -> tuple[KeyIndex | None, CoverageMark | None]:
    """Returns the index beside a log with its mark, or nothing when it cannot be trusted."""
    index = None
    try:
        if not (directory / "data.mdb").exists():
            return None, None
        index = KeyIndex(directory, read_only)
        mark = index.mark()
        if mark is not None and _covers(log, index, mark):
            return index, mark
    except (lmdb.Error, OSError, SvcError):
        pass
    if index is not None:
        index.close()
    return None, None


def _covers(log: Log, index: KeyIndex, mark: CoverageMark) -> bool:
    """Whether an index is of this very log: the last commit that it knows stands where it says."""
    if mark.database_id != log.database_id or mark.covered > log.storage.size():
        return False
    if mark.sequence == 0:
        return True
    place = index.commit_place(mark.sequence)
    if place is None or place[0] + record_size(place[1]) != mark.covered:
        return False
    stored = index.find(log.read(*place).hash)
    return stored is not None and stored.offset == place[0]


def _durable_end(log: Log, start: int) -> int:
    """Returns an offset before which everything is known to be on disk; damage before it is rot, never torn.

    Every commit states how far the log was durable when it was made. The largest of these counts: an index
    may be older than the log, and a power cut can have hit no more than what lies behind the last statement.

    Args:
        log: the log; its end may be torn.
        start: an offset of which that is known already: where a trusted index ends, or the first record's.
    """
    durable = start
    damaged: list[DamagedRegion] = []
    for record in log.scan_tolerant(start, log.storage.size()):
        if isinstance(record, DamagedRegion):
            damaged.append(record)
        elif record.kind == ObjectKind.COMMIT:
            try:
                payload = log.read_payload(record.offset, record.stored_length)
            except CorruptRecord:
                continue
            stated = Commit.durable_end_of(payload)
            # Behind damage the bytes of a chunk may look like a commit: what cannot be is passed over.
            if durable < stated <= record.offset and _may_begin_at(log, stated, damaged):
                durable = stated
    return durable


def _may_begin_at(log: Log, offset: int, damaged: list[DamagedRegion]) -> bool:
    """Whether a record begins at an offset, as far as the log can be read there."""
    if any(region.offset <= offset < region.end for region in reversed(damaged)):
        return True
    header = log.storage.read(offset, RECORD_HEADER_SIZE)
    return len(header) == RECORD_HEADER_SIZE and decode_header(header, 0, offset) is not None
