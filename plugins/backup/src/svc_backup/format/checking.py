"""Verifies an export or a patch, wholly, before anything of it is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, field

from svc.errors import CorruptRecord, SvcError
from svc.plugin import Database, Entry, Hash, ObjectKind, Path, format_path, parse_path, totals
from svc_backup.format.incoming import IncomingFile, refusing
from svc_backup.format.layout import Deletions
from svc_maintenance.transfer import (
    EMPTY_ROOT,
    ChangeCounts,
    CheckedObjects,
    Differences,
    FilePlace,
    check_objects,
    compare_versions,
    decoded,
)

__all__ = ["CheckedFile", "check_incoming"]


class CheckedFile(Struct):
    """A file that was verified, and may be taken.

    ``changes``: of a patch, how many files and links it adds, modifies and deletes. ``warnings`` are
    sentences for whoever imports it.
    """

    file: IncomingFile
    objects: CheckedObjects
    changes: ChangeCounts | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def directories(self) -> int:
        """Directories of the version whose index it brings, the root included."""
        return self.objects.directories


def check_incoming(
    file: IncomingFile,
    database: Database | None = None,
    *,
    pause: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] | None = None,
) -> CheckedFile:
    """Verifies everything in a file.

    The objects of the ``database`` that it comes into may be named; None takes only a file that needs no
    other. ``pause`` is called after every megabyte or so, to let others run; ``progress`` is told bytes.

    Raises RefusedFile where something is damaged, forged, missing, or not allowed; the message says what.
    """
    held = file.size + (database.objects.log.tail if database is not None else 0)
    with refusing():
        objects = check_objects(
            file,
            database,
            file.commit.root,
            file.commit.system_root,
            most_content=file.limits.expansion * held + file.limits.least_content,
            pause=pause,
            progress=progress,
        )
        checked = CheckedFile(file, objects)
        _check_totals(checked)
        if file.is_patch:
            checked.changes = _check_deletions(checked, database)
        return checked


def _check_totals(checked: CheckedFile) -> None:
    commit = checked.file.commit
    below = totals(checked.objects.nodes, commit.root)
    held = commit.totals
    stated = (held.files, held.directories, held.symlinks, held.size)
    if stated != (below.files, below.directories, below.symlinks, below.size):
        raise CorruptRecord("the totals of its commit do not agree with its tree.")


def _check_deletions(checked: CheckedFile, database: Database | None) -> ChangeCounts:
    """Compares the deletion records with each other, and with the base where the database has it."""
    file = checked.file
    base, target = file.header.base, file.header.target
    assert base is not None
    assert target is not None
    stated = _StatedDeletions(file)
    counts = stated.counts
    known = database.objects.index.find(base) if database is not None else None
    if base == EMPTY_ROOT or (known is not None and known.kind == ObjectKind.NODE and not known.system):
        found = compare_versions(checked.objects.nodes, base, target, _Comparing(stated.paths()))
        if found != counts:
            raise CorruptRecord("its deletion records do not agree with its versions.")
    else:
        for _ in stated.paths():
            pass
        checked.warnings.append(
            "The database does not hold the version that the patch was made from; "
            "the numbers of files are those that the patch states."
        )
    return counts


class _StatedDeletions:
    def __init__(self, file: IncomingFile) -> None:
        self._file = file
        first = self._read(0)
        self._head = (first.base, first.target, first.counts)
        if self._head[:2] != (file.header.base, file.header.target):
            raise CorruptRecord("its deletion records name other versions.")
        self.counts = first.counts

    def paths(self) -> Iterator[str]:
        """Yields the paths; raises at the end when they are not as many as stated."""
        count = 0
        for index in range(len(self._file.deletions)):
            deletions = self._read(index)
            if (deletions.base, deletions.target, deletions.counts) != self._head:
                raise CorruptRecord("its deletion records do not agree with each other.")
            for path in deletions.paths:
                _check_path(path)
                count += 1
                yield path
        if count != self.counts.deleted:
            raise CorruptRecord("its deletion records do not name as many paths as they state.")

    def _read(self, index: int) -> Deletions:
        record = self._file.deletions[index]
        place = FilePlace(
            0, record.offset, record.stored_length, record.raw_length, record.kind, 0, record.codec
        )
        return decoded(Deletions.decode, self._file.content(record.hash, place), "a deletion record")


class _Comparing(Differences):
    def __init__(self, stated: Iterator[str]) -> None:
        self._stated = stated

    def directory(self, before: Hash, after: Hash) -> None:
        pass

    def added_directory(self, root: Hash) -> None:
        pass

    def removed_directory(self, root: Hash) -> None:
        pass

    def entry(self, before: Entry | None, after: Entry | None) -> None:
        pass

    def deleted(self, path: Path) -> None:
        if next(self._stated, None) != format_path(path):
            raise CorruptRecord("its deletion records do not agree with its versions.")


def _check_path(path: str) -> None:
    try:
        valid = format_path(parse_path(path)) == path and path != "/"
    except SvcError:
        valid = False
    if not valid:
        raise CorruptRecord("a deletion record holds what is no path.")
