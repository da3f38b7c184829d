"""What other plugins may use of this one: backups of versions in the server's backup directory, verified."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svc.plugin import Database, Hash

__all__ = ["backup_target", "directory_in_backups", "write_backup"]


def directory_in_backups(database_path: FilePath, text: str, field: str) -> FilePath:
    """Returns the directory that a request names, which is the server's backup directory or lies in it.

    Args:
        database_path: where the database lies.
        text: ``./backups/`` for the backup directory itself, ``./backups/x`` or ``x`` for one in it, or its
            absolute path.
        field: the member of the request, for errors.

    Raises:
        InvalidInput: it leads out of the directory, also through links, or is no name of a directory.
    """
    from svc_backup.server_paths import directory_in_backups as find

    return find(database_path, text, field)


def write_backup(
    database: Database,
    root: Hash,
    path: FilePath,
    *,
    base: Hash | None = None,
    without_lost: bool = False,
    privileged: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Writes an export of a version, or a patch, verifies what is on the disk, and then gives it its name.

    Blocks for as long as that takes. Whatever ends it before, nothing of this name is there.

    Args:
        database: the open database.
        root: the version.
        path: of the file, which may not exist; its directory is made when it is missing.
        base: of a patch, the version before; None writes an export.
        without_lost: of an export, leaves out what needs something that a repair could not save; the report
            names it.
        privileged: of an export, whether it holds system data and snapshots too, as plugins in use here
            declare them; else user data only. The caller has checked the right to it.
        progress: told (bytes done, bytes in all) while it writes, then while it verifies; what it raises
            ends it.

    Returns:
        The report, as ``svc export --json`` prints it.

    Raises:
        NotFound: there is no such version, or none any more.
        AlreadyExists: the name is taken.
        InsufficientStorage: the disk is too small for it.
        Forbidden: the directory may not be written.
        RefusedFile: what was written is not what was to be written.
        CorruptRecord: what the version needs is damaged, or lost; of what is lost it names the paths.
    """
    import msgspec

    from svc.plugin import declared_system_paths
    from svc_backup.format import plan_export, plan_patch
    from svc_backup.output_files import write_file
    from svc_backup.reports import export_report, patch_report
    from svc_backup.writing import make_directory, require_space, verifier

    system_paths = declared_system_paths() if privileged else None
    planned = (
        plan_export(database, root, system_paths=system_paths, without_lost=without_lost)
        if base is None
        else plan_patch(database, base, root)
    )
    with planned as outgoing:
        make_directory(path.parent)
        require_space(path, outgoing.size)
        total = outgoing.size * 2
        verify = verifier(database, outgoing, path.name, lambda done: progress(outgoing.size + done, total))
        write_file(
            outgoing,
            path,
            pause=lambda: None,
            progress=lambda done, _: progress(done, total),
            verify=verify,
        )
        report = export_report(outgoing) if base is None else patch_report(outgoing)
        return dict(msgspec.to_builtins(report))


def backup_target(path: FilePath) -> Hash:
    """Returns the version that an export or a patch makes. Reads the headers of all its records.

    Raises:
        NotFound: the file is not there.
        ForeignFile, UnsupportedFormat, RefusedFile: it is neither.
    """
    from svc.errors import NotFound
    from svc_backup.format import IncomingFile

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"There is no file {path.name}.") from None
    try:
        with IncomingFile(descriptor, path.name) as file:
            return file.root
    finally:
        os.close(descriptor)
