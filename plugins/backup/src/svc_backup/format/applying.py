"""Takes a verified export or patch into a database: objects first, then, in one commit, what names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from svc.errors import NotFound
from svc.plugin import Database, Hash, ObjectKind, SystemPaths, format_path, reference_name
from svc_backup.format.checking import CheckedFile
from svc_maintenance.transfer import ChangeCounts, PutEntry, SetRef, is_reference, name_objects, take_objects

__all__ = ["IMPORTS", "ImportResult", "apply_incoming", "shown_paths"]

_SHOWN_PATHS = 10

IMPORTS = "imports"
"""Kind of the refs that keep imported versions which HEAD does not name: ``imports/<root hash>``."""


class ImportResult(Struct, frozen=True):
    """What an import took.

    Attributes:
        kind: ``export`` or ``patch``.
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
    system_paths: SystemPaths | None = None,
    actor: str | None = None,
    pause: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportResult:
    """Takes a verified file into a database; durable when this returns. Blocks.

    Args:
        database: open for writing; the one that the file was checked against.
        checked: the file.
        promote: make the version HEAD.
        expected: with ``promote``, what HEAD must be at that moment (PreconditionFailed); None asks nothing.
        system_paths: also take what these say of the file's system data; the caller has checked the right to
            it.
        actor: who does it, for the commit.
        pause: called after every few megabytes, to let others run.
        progress: told (bytes done, bytes in all).

    Raises RefusedFile where the file was changed since it was checked.
    """
    file = checked.file
    warnings = list(checked.warnings)
    with_system = system_paths is not None and file.has_system_data
    if file.has_system_data and not with_system:
        warnings.append("The file holds system data, which were skipped: they need the root key.")
    taken = take_objects(database, checked.objects, with_system=with_system, pause=pause, progress=progress)
    operations: list[PutEntry | SetRef] = []
    snapshots = written = 0
    if system_paths is not None and with_system:
        operations, snapshots, written = _system_operations(database, checked, system_paths, warnings)
    operations = [*_ref_operations(database, file.root, promote, expected), *operations]
    what = "patch" if file.is_patch else "export"
    message = f"Import of the {what} of version {file.root.hex()}"
    name_objects(database, operations, actor=actor, message=message)
    changes = checked.changes or ChangeCounts()
    held = file.commit.totals
    return ImportResult(
        kind=what,
        version=file.root,
        base=file.base,
        entries=sum(taken.by_kind.values()),
        new_entries=taken.new,
        chunks=taken.by_kind[ObjectKind.CHUNK],
        files=changes.added + changes.modified if file.is_patch else held.files,
        directories=checked.directories if file.is_patch else held.directories,
        deletions=changes.deleted,
        snapshots=snapshots,
        system_entries=written,
        head_promoted=promote,
        warnings=tuple(warnings),
    )


def _ref_operations(
    database: Database, root: Hash, promote: bool, expected: Hash | None
) -> list[PutEntry | SetRef]:
    name = f"{IMPORTS}/{root.hex()}"
    if promote:
        # What HEAD names needs no ref of its own.
        kept = any(one == name for one, _ in database.refs(IMPORTS))
        return [SetRef("HEAD", root, expected), *([SetRef(name, None)] if kept else [])]
    try:
        database.require_version(root)
    except NotFound:
        return [SetRef(name, root)]
    return []


def _system_operations(
    database: Database, checked: CheckedFile, system_paths: SystemPaths, warnings: list[str]
) -> tuple[list[PutEntry | SetRef], int, int]:
    """What writes the file's system data: entries one by one, and refs whose name is free."""
    nodes, system_root = checked.objects.nodes, checked.file.commit.system_root
    chosen = list(system_paths.included(nodes, system_root))
    present = {
        kind: dict(database.refs(kind)) for kind in {path[1] for path, _ in chosen if is_reference(path)}
    }
    operations: list[PutEntry | SetRef] = []
    kept = set()
    for path, entry in chosen:
        if not is_reference(path):
            continue
        name = reference_name(path)
        root = present[path[1]].get(name)
        if root is None:
            operations.append(SetRef(name, entry.hash, b""))
        elif root != entry.hash:
            warnings.append(f"{name} exists with another version, and was kept.")
            kept.add(system_paths.documents(path))
    refs = len(operations)
    operations += [
        PutEntry(path, entry, system=True)
        for path, entry in chosen
        if not is_reference(path) and path not in kept
    ]
    skipped = [format_path(path) for path in system_paths.undeclared(nodes, system_root)]
    if skipped:
        warnings.append(f"System data that no plugin here declares were skipped: {shown_paths(skipped)}.")
    return operations, refs, len(operations) - refs


def shown_paths(paths: Sequence[str]) -> str:
    """Some paths, for a message."""
    more = len(paths) - _SHOWN_PATHS
    return ", ".join(paths[:_SHOWN_PATHS]) + (f" and {more} more" if more > 0 else "")
