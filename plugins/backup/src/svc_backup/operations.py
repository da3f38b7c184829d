"""Export, diff, import and promote of versions, all root's. Files stream, and are never held as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import AlreadyExists, Conflict, InsufficientStorage, InvalidInput, NotFound
from svc.plugin import Path, Weight, operation, parse_hash, requires_root
from svc_backup.models import (
    BackupList,
    BackupPreview,
    DiffBody,
    DiffQuery,
    ExportBody,
    ExportQuery,
    ExportReport,
    ImportQuery,
    ImportReport,
    PatchReport,
    PromoteBody,
    Promoted,
)

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = [
    "diff_versions",
    "export_version",
    "import_version",
    "list_backups",
    "preview_import",
    "promote_version",
]


@operation(
    "POST",
    "/versions/export",
    requires_root,
    older=("/version/export",),
    errors=(NotFound, AlreadyExists, InsufficientStorage),
    weight=Weight.STREAMING,
    responder="svc_backup.responders:export_version",
    repeatable=True,
)
def export_version(
    call: Call, query: ExportQuery = ExportQuery(), body: ExportBody | None = None
) -> bytes | ExportReport:
    """Exports a version: answers the file, or a report of one that was written on the server.

    The file holds user data only. Its report is in the header field X-Svc-Report.
    """


@operation(
    "POST",
    "/versions/diff",
    requires_root,
    older=("/version/diff",),
    errors=(NotFound, AlreadyExists, InsufficientStorage),
    weight=Weight.STREAMING,
    responder="svc_backup.responders:diff_versions",
    repeatable=True,
)
def diff_versions(
    call: Call, query: DiffQuery = DiffQuery(), body: DiffBody | None = None
) -> bytes | PatchReport:
    """Makes a patch that leads from a version to another: answers it, or a report of one that was written.

    The report of an answered patch is in the header field X-Svc-Report.
    """


@operation(
    "POST",
    "/versions/import",
    requires_root,
    older=("/version/import",),
    errors=(NotFound, Conflict, InsufficientStorage),
    weight=Weight.STREAMING,
    responder="svc_backup.responders:import_version",
)
def import_version(call: Call, body: bytes, query: ImportQuery = ImportQuery()) -> ImportReport:
    """Takes an export or a patch in; HEAD moves only when that is asked for.

    In place of the file the body may be JSON with the member file, which names one in the server's backup
    directory, and the members promote and force.
    """


@operation(
    "POST",
    "/versions/promote",
    requires_root,
    older=("/version/promote",),
    errors=(NotFound,),
    weight=Weight.DEAR,
)
def promote_version(call: Call, body: PromoteBody) -> Promoted:
    """Makes a version HEAD that the database holds, such as one that was imported."""
    from svc_backup import promoting

    root = parse_hash(body.hash)
    if root is None:
        raise InvalidInput("A version is a root hash of 64 hex digits.", field="hash")
    before = call.database.head().root
    promoting.promote_version(call.database, root, actor=call.actor)
    return Promoted(head=root.hex(), version=root.hex(), previous=before.hex())


@operation("GET", "/versions/backups", requires_root, weight=Weight.DEAR, cache="no-store")
def list_backups(call: Call) -> BackupList:
    """Lists the files of the server's backup directory, the newest first."""
    from svc.plugin import run_blocking
    from svc_backup.listing import list_files

    return run_blocking(list_files, call.database)


@operation(
    "GET",
    "/versions/backups/{file:path}",
    requires_root,
    errors=(NotFound, InsufficientStorage),
    weight=Weight.DEAR,
    cache="no-store",
)
def preview_import(call: Call, file: Path) -> BackupPreview:
    """Shows what an import of a file of the backup directory would do; changes nothing."""
    from svc_backup.configuration import BackupConfiguration
    from svc_backup.listing import preview_file

    return preview_file(call.database, "/".join(file), call.configuration or BackupConfiguration())
