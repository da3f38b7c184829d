"""Verifies a database: the log, its end, every version; puts together what is said of damage."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import lmdb

from svc.database.commit import Commit
from svc.database.findings import OF_FILE
from svc.database.holds import Phase
from svc.database.lost import Lost
from svc.database.needed_paths import note_needed
from svc.database.references import HEAD_NAME
from svc.errors import CorruptRecord, NotFound, SvcError, UnsupportedFormat
from svc.hashing import Hash
from svc.log import FIRST
from svc.log.remains import count
from svc.objects.environments import is_damage
from svc.paths import Path, format_path
from svc.tree import EntryKind, check_directory, entries, totals
from svc_maintenance.verification.boundaries import boundary_before
from svc_maintenance.verification.ends import check_end
from svc_maintenance.verification.horizon import known_horizon, planned_runs
from svc_maintenance.verification.log_pass import check_log
from svc_maintenance.verification.paths import DamagedPaths
from svc_maintenance.verification.report import SYSTEM, Damage, Held, VerifyReport
from svc_maintenance.verification.stretches import DamagedObject, Stretch, check_stretch
from svc_maintenance.verification.taint import Taint

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["VerifyProgress", "verify", "verify_versions"]

MOST_PATHS = 100_000
_MOST_NOTES = 100_000
_SETTLE_SECONDS = 0.2

VerifyProgress = Callable[[str, int, int], None]
"""Called with (phase, done, total): ``log`` in bytes, ``versions`` in commits."""

Pace = Callable[[int], None]
"""Called with the bytes of what is read; may wait."""


def verify(
    database: Database,
    progress: VerifyProgress | None = None,
    *,
    processes: int | None = None,
    most_paths: int = MOST_PATHS,
) -> VerifyReport:
    """Checks everything that a database holds; blocks for as long as it takes to read it.

    Every byte of the file is accounted for. Writers may go on meanwhile: of what is committed after the
    start only the records are checked.

    Args:
        database: the open database. What is found damaged is noted beside it, where that can be written, so
            that it is stored again when somebody brings it.
        progress: called now and then.
        processes: how many check the log at once; None for as many as there are cores, where it is large.
        most_paths: how many damaged paths are named at most.
    """
    with database.hold():
        return _Verification(database, progress, processes, most_paths).run()


def verify_versions(
    database: Database,
    damaged: Sequence[DamagedObject],
    regions: Sequence[tuple[int, int]],
    progress: VerifyProgress | None = None,
    *,
    most_paths: int = MOST_PATHS,
    pace: Pace | None = None,
) -> VerifyReport:
    """Walks all versions of a database whose log was checked elsewhere, and names what is damaged; blocks.

    In ``regions`` (begin, end) no record can be read. ``pace`` is called with the bytes of each record that
    is read, before or after that, and may wait. It is not called while a collection waits for this to end.
    """
    with database.hold() as hold:

        def unless_waited_for(size: int) -> None:
            generation, phase = database.holds.state()
            if pace is not None and (phase is not Phase.GATED or hold.generation >= generation):
                pace(size)

        paced = None if pace is None else unless_waited_for
        return _Verification(database, progress, None, most_paths, paced).run_versions(damaged, regions)


class _Verification:
    def __init__(
        self,
        database: Database,
        progress: VerifyProgress | None,
        processes: int | None,
        most_paths: int,
        pace: Pace | None = None,
    ) -> None:
        self._database = database
        self._objects = database.objects
        self._progress = progress
        self._processes = processes
        self._most_paths = most_paths
        self._report = VerifyReport()
        self._bad: dict[int, DamagedObject] = {}
        self._regions: list[tuple[int, int]] = []
        self._unnamed_marks: dict[Hash, int] = {}
        self._lost = Lost.of(database)
        self._pace = pace
        self._taint = Taint(self._objects, self._is_damaged, pace)

    def run(self) -> VerifyReport:
        return self._report_of(self._check_all)

    def run_versions(
        self, damaged: Sequence[DamagedObject], regions: Sequence[tuple[int, int]]
    ) -> VerifyReport:
        report = self._report_of(partial(self._check_versions, damaged, regions))
        if not self._database.read_only:
            note_needed(self._database, report.needed_paths)
        return report

    def _report_of(self, check: Callable[[], None]) -> VerifyReport:
        try:
            check()
        except lmdb.Error as error:
            if not is_damage(error):
                raise
            self._damage(
                "The key index is damaged, so not all was checked: 'svc verify --repair' makes it anew."
            )
        return self._report

    def _check_all(self) -> None:
        head = self._database.head()
        last_commit = self._check_log(head.commit_end)
        self._check_end(head.commit_end, last_commit)
        roots, last = self._check_commits(head.sequence)
        if last is not None and last.sequence == head.sequence:
            self._check_totals(last)
            self._check_structure(last)
        self._name_damage(roots)
        self._report.files = last.totals.files if last is not None else 0
        self._report.objects = self._taint.objects_seen
        self._note_damage()

    def _check_versions(self, damaged: Sequence[DamagedObject], regions: Sequence[tuple[int, int]]) -> None:
        head = self._database.head()
        self._take(Stretch(FIRST, FIRST, damaged=list(damaged)), None)
        self._take_regions(sorted(regions))
        roots, last = self._check_commits(head.sequence)
        self._name_damage(roots)
        self._report.files = last.totals.files if last is not None else 0
        self._report.objects = self._taint.objects_seen
        self._note_damage()

    # -- the log -------------------------------------------------------------------------------

    def _check_log(self, end: int) -> Hash | None:
        def told(done: int) -> None:
            if self._progress is not None:
                self._progress("log", done, end)

        last: Hash | None = None
        for found in check_log(self._objects.log, end, told, processes=self._processes):
            stretch = found if found.is_whole else self._looked_at_again(found, end)
            self._report.records += stretch.records
            last = self._take(stretch, last)
            self._take_regions(stretch.regions)
        return last

    def _looked_at_again(self, stretch: Stretch, end: int) -> Stretch:
        """Checks apparent damage again: a collection may have been destroying the records meanwhile."""
        log = self._objects.log
        if not log.storage.others_present():
            return stretch
        time.sleep(_SETTLE_SECONDS)
        start = boundary_before(self._database, stretch.start)
        again = check_stretch(log.storage.read, start, max(start, stretch.end), end, log.database_id)
        return Stretch(
            stretch.start,
            stretch.end,
            stretch.records,
            [one for one in again.damaged if one.offset >= stretch.start],
            [one for one in again.regions if one[0] >= stretch.start],
            [one for one in again.padded if one >= stretch.start],
            stretch.marks,
            stretch.last_commit,
        )

    def _take(self, stretch: Stretch, last: Hash | None) -> Hash | None:
        """Takes over what a stretch says of its records; returns the last commit before its end."""
        for offset in stretch.padded:
            self._damage(
                "The padding behind a record is not zero: a byte has changed where nothing is stored.",
                offset=offset,
            )
        for found in stretch.damaged:
            place = self._objects.index.find(found.hash)
            if place is None or place.offset == found.offset:
                self._bad[found.offset] = found
            else:
                self._damage(
                    "A second copy of an object is damaged; the other one is read.",
                    hash=found.hash.hex(),
                    offset=found.offset,
                )
        for mark in stretch.marks:
            if mark.named is None:
                self._damage("A clean-end mark belongs to another place or database.", offset=mark.offset)
            elif mark.named != (mark.last_commit or last):
                self._unnamed_marks[mark.named] = mark.offset
        return stretch.last_commit or last

    def _take_regions(self, regions: Sequence[tuple[int, int]]) -> None:
        planned = planned_runs(self._database) if regions else []
        for offset, stop in regions:
            if any(begin <= offset and stop <= end for begin, end in planned):
                continue  # what a collection is about to overwrite once more
            self._regions.append((offset, stop))
            size = count(stop - offset, "byte")
            self._damage(f"The log is damaged here: in {size} no record can be read.", offset=offset)

    def _check_end(self, start: int, last_commit: Hash | None) -> None:
        for finding in self._database.findings():
            if finding.code in OF_FILE:
                self._damage(f"{finding.message} {finding.advice}")
        last = last_commit

        def take(stretch: Stretch) -> None:
            nonlocal last
            last = self._take(stretch, last)

        self._report.unnamed, others = check_end(
            self._database,
            max(start, FIRST),
            take,
            lambda message, offset: self._damage(message, offset=offset),
        )
        self._report.records += self._report.unnamed + others

    def _is_damaged(self, offset: int) -> bool:
        """Whether what begins at an offset of the log is damaged, or lies where nothing can be read."""
        if offset in self._bad:
            return True
        at = bisect_right(self._regions, (offset, 1 << 63)) - 1
        return at >= 0 and offset < self._regions[at][1]

    # -- the versions --------------------------------------------------------------------------

    def _check_commits(self, until: int) -> tuple[list[tuple[Hash | None, Hash | None]], Commit | None]:
        roots: list[tuple[Hash | None, Hash | None]] = []
        last: Commit | None = None
        last_hash: Hash | None = None
        self._taint.distrust(self._objects.index.sharing_a_place())
        horizon = known_horizon(self._database)
        for sequence in range(1, until + 1):
            try:
                payload, hash = self._database._state.commit_payload(sequence)
                commit = Commit.decode(payload)
            except (NotFound, CorruptRecord, UnsupportedFormat) as error:
                self._miss_commit(sequence, error)
                roots.append((None, None))
                last, last_hash = None, None
                continue
            if self._pace is not None:
                self._pace(len(payload))
            if last is not None and not _follows(commit, last, last_hash):
                self._damage(f"Commit {sequence} does not follow commit {sequence - 1}.")
            if last is None and sequence > max(1, horizon):
                # Of a commit that is gone the next one says which version it made.
                roots[-1] = (commit.parent_root, commit.parent_system_root)
                self._follow(commit.parent_root, commit.parent_system_root)
            if sequence >= horizon:
                self._check_root(sequence, commit.root)
                roots.append((commit.root, commit.system_root))
                self._follow(commit.root, commit.system_root)
            else:  # Of versions before the horizon that is left which refs and later ones need.
                roots.append((None, None))
            self._report.commits += 1
            if self._unnamed_marks and self._objects.index.commit_place(sequence) is None:
                self._unnamed_marks.pop(hash, None)  # a pack holds what the mark names
            last, last_hash = commit, hash
            if self._progress is not None and sequence % 16 == 0:
                self._progress("versions", sequence, until)
        for offset in sorted(self._unnamed_marks.values()):
            if self._stands_at_lost_commits(offset):
                continue  # what the mark names was given up with its pack, and is told so
            self._damage("Before a clean-end mark the commit is missing that it names.", offset=offset)
        return roots, last

    def _check_root(self, sequence: int, root: Hash) -> None:
        """Checks that the index knows whose root it is: by that a version is found."""
        index = self._objects.index
        first, last = index.first_commit_of_root(root), index.last_commit_of_root(root)
        if first is None or last is None or not first <= sequence <= last:
            self._damage(
                f"The version of commit {sequence} can't be found: the key index is damaged. "
                "'svc verify --repair' makes it anew.",
                version=root.hex(),
            )

    def _stands_at_lost_commits(self, offset: int) -> bool:
        """Whether a commit was lost between the last one before and the first one after an offset."""
        index = self._objects.index

        def surround(sequence: int) -> bool:
            before, behind = index.last_commit_place(sequence), index.commit_places(sequence, 1)
            return (before is None or before[0] < offset) and (not behind or offset < behind[0][1])

        return any(map(surround, self._lost.commits))

    def _follow(self, root: Hash, system_root: Hash) -> None:
        self._taint.follow(root)
        self._taint.follow(system_root)

    def _miss_commit(self, sequence: int, error: SvcError) -> None:
        place = self._objects.index.commit_place(sequence)
        if place is not None:
            self._bad.pop(place[0], None)
        if place is None and sequence in self._lost.commits:
            self._report.lost.append(
                Damage(f"The record of commit {sequence} was lost: who, when and what for.")
            )
        else:
            self._report.damaged_commits.append(sequence)
            self._damage(
                f"Commit {sequence} cannot be read: {error.message}",
                offset=place[0] if place is not None else None,
            )

    def _check_totals(self, last: Commit) -> None:
        try:
            below = totals(self._objects, last.root)
        except SvcError:
            return  # named already
        counted = (below.files, below.directories, below.symlinks, below.size)
        stated = (last.totals.files, last.totals.directories, last.totals.symlinks, last.totals.size)
        if counted != stated:
            self._damage(f"The totals of commit {last.sequence} do not agree with its tree.")

    def _check_structure(self, last: Commit) -> None:
        """Checks each of HEAD's directories once: its nodes fit together and are the only ones possible."""
        stack: list[tuple[Hash, Path]] = [(last.root, ())]
        checked: set[Hash] = set()
        while stack:
            root, path = stack.pop()
            if root in checked:
                continue
            checked.add(root)
            try:
                check_directory(self._objects, root)
                found = list(entries(self._objects, root))
            except SvcError as error:
                if not self._taint.is_tainted(root):
                    self._damage(
                        f"A directory does not fit together: {error.message}",
                        path=format_path(path),
                        version=last.root.hex(),
                        hash=root.hex(),
                        held=(Held("HEAD", last.sequence, last.sequence, True),),
                    )
                continue
            stack += [
                (entry.hash, (*path, name))
                for name, entry in found
                if entry.kind is EntryKind.DIRECTORY and entry.hash not in checked
            ]

    # -- the report ----------------------------------------------------------------------------

    def _name_damage(self, roots: list[tuple[Hash | None, Hash | None]]) -> None:
        damaged = self._taint.damaged
        if damaged:
            self._name_paths(roots)
        lost = {hash for hash in damaged if self._is_lost(hash)}
        unnamed = [found for found in self._bad.values() if found.hash not in damaged]
        for found in unnamed:
            self._damage("A damaged object belongs to no path.", hash=found.hash.hex(), offset=found.offset)
        self._report.damaged_objects = sorted(
            {hash.hex() for hash in damaged - lost} | {found.hash.hex() for found in unnamed}
        )

    def _name_paths(self, roots: list[tuple[Hash | None, Hash | None]]) -> None:
        paths = DamagedPaths(self._taint, self._most_paths)
        for number, (root, system_root) in enumerate(roots, 1):
            paths.enter(number, root, system_root)
        found = paths.finish()
        self._report.is_complete = paths.is_complete
        for named, held in found.items():
            latest = _latest_root(roots, held)
            place = self._objects.index.find(named.thing.hash)
            damage = Damage(
                named.thing.message,
                path=("system:" if named.system else "") + format_path(named.path),
                version=latest.hex() if latest is not None else None,
                hash=named.thing.hash.hex(),
                offset=place.offset if place is not None else None,
                held=tuple(held),
            )
            is_lost = place is None and self._is_lost(named.thing.hash)
            (self._report.lost if is_lost else self._report.damaged).append(damage)

    def _is_lost(self, hash: Hash) -> bool:
        return hash in self._lost and self._objects.index.find(hash) is None

    def _note_damage(self) -> None:
        """Notes damage in the index, if that can be written: for findings, and to store objects again."""
        found = {bytes.fromhex(one) for one in self._report.damaged_objects}
        index = self._objects.index
        with suppress(lmdb.Error, OSError, SvcError):
            whole = [hash for hash in index.damaged(_MOST_NOTES) if hash not in found]
            if whole:
                index.forget_damage(whole)
            if found:
                index.note_damaged(found)
            index.note_damaged_commits(self._report.damaged_commits)

    def _damage(
        self,
        message: str,
        *,
        path: str | None = None,
        version: str | None = None,
        hash: str | None = None,
        offset: int | None = None,
        held: tuple[Held, ...] = (),
    ) -> None:
        self._report.damaged.append(Damage(message, path, version, hash, offset, held))


def _latest_root(roots: list[tuple[Hash | None, Hash | None]], held: list[Held]) -> Hash | None:
    """Returns the latest root of HEAD, or else of the system tree, among the versions that hold something."""
    for number, ref in enumerate((HEAD_NAME, SYSTEM)):
        last = max((one.last for one in held if one.ref == ref), default=0)
        if last:
            return roots[last - 1][number]
    return None


def _follows(commit: Commit, last: Commit, last_hash: Hash | None) -> bool:
    """Whether a commit begins where the one before it ended."""
    before = (commit.parent, commit.parent_root, commit.parent_system_root)
    return before == (last_hash, last.root, last.system_root)
