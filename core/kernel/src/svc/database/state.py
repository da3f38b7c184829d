"""What all processes of a database share: the log, the key index, and HEAD's cell.

The order of a commit is kept here: announce, append, sync, index, publish. Whatever step a process
dies after, the next holder of the commit lock brings the three into agreement again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType

import lmdb
from msgspec.structs import replace

from svc.database.catch_up import catch_up
from svc.database.commit import Commit, CommitSummary
from svc.database.head import HEAD_SIZE, Head
from svc.database.packed_commits import PackedCommits, commit_identity, may_be_packed
from svc.errors import CorruptRecord, DatabaseLatched, NotFound, ServiceUnavailable, SvcError
from svc.executor import Executor
from svc.hashing import Hash, ObjectKind
from svc.log import Log, SharedCell, boot_id, record_size
from svc.metrics import Histogram
from svc.objects.key_index import CoverageMark, IndexedCommit, KeyIndex, PackedPlace, Place
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT, ObjectStore

__all__ = ["SharedState"]

logger = logging.getLogger(__name__)

SYNC_SECONDS = Histogram("svc_log_sync_seconds", "How long the disk took to make a commit durable.")


class SharedState:
    """The shared state of one opening of a database; what blocks runs in place until ``use``.

    ``last_sync`` says when that of the last commit of this process began and ended, by ``time.monotonic``.
    """

    def __init__(self, log: Log, index: KeyIndex, cell: SharedCell | None) -> None:
        self.log = log
        self.executor = Executor()
        self.index = index
        self.objects = ObjectStore(log, index)
        self.packs = PackedCommits(self.objects)
        self._cell = cell
        self._boot_id = boot_id()
        self._commit_lock = _CommitLock(log, self.executor)
        self._fixed_head: Head | None = None
        self.last_sync = (0.0, 0.0)
        # One attribute, so that threads see a pair.
        self._seen: tuple[bytes | None, Head | None] = (None, None)

    def use(self, executor: Executor) -> None:
        """Lets an executor run what blocks from now on."""
        self.executor = executor
        self._commit_lock = _CommitLock(self.log, executor)

    @classmethod
    def cell_of(cls, log: Log) -> SharedCell:
        """Opens HEAD's cell beside a log."""
        return SharedCell(log.state_directory / "head", HEAD_SIZE, read_only=log.read_only)

    @staticmethod
    def present_head(cell: SharedCell) -> Head | None:
        """Returns the head that a cell holds, if it was written since the machine started."""
        payload = cell.read()
        head = Head.unpack(payload) if payload is not None else None
        return head if head is not None and head.boot_id == boot_id() else None

    # -- head ----------------------------------------------------------------------------------

    def head(self) -> Head:
        """Returns HEAD as last published by any process; about a microsecond."""
        if self._cell is not None:
            payload = self._cell.read()
            seen, head = self._seen
            if payload is seen and head is not None:
                return head  # the cell gives the same object as long as nobody writes it
            if payload is not None:
                head = Head.unpack(payload)
                if head.boot_id == self._boot_id:
                    self._seen = (payload, head)
                    return head
        if self._fixed_head is None:
            self._fixed_head = self.head_of_index()
        return self._fixed_head

    def publish(self, head: Head) -> None:
        """Makes a head the one that every process sees."""
        self._fixed_head = head
        if self._cell is not None:
            payload = head.pack()
            self._cell.write(payload)
            self._seen = (payload, head)

    def head_of_index(self) -> Head:
        """Returns the head that the key index's last commit gives."""
        mark = self.index.mark()
        if mark is None or mark.sequence == 0:
            return Head(0, EMPTY_ROOT, EMPTY_SYSTEM_ROOT, 0, mark.covered if mark else 0, 0, self._boot_id)
        place = self.index.commit_place(mark.sequence)
        if place is None:
            raise NotFound(f"There is no commit {mark.sequence}.")
        commit = Commit.decode(self.log.read(*place).payload)
        return self._head_after(commit, mark.covered)

    def _head_after(self, commit: Commit, end: int) -> Head:
        return Head(commit.sequence, commit.root, commit.system_root, commit.time_ms, end, 0, self._boot_id)

    def read_commit(self, sequence: int) -> tuple[Commit, Hash]:
        """Returns a commit and the identity of its record."""
        payload, hash = self.commit_payload(sequence)
        return Commit.decode(payload), hash

    def commit_payload(self, sequence: int) -> tuple[bytes, Hash]:
        """As ``read_commit``, but gives the record's payload."""
        place = self.index.commit_place(sequence)
        if place is None:
            found = self._packed(sequence)
            if found is None:
                raise NotFound(f"There is no commit {sequence}.")
            return found
        return self.commit_payload_at(sequence, *place)

    def commit_payload_at(self, sequence: int, offset: int, stored_length: int) -> tuple[bytes, Hash]:
        """As ``commit_payload``, for a commit whose place is known: a sweep may have taken it since."""
        try:
            record = self.log.read(offset, stored_length)
            if record.kind is ObjectKind.COMMIT:
                return record.payload, record.hash
            damage = CorruptRecord(f"Commit {sequence} does not stand where it should.", offset=offset)
        except CorruptRecord as error:
            damage = error
        found = None
        with suppress(SvcError):
            found = self._packed(sequence)
        if found is None:
            raise damage
        return found

    def index_packed_roots(self) -> None:
        """Takes the roots of packed commits into an index that was made anew; the caller holds the lock.

        A pack that is damaged is left out; a repair that restores it calls this again.
        """
        root = self.head().system_root
        ranges: set[int] = set()
        with suppress(CorruptRecord):
            ranges = self.packs.ranges(root)
        for last in sorted(ranges):
            with suppress(CorruptRecord):
                commits = [Commit.decode(payload) for payload in self.packs.beside(root, last).values()]
                self.index.add_roots([(one.sequence, one.root, one.ref_roots()) for one in commits])
        self.index.note_packs()

    def packed_beside(self, sequence: int) -> Mapping[int, bytes]:
        """Returns the packed payloads of a commit's range by their numbers, in order; empty for none."""
        while True:
            root = self.head().system_root
            try:
                return self.packs.beside(root, sequence)
            except CorruptRecord:
                if self.head().system_root == root:
                    raise  # else a collection may have taken the way to it

    def _packed(self, sequence: int) -> tuple[bytes, Hash] | None:
        if not (may_be_packed(sequence) and sequence < self.head().sequence):
            return None
        payload = self.packed_beside(sequence).get(sequence)
        return None if payload is None else (payload, commit_identity(payload))

    # -- writing, under the commit lock ----------------------------------------------------------

    def commit_lock(self) -> AbstractContextManager[None]:
        """Holds the lock that one process at a time commits under; blocks without stopping greenlets."""
        return self._commit_lock

    def settled_head(self) -> Head:
        """Returns HEAD, after finishing a commit whose process died; the caller holds the commit lock."""
        head = self.head()
        if head.pending_from and not head.latched:
            head = self.roll_forward(head)
        return head

    def roll_forward(self, head: Head) -> Head:
        """Indexes and publishes whole commits behind HEAD's, and cuts a torn one; under the commit lock."""
        try:
            self.log.append(())  # cuts what an appender left that was killed
        except OSError as error:
            raise self._latch(error) from error
        self._sync()
        found = catch_up(self.log, self.index, head.commit_end, head.sequence)
        settled = self._head_after(found.commit, found.end) if found.commit is not None else head
        settled = replace(settled, pending_from=0, latched=False)
        self.publish(settled)
        return settled

    def append_and_sync(self, records: Sequence[bytes]) -> int:
        """Announces a commit, appends its records in one piece, durably, and returns their offset; blocks.

        Raises:
            InsufficientStorage: the disk is full; the log is as before.
            DatabaseLatched: the sync failed; what the disk holds is uncertain, so no process of this database
                writes again until it is opened anew.
            ServiceUnavailable: another file has the database's name now: nobody would see the write.
        """
        if self.log.storage.is_displaced():
            raise ServiceUnavailable(
                "The database was moved, removed or replaced while it is open, or the directory beside it "
                "was: nothing was written. Put it back, or close it everywhere and open it anew."
            )
        head = self.head()
        self.publish(head.announcing())
        try:
            try:
                offset = self.log.append(records)
            except SvcError:
                self.publish(head)
                raise
            began = time.monotonic()
            self.log.sync()
            self.last_sync = (began, time.monotonic())
            SYNC_SECONDS.observe(self.last_sync[1] - began)
        except OSError as error:
            raise self._latch(error) from error
        return offset

    def sync_ahead(self) -> None:
        """Makes durable what was appended ahead of its commit; the caller does not hold the lock.

        A failure latches the database: the system reports it once, so the commit's own sync would miss it.
        """
        try:
            self.executor.run(self.log.sync)
        except OSError as error:
            failure = error
        else:
            return

        def latch() -> None:
            with self.commit_lock():
                raise self._latch(failure) from failure

        self.executor.run_shielded(latch)

    def _sync(self) -> None:
        try:
            self.executor.run_reserved(self.log.sync)
        except OSError as error:
            raise self._latch(error) from error

    def _latch(self, error: OSError) -> DatabaseLatched:
        self.publish(replace(self.head(), latched=True))
        return DatabaseLatched(
            f"The disk failed ({error.strerror}): the write may be lost, "
            "and the database takes no more writes."
        )

    def index_and_publish(
        self, places: Iterable[tuple[Hash, PackedPlace]], commits: Sequence[tuple[Commit, Place]]
    ) -> None:
        """Indexes durable records and moves HEAD to the last of their commits."""
        last, place = commits[-1]
        end = place.offset + record_size(place.stored_length)
        self.index.write(
            places,
            [
                IndexedCommit(commit.sequence, at.offset, at.stored_length, commit.root, commit.ref_roots())
                for commit, at in commits
            ],
            CoverageMark(end, last.sequence, self.log.database_id),
        )
        self.publish(self._head_after(last, end))

    def leave_clean_index(self) -> None:
        """Marks the log's end and leaves an index that a later boot believes, unless others have it open.

        Where that fails nothing is lost: the index is made anew then, and the log's end is not marked.
        """
        if not self.log.exclude_others() or not self.log.try_acquire_commit_lock():
            return
        try:
            head = self.head()
            if not (head.pending_from or head.latched):
                self._mark_clean_end(head)
                self.index.leave_clean()
        except (lmdb.Error, OSError) as error:
            logger.warning("The key index was not left clean, and may have to be made anew: %s", error)
        finally:
            self.log.release_commit_lock()

    def _mark_clean_end(self, head: Head) -> None:
        """Appends the mark that everything before it is durable, and which commit is the last."""
        place = self.index.commit_place(head.sequence)
        try:
            if place is None or self.log.tail != self.log.storage.size():
                return
            record = self.log.read(*place)
            if CommitSummary.decode(record.payload).durable_end == place[0]:
                return  # an export as it was made: nothing follows its commit
            if self.log.tail != head.commit_end:
                self.log.sync()  # uploads that no commit took
            self.log.mark_clean_end(record.hash, time_ms=max(time.time_ns() // 1_000_000, head.time_ms))
        except (SvcError, OSError) as error:
            logger.warning("The end of the log was not marked: %s", error)

    def close(self) -> None:
        """Closes cell, index and log."""
        if self._cell is not None:
            self._cell.close()
        self.index.close()
        self.log.close()


class _CommitLock:
    """The log's commit lock as a context manager; without state, so that one serves all."""

    def __init__(self, log: Log, executor: Executor) -> None:
        self._log = log
        self._executor = executor

    def __enter__(self) -> None:
        if not self._log.try_acquire_commit_lock():
            self._executor.run_reserved(self._log.acquire_commit_lock)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.release_commit_lock()
