"""Opening a database: from whatever a crash left to a state that all three parts agree on.

The log is the truth. The key index is used when it belongs to this log and this boot of the machine
(or was closed in order), caught up when it is behind, and made anew when it cannot be trusted. What is
proved to have been durable must be there, or nothing is written: a reader is shown what is left.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import lmdb
from msgspec import Struct, field
from msgspec.structs import replace

from svc.database.catch_up import Progress, catch_up
from svc.database.collection.finishing import (
    carry_out_at_opening,
    knows_last_sweep,
    last_sweep,
    note_done_at_opening,
)
from svc.database.commit import CommitSummary
from svc.database.findings import (
    SavedEnd,
    ahead_of_clock,
    finding_of_end,
    finding_of_kept,
    finding_of_loss,
    saved_ends,
)
from svc.database.head import Head
from svc.database.history import Covered, History, Proof, examine, proof_of_head, withdraw_claims
from svc.database.needed_paths import NeededPaths
from svc.database.opening_rule import Cell, Found, Index, Verdict, decide
from svc.database.state import SharedState
from svc.errors import CorruptRecord, DatabaseBusy, InsufficientStorage, SvcError
from svc.executor import Executor
from svc.findings import Finding
from svc.log import FIRST, Log, Recovery, Remains, SharedCell, StorageBackend, record_size
from svc.objects.key_index import CoverageMark, KeyIndex

__all__ = ["Opened", "open_state"]

logger = logging.getLogger(__name__)


class Opened(Struct):
    """An opened database.

    Attributes:
        directory: where what can be rebuilt lives; a ``temporary`` one is this opening's and goes with it.
        recovery: what was found behind the last commit; None when somebody else has it open.
        rebuilt: whether the key index was made anew.
        findings: what is wrong with the file, as the opening found it.
        saved: what recoveries have cut from the file, and may be missed.
        given_up: directories of the system tree that repairs have given up; None: nobody has looked yet.
        needed: remembers what was looked at in search of what needs something lost.
    """

    state: SharedState
    directory: Path
    temporary: bool
    recovery: Recovery | None
    rebuilt: bool
    findings: tuple[Finding, ...] = ()
    saved: tuple[SavedEnd, ...] = ()
    given_up: tuple[tuple[str, ...], ...] | None = None
    needed: NeededPaths = field(default_factory=NeededPaths)
    _clock_was_told: bool = False

    def warn_of_clock(self, finding: Finding) -> None:
        """Logs once that the last commit lies ahead of the clock."""
        if not self._clock_was_told:
            self._clock_was_told = True
            _warn(self.state.log, finding)

    def discard_temporary(self) -> None:
        """Deletes the directory when it is this opening's own."""
        if self.temporary:
            shutil.rmtree(self.directory, ignore_errors=True)


def open_state(
    location: str | os.PathLike[str],
    *,
    read_only: bool,
    create: bool,
    progress: Progress | None,
    backends: Mapping[str, StorageBackend],
    executor: Executor,
) -> Opened:
    """Opens a database and brings log, index and HEAD into agreement; blocks.

    Errors as ``Log.open`` and ``Database``; ``DatabaseBusy``: what lies beside a log in use was removed.
    """
    log = Log.open(location, read_only=read_only, create=create, backends=backends)
    try:
        opened = _open_for_reading(log, progress) if read_only else _open_for_writing(log, progress)
        opened.state.use(executor)
        opened.saved = saved_ends(log)
        for finding in (*opened.findings, *(one.finding() for one in opened.saved)):
            _warn(log, finding)
        for finding in ahead_of_clock(opened.state.head()):
            opened.warn_of_clock(finding)
    except BaseException:
        log.close()
        raise
    return opened


def _warn(log: Log, finding: Finding) -> None:
    logger.warning("%s: %s %s", log.storage.name, finding.message, finding.advice)


def _open_for_writing(log: Log, progress: Progress | None) -> Opened:
    directory = log.state_directory
    recovery = None
    index = cell = None
    # Others who open the log meanwhile wait for the commit lock, until all parts agree.
    log.acquire_commit_lock()
    try:
        cell = SharedState.cell_of(log)
        covered, claim = _usable_index(log, directory / "index")
        index = covered.index if covered is not None else None
        mark = covered.mark if covered is not None else None
        rebuilt = index is None
        history = examine(log, covered, _last_of(proof_of_head(log, cell), claim)) if log.alone else None
        plan = None if history is None else _plan(log, cell, mark, history)
        verdict = decide(_found_by_writer(log, cell, mark, history, plan))
        _refuse(verdict, log, history)
        if plan is not None:
            withdraw_claims(log, cell)
            recovery = _recover(log, cell, plan)
        if index is None:
            KeyIndex.destroy(directory / "index")
            index = KeyIndex(directory / "index")
        state = SharedState(log, index, cell)
        _agree(state, mark, verdict, progress)
        if log.alone:
            state, rebuilt = _after_collections(state, cell, rebuilt, progress)
            index = state.index
    except BaseException:
        if index is not None:
            index.close()
        if cell is not None:
            cell.close()
        raise
    finally:
        log.release_commit_lock()
    kept = () if recovery is None or not recovery.damaged else (finding_of_kept(recovery.damaged),)
    return Opened(state, directory, False, recovery, rebuilt, kept)


def _found_by_writer(
    log: Log, cell: SharedCell, mark: CoverageMark | None, history: History | None, plan: _Plan | None
) -> Found:
    """Returns what a writer goes by; where others have the log open, there is neither history nor plan."""
    known = log.storage.tail()
    is_short = known is not None and log.storage.size() < known
    head = plan.head if plan is not None else SharedState.present_head(cell)
    is_behind = head is not None and mark is not None and mark.sequence < head.sequence
    is_lost = history is not None and history.loss is not None
    return Found(
        writes=True,
        alone=log.alone,
        is_lost=is_lost,
        is_short=is_short,
        is_broken=not is_lost and not is_short and plan is not None and plan.keeps_broken(log),
        index=Index.NONE if mark is None else Index.BEHIND if is_behind else Index.LEVEL,
        cell=Cell.NONE if head is None else Cell.LATCHED if plan and plan.unsynced else Cell.HEAD,
    )


def _refuse(verdict: Verdict, log: Log, history: History | None) -> None:
    """Raises what a verdict says. Nothing was changed yet, so the end of a refused log can be examined."""
    if verdict is Verdict.REFUSE_LOST and history is not None and history.loss is not None:
        raise history.loss.error(log)
    if verdict is Verdict.REFUSE_SHORT:
        log.refuse_cut_short()
    if verdict is Verdict.REFUSE_BROKEN and history is not None and history.broken is not None:
        raise history.broken
    if verdict is Verdict.REFUSE_BUSY:
        raise DatabaseBusy(
            f"{log.state_directory.name} was removed or replaced while another process has the database "
            "open; stop that process first."
        )


def _after_collections(
    state: SharedState, cell: SharedCell, rebuilt: bool, progress: Progress | None
) -> tuple[SharedState, bool]:
    """Finishes a begun collection, and rebuilds an outdated index; returns also whether it was made anew."""
    if not rebuilt and not knows_last_sweep(state):
        state, rebuilt = _with_new_index(state, cell, progress), True
    had_plan = carry_out_at_opening(state, rebuilt)
    if had_plan and rebuilt:
        # It was made of records some of which are gone now.
        state = _with_new_index(state, cell, progress)
    if rebuilt:
        with suppress(SvcError):
            if sweep := last_sweep(state):
                state.index.note_sweep(sweep)
    if had_plan:
        note_done_at_opening(state)
    return state, rebuilt


def _with_new_index(state: SharedState, cell: SharedCell, progress: Progress | None) -> SharedState:
    state.index.close()
    directory = state.log.state_directory / "index"
    KeyIndex.destroy(directory)
    made = SharedState(state.log, KeyIndex(directory), cell)
    try:
        _agree(made, None, Verdict.CUT_TORN, progress)
    except BaseException:
        made.index.close()
        raise
    return made


class _Plan(Struct, frozen=True):
    """How a log is recovered: the arguments of ``Log.recover``.

    ``head`` is what the cell says; ``broken``, what the walk met where a commit is missing.
    """

    head: Head | None
    start: int
    broken: CorruptRecord | None
    one_batch: bool = False
    unsynced: bool = False
    unacknowledged: bool = False
    proved: bool = False

    def keeps_broken(self, log: Log) -> bool:
        """Whether a commit is missing before what the recovery would keep."""
        if self.broken is None:
            return False
        kept = log.kept_by_recovery(self.start, one_batch=self.one_batch, unacknowledged=self.unacknowledged)
        return bool(self.broken.details["offset"] < kept)


def _plan(log: Log, cell: SharedCell, mark: CoverageMark | None, history: History) -> _Plan:
    known = mark.covered if mark is not None else FIRST
    durable = history.durable
    head = SharedState.present_head(cell) if not log.needs_recovery else None
    if head is not None and head.latched:
        start = max(known, head.commit_end)
        # A commit that says otherwise was made later: the cell is of an earlier course of events.
        if durable <= start:
            return _Plan(head, start, None, unsynced=True, proved=True)
    # A commit is published before anybody is told of it: of what lies behind the cell's nobody was.
    return _Plan(
        head,
        durable,
        history.broken,
        one_batch=True,
        unacknowledged=head is not None and not history.goes_on,
        proved=head is not None or mark is not None,
    )


def _recover(log: Log, cell: SharedCell, plan: _Plan) -> Recovery:
    """Recovers a log that nobody else has open; the caller holds the commit lock.

    The system reports a failed sync once: lost pages can be read until the machine restarts. So the failure
    is noted in HEAD's cell, and the next opening cuts what was not durable before.
    """
    try:
        return log.recover(
            plan.start,
            holding_commit_lock=True,
            one_batch=plan.one_batch,
            unsynced=plan.unsynced,
            unacknowledged=plan.unacknowledged,
            proved=plan.proved,
        )
    except OSError:
        if plan.head is not None:
            cell.write(replace(plan.head, latched=True).pack())
        raise


def _agree(
    state: SharedState, mark: CoverageMark | None, verdict: Verdict, progress: Progress | None
) -> None:
    """Catches the index up and publishes HEAD; the caller holds the commit lock."""
    if verdict in (Verdict.CUT_TORN, Verdict.CUT_UNSYNCED):
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
    elif verdict is Verdict.OPEN:
        with suppress(InsufficientStorage):
            state.settled_head()
    else:
        # HEAD's cell was lost, or whoever made the index anew was killed.
        state.roll_forward(state.head_of_index())
    if not state.index.knows_packs():
        with suppress(InsufficientStorage):  # the next opening tries again
            state.index_packed_roots()


def _open_for_reading(log: Log, progress: Progress | None) -> Opened:
    cell = SharedState.cell_of(log)
    # The cell first: the index is written before the cell, so that it is never behind what was read here.
    proof = proof_of_head(log, cell)
    covered, claim = _usable_index(log, log.state_directory / "index", read_only=True)
    is_quiet = log.needs_recovery or not (log.storage.size() == log.tail or log.storage.others_present())
    history = examine(log, covered, _last_of(proof, claim), walked=covered is None or is_quiet)
    finding = None if history.loss is None else finding_of_loss(history.loss)
    verdict = decide(_found_by_reader(log, covered, history))
    if covered is not None and verdict is Verdict.INDEX_ASIDE:
        # It cannot be caught up here, and what it shows is not what the log holds.
        covered.index.close()
        covered = None
    remains = _look(log, covered, history, is_quiet)
    if finding is None and remains is not None and remains.may_hold_commit:
        finding = finding_of_end(remains)
    findings = () if finding is None else (finding,)
    if covered is not None:
        state = SharedState(log, covered.index, cell)
        return Opened(state, log.state_directory, False, None, False, findings)
    cell.close()
    directory = Path(tempfile.mkdtemp(prefix="svc-"))
    try:
        index = KeyIndex(directory / "index")
        catch_up(log, index, FIRST, 0, progress)
        state = SharedState(log, index, None)
        state.index_packed_roots()
        return Opened(state, directory, True, None, True, findings)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _found_by_reader(log: Log, covered: Covered | None, history: History) -> Found:
    is_behind = covered is not None and history.last > covered.mark.sequence
    return Found(
        writes=False,
        alone=log.alone,
        is_lost=history.loss is not None,
        is_short=log.is_cut_short,
        is_broken=history.broken is not None,
        index=Index.NONE if covered is None else Index.BEHIND if is_behind else Index.LEVEL,
        cell=Cell.NONE,
    )


def _look(log: Log, covered: Covered | None, history: History, is_quiet: bool) -> Remains | None:
    """Returns what a recovery would cut, and tells the log where; writes nothing."""
    if log.needs_recovery:
        return log.recover(history.durable, one_batch=True).remains
    if covered is None:
        remains = log.recover(history.durable, one_batch=True, unacknowledged=True).remains
        if remains is not None:
            return remains
    tail, size = log.tail, log.storage.size()
    return log.survey(tail, size) if is_quiet and tail < size else None


def _usable_index(log: Log, directory: Path, read_only: bool = False) -> tuple[Covered | None, Proof | None]:
    """Returns the index beside a log if it can be trusted, otherwise what it proves nevertheless."""
    index = None
    claim = None
    try:
        if not (directory / "data.mdb").exists():
            return None, None
        index = KeyIndex(directory, read_only)
        mark = index.mark()
        if mark is not None and mark.database_id == log.database_id:
            if mark.sequence:
                # Only what was durable is ever indexed.
                claim = Proof(mark.sequence, mark.covered)
            covered = _covered(log, index, mark)
            if covered is not None:
                return covered, None
    except DatabaseBusy:
        raise  # Nothing is wrong with it: somebody else is opening it.
    except (lmdb.Error, OSError, SvcError):
        pass
    if index is not None:
        index.close()
    return None, claim


def _covered(log: Log, index: KeyIndex, mark: CoverageMark) -> Covered | None:
    """Returns the index if this log has the index's last commit at the offset it says; else None."""
    if mark.covered > log.storage.size():
        return None
    if mark.sequence == 0:
        return Covered(index, mark, None, None)
    place = index.commit_place(mark.sequence)
    if place is None or place[0] + record_size(place[1]) != mark.covered:
        return None
    record = log.read(*place)
    stored = index.find(record.hash)
    if stored is None or stored.offset != place[0]:
        return None
    return Covered(index, mark, CommitSummary.decode(record.payload), record.hash)


def _last_of(one: Proof | None, other: Proof | None) -> Proof | None:
    """Returns the proof of the later commit; for the same commit, the one that says more."""
    if one is None or other is None:
        return one or other
    return other if other.sequence > one.sequence else one
