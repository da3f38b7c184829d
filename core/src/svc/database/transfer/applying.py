"""Takes a verified file into a database: objects first, then, in one commit, what names them.

Records are appended in the order of the file, in which nothing stands before what it names; so whatever
ends the process, the database holds no object that names a missing one. What no commit came to name is
garbage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from svc.database.committer import CommitRequest
from svc.database.operations import Operation, PutEntry, SetRef
from svc.database.references import HEAD_NAME, reference_name
from svc.database.transfer.checking import OF_SYSTEM, OF_USER, CheckedFile
from svc.database.transfer.file_format import ChangeCounts
from svc.database.transfer.joined import JoinedObjects
from svc.database.transfer.system_data import is_reference, system_entries
from svc.errors import NotFound, RefusedFile
from svc.hashing import Hash, ObjectKind
from svc.log import encode_record
from svc.objects.key_index import Place
from svc.objects.store import PendingObjects

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["IMPORTS", "ImportResult", "apply_incoming"]

IMPORTS = "imports"
"""Kind of the refs that keep imported versions which HEAD does not name: ``imports/<root hash>``."""

_APPEND_BYTES = 2 * 1024 * 1024
_PART_OBJECTS = 4096
_PAUSE_EVERY = 256
_PART_BYTES = 64 * 1024 * 1024
_OBJECTS = (ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import took.

    Attributes:
        kind: ``export`` or ``patch``.
        version: the root that is in the database now.
        base: of a patch, the root that it applies to; else None.
        entries: objects of the file that were taken, also those that the database had.
        new_entries: those of them that it did not have.
        chunks: chunks among the entries.
        files: files of the version; of a patch, files and links that it adds or modifies.
        directories: directories of the version without the root; of a patch, those whose index it brings.
        deletions: files and links that a patch deletes.
        snapshots: named snapshots that were made.
        system_entries: entries of the system tree that were written.
        head_promoted: whether HEAD is that version now because of this import.
        warnings: sentences for whoever imports.
    """

    kind: str
    version: Hash
    base: Hash | None
    entries: int
    new_entries: int
    chunks: int
    files: int
    directories: int
    deletions: int
    snapshots: int = 0
    system_entries: int = 0
    head_promoted: bool = False
    warnings: tuple[str, ...] = field(default_factory=tuple)


def apply_incoming(
    database: Database,
    checked: CheckedFile,
    *,
    promote: bool = False,
    expected: Hash | None = None,
    with_system: bool = False,
    actor: str | None = None,
    pause: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportResult:
    """Takes a verified file into a database; durable when this returns. Blocks.

    Args:
        database: the database, open for writing; the one that the file was checked against.
        checked: the file.
        promote: make the version HEAD.
        expected: with ``promote``, what HEAD must be at that moment; None asks nothing.
        with_system: also take system data and snapshots; the caller has made sure that this is allowed.
        actor: who does it, for the commit.
        pause: called after every few megabytes, to let others run.
        progress: told (bytes done, bytes in all).

    Raises:
        PreconditionFailed: HEAD is not what was expected.
        RefusedFile: the file was changed since it was checked.
        InsufficientStorage: the disk is full.
    """
    file = checked.file
    warnings = list(checked.warnings)
    with_system = with_system and file.has_system_data
    if file.has_system_data and not with_system:
        warnings.append("The file holds system data, which were skipped: they need the root key.")
    wanted = OF_USER | (OF_SYSTEM if with_system else 0)
    new_entries, taken = _Appending(database, checked, wanted, pause, progress).run()
    operations: list[Operation | SetRef] = []
    snapshots = written = 0
    if with_system:
        operations, snapshots, written = _system_operations(database, checked, warnings)
    operations = [*_ref_operations(database, file.root, promote, expected), *operations]
    if operations:
        what = "patch" if file.is_patch else "export"
        message = f"Import of the {what} of version {file.root.hex()}"
        database.submit(CommitRequest(HEAD_NAME, operations, PendingObjects(), actor, message))
    changes = checked.changes or ChangeCounts()
    held = file.commit.totals
    return ImportResult(
        kind="patch" if file.is_patch else "export",
        version=file.root,
        base=file.base,
        entries=sum(taken.values()),
        new_entries=new_entries,
        chunks=taken[ObjectKind.CHUNK],
        files=changes.added + changes.modified if file.is_patch else held.files,
        directories=checked.directories if file.is_patch else held.directories,
        deletions=changes.deleted,
        snapshots=snapshots,
        system_entries=written,
        head_promoted=promote,
        warnings=tuple(warnings),
    )


class _Appending:
    """Appends the records that the database does not have, and makes them part of it, part by part."""

    def __init__(
        self,
        database: Database,
        checked: CheckedFile,
        wanted: int,
        pause: Callable[[], None],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._database = database
        self._checked = checked
        self._wanted = wanted
        self._pause = pause
        self._progress = progress
        self._records: list[tuple[Hash, bytes, Place]] = []
        self._size = 0
        self._part = PendingObjects()
        self._part_bytes = 0

    def run(self) -> tuple[int, dict[ObjectKind, int]]:
        """Returns how many objects are new, and how many were taken, by kind."""
        file, index = self._checked.file, self._database.objects.index
        taken = dict.fromkeys(_OBJECTS, 0)
        new = ordinal = 0
        for record in file.records():
            if record.kind not in taken:
                continue
            if file.ordinal(record.hash) != ordinal:
                raise RefusedFile("The file was changed while it was imported.")
            ordinal += 1
            if not self._checked.marks[ordinal - 1] & self._wanted:
                continue
            taken[record.kind] += 1
            if index.contains(record.hash):
                continue
            new += 1
            assert record.payload is not None
            framed = encode_record(
                record.kind,
                record.hash,
                record.payload,
                codec=record.codec,
                raw_length=record.raw_length,
                time_ms=record.time_ms,
                system=record.system,
            )
            place = Place(
                0, record.stored_length, record.raw_length, record.kind, int(record.system), record.codec
            )
            self._records.append((record.hash, framed, place))
            self._size += len(framed)
            if new % _PAUSE_EVERY == 0:
                self._pause()
            if self._size >= _APPEND_BYTES or len(self._records) >= _PART_OBJECTS:
                self._append()
                if self._progress is not None:
                    self._progress(record.end, file.size)
        self._append()
        self._commit_part()
        return new, taken

    def _append(self) -> None:
        if not self._records:
            return
        offset = self._database.objects.log.append([framed for _, framed, _ in self._records])
        for hash, framed, place in self._records:
            self._part.placed[hash] = place._replace(offset=offset)
            offset += len(framed)
        self._part_bytes += self._size
        self._records, self._size = [], 0
        self._pause()
        if self._part_bytes >= _PART_BYTES or len(self._part.placed) >= _PART_OBJECTS:
            self._commit_part()

    def _commit_part(self) -> None:
        if not self._part.placed:
            return
        # The bulk goes to disk here, outside of the lock, so that the commit's own sync is short.
        self._database._state.sync_ahead()
        self._database.submit(CommitRequest(HEAD_NAME, [], self._part))
        self._part, self._part_bytes = PendingObjects(), 0


def _ref_operations(
    database: Database, root: Hash, promote: bool, expected: Hash | None
) -> list[Operation | SetRef]:
    name = f"{IMPORTS}/{root.hex()}"
    if promote:
        # What HEAD names needs no ref of its own.
        kept = any(one == name for one, _ in database.refs(IMPORTS))
        return [SetRef(HEAD_NAME, root, expected), *([SetRef(name, None)] if kept else [])]
    try:
        database.require_version(root)
    except NotFound:
        return [SetRef(name, root)]
    return []


def _system_operations(
    database: Database, checked: CheckedFile, warnings: list[str]
) -> tuple[list[Operation | SetRef], int, int]:
    """What writes the file's system data: entries one by one, and snapshots whose name is free."""
    file = checked.file
    store = JoinedObjects(file, database.objects)
    present = dict(database.refs("snapshots"))
    operations: list[Operation | SetRef] = []
    snapshots = written = 0
    skipped: set[tuple[str, ...]] = set()
    for path, entry in system_entries(store, file.commit.system_root):
        if is_reference(path):
            name = reference_name(path)
            if name not in present:
                operations.append(SetRef(name, entry.hash, b""))
                snapshots += 1
            elif present[name] != entry.hash:
                warnings.append(
                    f"The snapshot {name.partition('/')[2]} exists with another version, and was kept."
                )
                skipped.add(("versions", "snapshots", *path[2:]))
        elif path not in skipped:
            operations.append(PutEntry(path, entry, system=True))
            written += 1
    return operations, snapshots, written
