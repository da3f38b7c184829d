"""Checks a database from end to end: every record, every hash, every path of every version.

Two passes: the log is read once, from its first byte to its last, and every object's content is hashed; then
every version is walked, each node once, and what is damaged or missing is named by path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from svc.database.commit import Commit
from svc.database.findings import OF_FILE
from svc.database.verify_end import check_end
from svc.errors import CorruptRecord, NotFound, SvcError, UnsupportedFormat
from svc.hashing import HASH_SIZE, Hash, ObjectKind, hash_object
from svc.log import FIRST, RECORD_HEADER_SIZE, DamagedRegion, ScannedRecord
from svc.log.framing import verified_payload
from svc.log.remains import count
from svc.objects.codecs import decompress
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT
from svc.paths import Path, format_path
from svc.tree import Entry, EntryKind, Inner, check_directory, entries, totals

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["Damage", "VerifyReport", "verify"]

_NO_HASH = bytes(HASH_SIZE)

VerifyProgress = Callable[[str, int, int], None]
"""Called with (phase, done, total): ``log`` in bytes, ``versions`` in commits."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong.

    Attributes:
        message: what, as a sentence.
        path: the damaged path; None when the damage belongs to no path.
        version: root hash in hex of a version that has the path, or None.
        hash: identity of the damaged object in hex, or None.
        offset: where in the log the damage lies, or None.
    """

    message: str
    path: str | None = None
    version: str | None = None
    hash: str | None = None
    offset: int | None = None


@dataclass(slots=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        records: number of records that were read.
        objects: number of different objects that some version needs.
        commits: number of commits that were walked.
        files: number of files at HEAD.
        unnamed: number of whole records at the end of the log that no commit names: uploads under way, or
            left over.
        damaged: everything that is wrong; empty when all is well.
    """

    records: int = 0
    objects: int = 0
    commits: int = 0
    files: int = 0
    unnamed: int = 0
    damaged: list[Damage] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damaged


def verify(database: Database, progress: VerifyProgress | None = None) -> VerifyReport:
    """Checks everything that a database holds; blocks for as long as it takes to read it.

    Every byte of the file is accounted for. Writers may go on meanwhile: of what is committed after the
    start only the records are checked.

    Args:
        database: the open database.
        progress: called now and then.
    """
    return _Verification(database, progress).run()


class _Verification:
    def __init__(self, database: Database, progress: VerifyProgress | None) -> None:
        self._database = database
        self._objects = database.objects
        self._progress = progress
        self._report = VerifyReport()
        self._bad: dict[Hash, int] = {}
        self._regions: list[DamagedRegion] = []
        self._seen: set[Hash] = {EMPTY_ROOT, EMPTY_SYSTEM_ROOT}
        self._last_commit: Hash | None = None

    def run(self) -> VerifyReport:
        head = self._database.head()
        self._check_log(head.commit_end)
        self._check_end(head.commit_end)
        last = self._check_commits(head.sequence)
        if last is not None and last.sequence == head.sequence:
            self._check_totals(last)
            self._check_structure(last)
        self._report.files = last.totals.files if last is not None else 0
        self._report.objects = len(self._seen) - 2
        self._name_unreferenced_damage()
        return self._report

    # -- the log -------------------------------------------------------------------------------

    def _check_log(self, end: int) -> None:
        log = self._objects.log
        for record in log.scan_tolerant(end=end):
            self._report.records += 1
            if isinstance(record, DamagedRegion):
                self._regions.append(record)
                size = count(record.end - record.offset, "byte")
                self._damage(
                    f"The log is damaged here: in {size} no record can be read.", offset=record.offset
                )
            else:
                self._check_record(record)
            if self._progress is not None and self._report.records % 1024 == 0:
                self._progress("log", record.end, end)

    def _check_end(self, start: int) -> None:
        for finding in self._database.findings():
            if finding.code in OF_FILE:
                self._damage(f"{finding.message} {finding.advice}")
        self._report.unnamed, others = check_end(
            self._database,
            max(start, FIRST),
            self._check_record,
            lambda message, offset: self._damage(message, offset=offset),
        )
        self._report.records += self._report.unnamed + others

    def _check_record(self, record: ScannedRecord) -> None:
        log = self._objects.log
        if record.kind == ObjectKind.VOID:
            self._check_void(record)
            return
        data = log.read_stretch(record.offset, record.end)
        if any(data[RECORD_HEADER_SIZE + record.stored_length :]):
            self._damage(
                "The padding behind a record is not zero: a byte has changed where nothing is stored.",
                offset=record.offset,
            )
        try:
            payload = verified_payload(data, record.offset, record.stored_length)
            content = decompress(record.codec, payload, record.raw_length)
            if hash_object(ObjectKind(record.kind), content, record.system) != record.hash:
                raise CorruptRecord("An object's content does not have its hash.")
        except (SvcError, ValueError, KeyError):
            place = self._objects.index.find(record.hash)
            if place is None or place.offset == record.offset:
                self._bad[record.hash] = record.offset
            else:
                self._damage(
                    "A second copy of an object is damaged; the first one is read.",
                    hash=record.hash.hex(),
                    offset=record.offset,
                )
        if record.kind == ObjectKind.COMMIT:
            self._last_commit = record.hash

    def _check_void(self, record: ScannedRecord) -> None:
        """A void that names a commit is a clean-end mark, and that commit stands before it."""
        if record.hash == _NO_HASH:
            return
        named = self._objects.log.clean_end_at(record.offset)
        if named is None:
            self._damage("A clean-end mark belongs to another place or database.", offset=record.offset)
        elif named != self._last_commit:
            self._damage("Before a clean-end mark the commit is missing that it names.", offset=record.offset)

    def _is_bad(self, hash: Hash) -> bool:
        """Whether an object is damaged: its content, or the place in the log where the index knows it."""
        if hash not in self._bad and self._regions:
            place = self._objects.index.find(hash)
            if place is not None and any(one.offset <= place.offset < one.end for one in self._regions):
                self._bad[hash] = place.offset
        return hash in self._bad

    # -- the versions --------------------------------------------------------------------------

    def _check_commits(self, until: int) -> Commit | None:
        last: Commit | None = None
        last_hash: Hash | None = None
        horizon = self._database.horizon()
        for sequence in range(1, until + 1):
            try:
                commit, hash = self._database.read_commit(sequence)
            except (NotFound, CorruptRecord, UnsupportedFormat) as error:
                self._damage(f"Commit {sequence} cannot be read: {error.message}")
                last, last_hash = None, None
                continue
            if last is not None and not _follows(commit, last, last_hash):
                self._damage(f"Commit {sequence} does not follow commit {sequence - 1}.")
            # Of versions before the horizon that is left which refs and later ones need.
            if sequence >= horizon:
                self._check_tree(commit.root, commit)
                self._check_tree(commit.system_root, commit, system=True)
            self._report.commits += 1
            last, last_hash = commit, hash
            if self._progress is not None and sequence % 16 == 0:
                self._progress("versions", sequence, until)
        return last

    def _check_tree(self, root: Hash, commit: Commit, system: bool = False) -> None:
        """Walks the nodes of a tree that no earlier version had."""
        stack: list[tuple[Hash, Path]] = [(root, ())]
        while stack:
            hash, path = stack.pop()
            if hash in self._seen:
                continue
            self._seen.add(hash)
            try:
                if self._is_bad(hash):
                    raise CorruptRecord("A directory node is damaged.")
                node = self._objects.read_node(hash)
            except (NotFound, CorruptRecord) as error:
                self._damage_path(f"A directory cannot be read: {error.message}", path, commit, hash, system)
                continue
            if isinstance(node, Inner):
                stack += [(child, path) for child in node.children()]
                continue
            for name, entry in node.items():
                if entry.kind is EntryKind.DIRECTORY:
                    stack.append((entry.hash, (*path, name)))
                elif entry.kind is EntryKind.FILE:
                    self._check_file(entry, (*path, name), commit, system)

    def _check_file(self, entry: Entry, path: Path, commit: Commit, system: bool) -> None:
        try:
            hashes = list(self._file_objects(entry))
        except (NotFound, CorruptRecord, UnsupportedFormat) as error:
            self._damage_path(
                f"A file record cannot be read: {error.message}", path, commit, entry.record, system
            )
            return
        for hash in hashes:
            if self._is_bad(hash):
                self._damage_path("A chunk of the file is damaged.", path, commit, hash, system)
            elif hash not in self._seen:
                self._seen.add(hash)
                if not self._objects.index.contains(hash):
                    self._bad[hash] = 0
                    self._damage_path("A chunk of the file is missing.", path, commit, hash, system)

    def _file_objects(self, entry: Entry) -> Iterator[Hash]:
        if entry.size == 0:
            return
        if entry.record is None:
            yield entry.hash
            return
        if self._is_bad(entry.record):
            raise CorruptRecord("The record is damaged.")
        self._seen.add(entry.record)
        yield from self._objects.read_record(entry.record).chunks

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
        """Makes sure that the nodes of HEAD's directories fit together and are the only ones possible.

        Each directory once, wherever it is.
        """
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
                if root not in self._bad:
                    self._damage_path(
                        f"A directory does not fit together: {error.message}", path, last, root, False
                    )
                continue
            stack += [
                (entry.hash, (*path, name))
                for name, entry in found
                if entry.kind is EntryKind.DIRECTORY and entry.hash not in checked
            ]

    # -- the report ----------------------------------------------------------------------------

    def _name_unreferenced_damage(self) -> None:
        named = {damage.hash for damage in self._report.damaged}
        for hash, offset in self._bad.items():
            if hash.hex() not in named:
                self._damage("A damaged object belongs to no path.", hash=hash.hex(), offset=offset)

    def _damage_path(self, message: str, path: Path, commit: Commit, hash: Hash | None, system: bool) -> None:
        shown = ("system:" if system else "") + format_path(path)
        offset = self._bad.get(hash) if hash is not None else None
        self._damage(
            message,
            path=shown,
            version=commit.root.hex(),
            hash=hash.hex() if hash is not None else None,
            offset=offset or None,
        )

    def _damage(
        self,
        message: str,
        *,
        path: str | None = None,
        version: str | None = None,
        hash: str | None = None,
        offset: int | None = None,
    ) -> None:
        self._report.damaged.append(Damage(message, path, version, hash, offset))


def _follows(commit: Commit, last: Commit, last_hash: Hash | None) -> bool:
    """Whether a commit begins where the one before it ended."""
    before = (commit.parent, commit.parent_root, commit.parent_system_root)
    return before == (last_hash, last.root, last.system_root)
