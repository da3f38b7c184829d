"""The steps of a repair, in their order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import lmdb

from svc.clock import now_ms
from svc.database.database import Database
from svc.database.history import History, examine, proof_of_head
from svc.database.needed_paths import note_needed
from svc.database.state import SharedState
from svc.errors import CorruptRecord, DatabaseBusy, SvcError
from svc.log import FIRST, Log, encode_void, record_size
from svc.log.local_file import state_directory_of
from svc.objects.key_index import KeyIndex
from svc_maintenance.repair.file_header import repair_file_header
from svc_maintenance.repair.objects import ObjectRepair, write_report
from svc_maintenance.repair.originals import Overwriter
from svc_maintenance.repair.records import IndexedPlaces, RecordRepair
from svc_maintenance.repair.report import RepairReport
from svc_maintenance.repair.sources import RepairSource, Sources
from svc_maintenance.verification import verify
from svc_maintenance.verification.log_pass import check_log
from svc_maintenance.verification.stretches import Stretch

__all__ = ["repair"]

_MOST_LOSSES = 8
_MOST_ROUNDS = 8

RepairProgress = Callable[[str, int, int], None]
"""Called with (phase, done, total)."""


def repair(
    path: str | os.PathLike[str],
    sources: Sequence[RepairSource] = (),
    *,
    progress: RepairProgress | None = None,
) -> RepairReport:
    """Repairs a database in a file, which nobody else may have open. Blocks: it reads the file several times.

    Whole copies of what is damaged come from ``sources``; the caller closes them.

    Raises:
        DatabaseBusy: somebody else has the file open.
        ForeignFile, UnsupportedFormat, CorruptRecord: it is no database, or its header can't be restored.
        InsufficientStorage: there is no space for the bytes that would be overwritten, or for what is
            fetched. Other errors as ``Database``.
    """
    work = _Repair(Path(path), Sources(sources), progress)
    try:
        return work.run()
    finally:
        work.close()


class _Repair:
    def __init__(self, path: Path, sources: Sources, progress: RepairProgress | None) -> None:
        self._path = path
        self._sources = sources
        self._progress = progress if progress is not None else _tell_nobody
        self._report = RepairReport()
        self._file = Overwriter(path)

    def close(self) -> None:
        self._sources.close()
        self._file.close()

    def run(self) -> RepairReport:
        # Before the log can be opened: whoever has it open did so with a whole header.
        if repair_file_header(self._path, self._file, self._sources):
            self._report.cleaned += 1
        self._repair_log(spare_end=True)
        try:
            database = Database(self._path, create=False)
        except CorruptRecord:
            # What stands behind all that is proved is no crash's either: nobody can say what to keep.
            self._repair_log(spare_end=False)
            database = Database(self._path, create=False)
        with database:
            if self._file.saved_to is not None:
                self._report.saved_to.append(self._file.saved_to.name)
            self._give_up_ends(database)
            ObjectRepair(
                database,
                self._sources,
                self._report,
                lambda done, total: self._progress("versions", done, total),
            ).run()
            found = verify(database, self._progress)
            note_needed(database, found.needed_paths)
            self._report.lost = [one for one in found.lost if one.path is not None]
            self._report.damaged = found.damaged
            self._report.is_complete = found.is_complete
            if self._report.changed:
                write_report(database, self._report)
        return self._report

    def _repair_log(self, *, spare_end: bool) -> None:
        """Repairs the records of the log, and makes it end with a valid commit."""
        for _ in range(_MOST_LOSSES):
            log = Log.open(self._path, create=False)
            try:
                if not log.alone:
                    raise DatabaseBusy(
                        f"{self._path.name} is open elsewhere: a repair needs it for itself. Stop the server "
                        "and whoever else has it open."
                    )
                log.acquire_commit_lock()
                self._repair_records(log, spare_end)
                is_done = self._settle_end(log)
            finally:
                log.close()
            if is_done:
                return
            self._move_state_directory()
        raise CorruptRecord(f"{self._path.name}: what its end should be could not be settled.")

    def _repair_records(self, log: Log, spare_end: bool) -> None:
        size = log.storage.size()
        for _ in range(_MOST_ROUNDS):
            limit = self._durable_end(log) if spare_end else size
            stretches = check_log(log, size, lambda done: self._progress("log", done, size))
            if all(stretch.is_whole for stretch in stretches):
                break
            self._with_index(log, partial(self._repair_stretches, log, stretches, limit))
            self._file.flush()
            # With what is restored there may be more that proves what was durable.
            if not spare_end or self._durable_end(log) <= limit:
                break
        # It is made anew of what is in the log now.
        KeyIndex.destroy(log.state_directory / "index")

    def _repair_stretches(
        self, log: Log, stretches: list[Stretch], limit: int, index: KeyIndex | None
    ) -> None:
        RecordRepair(
            self._file, log.database_id, self._sources, partial(IndexedPlaces, index), limit, self._report
        ).repair(stretches)

    def _durable_end(self, log: Log) -> int:
        return self._examine(log).durable

    def _examine(self, log: Log) -> History:
        cell = SharedState.cell_of(log)
        try:
            return examine(log, None, proof_of_head(log, cell))
        finally:
            cell.close()

    def _with_index(self, log: Log, work: Callable[[KeyIndex | None], None]) -> None:
        directory = log.state_directory / "index"
        index: KeyIndex | None = None
        with suppress(lmdb.Error, OSError, SvcError):
            if (directory / "data.mdb").exists():
                index = KeyIndex(directory)
                mark = index.mark()
                if mark is None or mark.database_id != log.database_id:
                    index.close()
                    index = None
        try:
            work(index)
        finally:
            if index is not None:
                index.close()

    def _settle_end(self, log: Log) -> bool:
        """Makes sure that the proved commits are there, or are given up.

        Returns False if the state directory must be moved away: it proves commits that no copy has.
        """
        for _ in range(_MOST_LOSSES):
            history = self._examine(log)
            loss = history.loss
            # Also where nothing proves that more was there: a file that was cut behind a commit looks whole.
            if self._extend(log, history):
                continue
            if loss is None:
                if log.is_cut_short and not self._report.given_up_commits:
                    self._report.given_up_commits.append("The end of the file was cut off.")
                return not log.is_cut_short
            if not self._report.given_up_commits:
                self._report.given_up_commits.append(loss.describe())
            if loss.is_of_state_directory:
                return False
            # The mark names a commit that is gone: from now on it says nothing.
            self._file.write(loss.offset, encode_void(0, time_ms=now_ms()))
            self._file.flush()
        raise CorruptRecord(f"{self._path.name}: what its end should be could not be settled.")

    def _extend(self, log: Log, history: History) -> bool:
        """Appends the rest of the log from a copy that has more of it; returns whether one had."""
        for source in self._sources.files:
            theirs = source.database.objects.log
            if theirs.database_id != log.database_id or source.database.head().sequence <= history.last:
                continue
            place = source.database.objects.index.commit_place(history.last) if history.last else None
            if history.last and place is None:
                continue  # nothing shows that it goes on from here
            start = FIRST if place is None else place[0] + record_size(place[1])
            end = source.database.head().commit_end
            if place is not None and log.read_stretch(place[0], start) != theirs.read_stretch(
                place[0], start
            ):
                continue
            if source.stretch(log.database_id, start, end, b"") is None:
                continue
            if self._file.size() > end:
                self._file.cut(end)
            position = start
            while position < end:
                piece = theirs.read_stretch(position, min(position + (1 << 20), end))
                self._file.write(position, piece)
                position += len(piece)
            self._file.flush()
            last = source.database.head().sequence
            self._report.extended_from.append(
                f"Commits {history.last + 1} to {last} were taken from {source.name}."
            )
            return True
        return False

    def _give_up_ends(self, database: Database) -> None:
        """Reports what recoveries have cut from the end, now or before, and ends the finding of it."""
        storage = database.objects.log.storage
        told = {one.name: one.remains.describe() for one in database.opening.saved}
        for name in storage.saved():
            path = Path(name)
            target = path.with_name(path.name.replace(".cut-", ".repaired-cut-"))
            path.rename(target)
            self._report.saved_to.append(target.name)
            if name in told:
                self._report.given_up_commits.append(
                    f"The end of the file was cut, and may have held acknowledged commits: {told[name]}."
                )

    def _move_state_directory(self) -> None:
        directory = state_directory_of(self._path)
        for number in range(1, 10_000):
            target = directory.with_name(f"{directory.name}.before-repair-{number}")
            if not target.exists():
                directory.rename(target)
                self._report.state_saved_to = target.name
                return


def _tell_nobody(_phase: str, _done: int, _total: int) -> None:
    pass
