"""The steps of a collection; ``collector`` says what they are for."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from svc.clock import now_ms
from svc.database.collection.finishing import carry_out
from svc.database.collection.garbage import Batch, Garbage, YoungChunks, find_garbage
from svc.database.collection.kept_commits import first_kept, needed_roots
from svc.database.collection.marking import Marker
from svc.database.collection.measuring import Measure
from svc.database.collection.packing import LoggedCommits, pack_commits
from svc.database.collection.record import PLAN_PATH, STATE_PATH, CollectionState, read_state
from svc.database.collection.report import CollectionProgress, CollectionReport
from svc.database.committer import CommitRequest
from svc.database.head import Head
from svc.database.holds import Phase
from svc.database.operations import Put
from svc.database.packed_commits import PACKS_PATH
from svc.database.references import HEAD_NAME
from svc.errors import CorruptRecord
from svc.hashing import Hash
from svc.log import FIRST, CollectableStorage
from svc.objects.content import StoredContent
from svc.objects.key_index import Place
from svc.objects.store import PendingObjects

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["Collection"]

_LOCKED_SECONDS = 0.012
"""How long others may be kept from committing at once."""

_SMALLEST_BATCH, _LARGEST_BATCH = 16, 4096
_WORTH_BYTES = 256 * 1024
"""Less than this of the system tree alone is left: each collection itself makes some."""

_ATTEMPTS = 8
_POLL_SECONDS = 0.02
_LITTLE = 1 << 20
_UNKNOWN_PINS = (
    "Only who may write the database can read which chunks clients uploaded ahead: all that were stored in "
    "the last {} hours are counted as needed."
)


class _Stopped(Exception):
    """The collection ends here, in order; the argument says why."""


class _Late(Exception):
    """A commit was faster than the plan, and needs what it was about to destroy."""


class Collection:
    """One collection of a database; the arguments are those of ``collect``."""

    def __init__(
        self,
        database: Database,
        storage: CollectableStorage,
        before: Callable[[], None] | None,
        progress: CollectionProgress | None,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        self._database = database
        self._state = database._state
        self._index = database.objects.index
        self._log = database.objects.log
        self._storage = storage
        self._before = before if before is not None else lambda: None
        self._progress = progress if progress is not None else lambda phase, done, total: None
        self._should_stop = should_stop if should_stop is not None else lambda: False
        self._measure = Measure()
        self._marker = Marker(database.objects, self._tell_marked)
        self._marked = 0  # number of the last commit whose trees are marked
        self._horizon = 0
        self._batch = 256
        self._garbage = Garbage()
        self._upload_ms = 0
        self._knows_pins = True
        self._scanned = 0

    def run(self, *, dry_run: bool, keep_ms: int, upload_ms: int, wait_seconds: float) -> CollectionReport:
        """Collects; arguments and errors as those of ``collect``."""
        self._upload_ms = upload_ms
        report = CollectionReport(allocated_before=self._storage.allocated())
        try:
            if dry_run:
                self._knows_pins = not upload_ms or self._database.may_read_pins()
                if not self._knows_pins:
                    hours = upload_ms / 3_600_000
                    report = replace(report, warning=_UNKNOWN_PINS.format(f"{hours:,g}"))
                self._find(self._database.head(), keep_ms, may_condemn=False)
            else:
                self._begin()
                self._before()
                with self._measure.phase("pack"):
                    pack_commits(self._database, self._settled(), self._locked, self._stop_if_asked)
                try:
                    self._find(self._settled(), keep_ms, may_condemn=True)
                except CorruptRecord:
                    self._restore()
                    raise
                if self._is_worth():
                    report = self._destroy(report, wait_seconds)
                else:
                    self._restore()
                    report = replace(report, warning=self._left_warning())
        except _Stopped as stopped:
            report = replace(report, waiting=str(stopped))
            self._restore()
        if not dry_run:
            self._database.remove_old_pins(now_ms() - upload_ms)
        self._measure.end()
        found = self._garbage
        return replace(
            report,
            versions_scanned=self._scanned,
            live_entries=len(self._marker.live),
            garbage_entries=found.entries,
            reclaimed_bytes=(found.size if self._is_worth() else 0) if dry_run else report.reclaimed_bytes,
            horizon=self._horizon if dry_run else self._database.horizon(),
            allocated_after=self._storage.allocated(),
        )

    # -- the beginning -----------------------------------------------------------------------------

    def _begin(self) -> None:
        generation, _ = self._database.holds.state()
        self._database.holds.publish(generation, Phase.IDLE)
        carry_out(self._database, self._pause)
        self._restore()

    def _settled(self) -> Head:
        """Returns HEAD with everything that stands in the log."""
        with self._state.commit_lock():
            return self._state.settled_head()

    def _restore(self) -> None:
        while self._index.condemned_count():
            self._locked(self._index.restore_all)

    # -- marking -----------------------------------------------------------------------------------

    def _find(self, head: Head, keep_ms: int, may_condemn: bool) -> None:
        since_ms = now_ms() - keep_ms if keep_ms else None
        self._horizon = max(self._database.horizon(), first_kept(self._database, head, since_ms))
        with self._measure.phase("mark"):
            self._scanned += self._marker.mark_root(head.root)
            for _, root in self._database.refs(system=self._database.version_of(head.system_root)):
                self._scanned += self._marker.mark_root(root)
            self._marked = max(0, self._horizon - 1)
            self._mark_commits(head)
            self._mark_pins()
        with self._measure.phase("scan"):
            self._look(head, may_condemn)

    def _mark_commits(self, head: Head) -> None:
        while self._marked < head.sequence:
            roots = needed_roots(self._database, self._marked + 1, head)
            self._scanned += sum(map(self._marker.mark_root, roots[:1]))
            for root in roots[1:]:
                self._marker.mark_root(root)
            self._marked += 1

    def _mark_pins(self) -> None:
        batch: list[Hash] = []
        upload_ms = self._upload_ms if self._knows_pins else 0
        for hash in self._database.pins_since(now_ms() - upload_ms) if upload_ms else ():
            batch.append(hash)
            if len(batch) >= _LARGEST_BATCH:
                self._marker.mark_chunks(batch)
                batch.clear()
        self._marker.mark_chunks(batch)

    def _tell_marked(self, marked: int) -> None:
        self._progress("mark", marked, 0)
        self._measure.sample(marked)
        self._stop_if_asked()

    # -- looking -----------------------------------------------------------------------------------

    def _look(self, head: Head, may_condemn: bool) -> None:
        """Walks the log up to a commit's end and sets apart what is dead."""
        end = max(head.commit_end, FIRST)
        is_packed = LoggedCommits(self._state, head).is_packed
        upload_ms = self._upload_ms
        known_ms = self._database.pins_kept_since() if self._knows_pins else now_ms()
        young = YoungChunks(now_ms() - upload_ms, known_ms if upload_ms else 0)
        tell = partial(self._tell_scanned, end)
        for found, batch in find_garbage(self._log, end, self._marker, young, is_packed, tell):
            self._garbage = found
            self._stop_if_asked()
            if may_condemn:
                self._condemn(batch)
        self._tell_scanned(end, end)

    def _tell_scanned(self, end: int, offset: int) -> None:
        self._progress("scan", offset, end)
        self._measure.sample(len(self._marker.live))
        self._stop_if_asked()

    def _condemn(self, batch: Batch) -> None:
        while batch:
            part = batch[: self._batch]
            del batch[: self._batch]
            self._locked(partial(self._condemn_part, part), len(part))

    def _condemn_part(self, part: Batch, _size: int) -> None:
        self._index.condemn(part)

    def _restore_part(self, part: list[tuple[Hash, Place]], _size: int) -> None:
        self._index.restore([hash for hash, _ in part])

    def _locked(self, work: Callable[[int], object], count: int | None = None) -> None:
        """Does a batch of work under the commit lock: as much as takes some milliseconds."""
        size = self._batch if count is None else count
        with self._state.commit_lock():
            began = time.perf_counter()
            work(size)
            seconds = time.perf_counter() - began
        if seconds > _LOCKED_SECONDS:
            self._batch = max(_SMALLEST_BATCH, int(self._batch * _LOCKED_SECONDS / seconds * 0.8))
        elif size == self._batch and seconds < _LOCKED_SECONDS / 2:
            self._batch = min(_LARGEST_BATCH, self._batch * 2)
        time.sleep(min(seconds, _LOCKED_SECONDS))

    # -- destroying --------------------------------------------------------------------------------

    def _is_worth(self) -> bool:
        found = self._garbage
        return bool(found.user_entries or found.commits) or found.size > _WORTH_BYTES

    def _left_warning(self) -> str | None:
        if not self._garbage.entries:
            return None
        return (
            f"{self._garbage.size:,} bytes of the system's own records are not needed any more: left "
            "until they are more."
        )

    def _destroy(self, report: CollectionReport, wait_seconds: float) -> CollectionReport:
        holds = self._database.holds
        try:
            with self._measure.phase("wait"):
                self._publish_horizon()
                self._open_gate(wait_seconds)
            with self._measure.phase("plan"):
                self._commit_plan()
        except _Stopped:
            holds.publish(holds.state()[0], Phase.IDLE)
            self._revive()
            raise
        except BaseException:
            # What is set apart stays so: the next collection begins by taking it back.
            holds.publish(holds.state()[0], Phase.IDLE)
            raise
        holds.publish(holds.state()[0], Phase.IDLE)
        reclaimed = self._garbage.size
        with self._measure.phase("sweep"):
            can_punch = carry_out(self._database, self._pause, self._tell_swept)
        report = replace(report, reclaimed_bytes=reclaimed)
        return replace(report, warning=self._warning(report, bool(can_punch)))

    def _publish_horizon(self) -> None:
        state = CollectionState(
            horizon=self._horizon, at_ms=now_ms(), sweep=read_state(self._database.system()).sweep
        )
        with self._database.transaction(message="Collect garbage") as transaction:
            transaction.put_system(STATE_PATH, state.encode())

    def _open_gate(self, wait_seconds: float) -> None:
        """Begins a new generation, and waits until nobody holds an earlier one."""
        holds = self._database.holds
        generation = holds.begin_generation()
        began = time.monotonic()
        while holds.is_held_before(generation):
            waited = time.monotonic() - began
            if waited > wait_seconds:
                raise _Stopped(
                    f"Somebody has been reading or writing for more than {wait_seconds:g} seconds what was "
                    "about to be destroyed; the next collection goes on."
                )
            self._progress("wait", int(waited * 1000), int(wait_seconds * 1000))
            self._stop_if_asked()
            time.sleep(_POLL_SECONDS)

    def _commit_plan(self) -> None:
        """Makes the plan a part of the database, once nothing that it destroys is needed any more."""
        for _ in range(_ATTEMPTS):
            # A commit that its process could not finish counts too: it is in the log.
            self._catch_up(self._settled())
            if not self._garbage.plan:
                raise _Stopped("All that was found dead came to life again.")
            at_ms = now_ms()
            plan = self._database.store_bytes(self._garbage.plan.encode(at_ms), system=True)
            self._state.sync_ahead()
            sweep = uuid.uuid4()
            state = CollectionState(horizon=self._horizon, pending=True, at_ms=at_ms, sweep=sweep.hex)
            content = self._database.store_bytes(state.encode(), system=True)
            request = CommitRequest(
                HEAD_NAME,
                [Put(PLAN_PATH, plan, None, system=True), Put(STATE_PATH, content, None, system=True)],
                _pending_of(plan, content),
                None,
                "Collect garbage",
            )
            request.begins_sweep = True
            request.has_packs = self._database.system().get(PACKS_PATH) is not None
            try:
                self._database.commit_alone(request, partial(self._take_leave, sweep.bytes))
            except _Late:
                continue
            return
        raise _Stopped("Others were faster than the collection, again and again.")

    def _catch_up(self, head: Head) -> None:
        """Marks what was committed since the last look, and takes out of the plan what it needs."""
        self._mark_commits(head)
        self._mark_pins()
        self._revive()

    def _revive(self) -> None:
        revived = self._marker.revived
        self._garbage.take_out(revived)
        while revived:
            part = revived[-self._batch :]
            self._locked(partial(self._restore_part, part), len(part))
            del revived[-len(part) :]

    def _take_leave(self, sweep: bytes, head: Head) -> None:
        """Under the commit lock, right before the plan is committed: from here on nobody finds the dead."""
        self._mark_commits(head)
        if self._marker.revived:
            raise _Late
        self._index.forget_condemned(lambda offset: offset >> 3 in self._marker.dead, sweep)

    def _tell_swept(self, done: int, total: int) -> None:
        self._progress("sweep", done, total)
        self._measure.sample(len(self._marker.live))

    def _pause(self) -> None:
        time.sleep(0.001)

    def _stop_if_asked(self) -> None:
        if self._should_stop():
            raise _Stopped("The collection was stopped.")

    def _warning(self, report: CollectionReport, can_punch: bool) -> str | None:
        if not can_punch:
            return (
                "The file system cannot give the space of a part of a file back: stop the server and run "
                "'svc compact'."
            )
        gone = (report.allocated_before or 0) - self._storage.allocated()
        if report.reclaimed_bytes > _LITTLE and gone < report.reclaimed_bytes // 10:
            return (
                f"Of {report.reclaimed_bytes:,} bytes that are not needed any more little came back: they "
                "lie in pieces that are smaller than the blocks of the file system."
            )
        return None


def _pending_of(*contents: StoredContent) -> PendingObjects:
    pending = PendingObjects()
    for content in contents:
        pending.absorb(content.pending)
    return pending
