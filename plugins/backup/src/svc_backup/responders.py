"""The responders of export, diff and import. Files stream, and are never held as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import falcon

from svc.errors import InvalidInput, NotFound, UnsupportedMediaType
from svc.plugin import (
    Database,
    Hash,
    SvcRequest,
    body_stream,
    encode_json,
    has_body,
    parse_time,
    pause,
    read_json,
    read_parameters,
    send_json,
    send_stream,
)
from svc_backup.configuration import BackupConfiguration
from svc_backup.format import IncomingLimits, Outgoing, plan_export, plan_patch
from svc_backup.importing import ImportOptions, import_incoming, open_incoming
from svc_backup.models import (
    DiffBody,
    DiffQuery,
    ExportBody,
    ExportQuery,
    ExportReport,
    ImportBody,
    ImportQuery,
    PatchReport,
)
from svc_backup.output_files import refuse_existing, write_file
from svc_backup.receiving import FILE_NAME, opened_file, received_file
from svc_backup.reports import export_report, import_report, patch_report
from svc_backup.server_paths import backup_directory, path_in_backups
from svc_backup.writing import make_directory

__all__ = ["diff_versions", "export_version", "import_version"]


def export_version(req: SvcRequest, resp: falcon.Response) -> None:
    """Answers with the file, or with a report of what was written on the server."""
    database = req.context.database
    query = read_parameters(req, ExportQuery)
    body = read_json(req, ExportBody) if has_body(req) else ExportBody()
    root = _chosen_version(
        database, body.snapshot or query.snapshot, body.version or query.version, body.at or query.at
    )
    without_lost = body.without_lost or query.without_lost
    if body.output is None:
        outgoing = plan_export(database, root, without_lost=without_lost, pause=pause)
        _send_file(resp, outgoing, f"svc-{root.hex()[:16]}.svcdb", export_report(outgoing))
        return
    path = path_in_backups(database.path, body.output, "output")
    refuse_existing(path)
    with plan_export(database, root, without_lost=without_lost, pause=pause) as outgoing:
        _write_below(outgoing, path, backup_directory(database.path))
        send_json(resp, export_report(outgoing, str(path)))


def diff_versions(req: SvcRequest, resp: falcon.Response) -> None:
    """Answers with the patch, or with a report of what was written on the server."""
    database = req.context.database
    query = read_parameters(req, DiffQuery)
    body = read_json(req, DiffBody) if has_body(req) else DiffBody()
    source, to = body.source or query.source, body.to or query.to
    if source is None:
        raise InvalidInput("A patch needs the version that it is made from.", field="from")
    base = _named_version(database, source, "from")
    target = database.head().root if to is None else _named_version(database, to, "to")
    if body.output is None:
        outgoing = plan_patch(database, base, target, pause=pause)
        name = f"svc-{base.hex()[:16]}-{target.hex()[:16]}.svcdb"
        _send_file(resp, outgoing, name, patch_report(outgoing))
        return
    path = path_in_backups(database.path, body.output, "output")
    refuse_existing(path)
    with plan_patch(database, base, target, pause=pause) as outgoing:
        _write_below(outgoing, path, backup_directory(database.path))
        send_json(resp, patch_report(outgoing, str(path)))


def import_version(req: SvcRequest, resp: falcon.Response) -> None:
    """Takes the file in and reports; HEAD moves only when that is asked for."""
    context = req.context
    settings = context.configuration or BackupConfiguration()
    database, query = context.database, read_parameters(req, ImportQuery)
    promote, force = query.promote, query.force
    if _is_json(req.content_type):
        body = read_json(req, ImportBody)
        promote, force = body.promote or promote, body.force or force
        source = opened_file(path_in_backups(database.path, body.file, "file"), settings.maximum_import)
    else:
        source = received_file(database, body_stream(req, settings.maximum_import), force)
    limits = IncomingLimits(settings.maximum_import, settings.maximum_expansion)
    options = ImportOptions(promote, force, actor=context.actor, pause=pause)
    with source as descriptor, open_incoming(database, descriptor, FILE_NAME, limits, pause) as file:
        result = import_incoming(database, file, options)
    send_json(resp, import_report(result))


def _chosen_version(
    database: Database, snapshot: str | None, version: str | None, at: str | int | None
) -> Hash:
    """The version that a request names: a snapshot, a hash, a time, in this order; else HEAD."""
    if snapshot is not None and not snapshot:
        raise NotFound("There is no snapshot of this name.", name=snapshot)
    time_ms = parse_time(at) if isinstance(at, str) else at
    return database.resolve_version(snapshot=snapshot, version=version, at=time_ms)


def _named_version(database: Database, name: str, field: str) -> Hash:
    if not name:
        raise InvalidInput(f"The member {field} names a version.", field=field)
    return database.named_version(name)


def _write_below(outgoing: Outgoing, path: Path, directory: Path) -> None:
    """Writes a file into the backup directory, which is made when it is missing, readable by its owner."""
    make_directory(directory)
    make_directory(path.parent)
    write_file(outgoing, path, pause=pause)


def _send_file(
    resp: falcon.Response, outgoing: Outgoing, name: str, report: ExportReport | PatchReport
) -> None:
    """Answers with a planned file as a stream of known length, and its report; closes it at the end."""
    resp.set_header("Content-Disposition", f'attachment; filename="{name}"')
    resp.set_header("X-Svc-Version", outgoing.root.hex())
    resp.set_header("X-Svc-Report", encode_json(report).decode())
    resp.set_header("Cache-Control", "no-store")
    send_stream(resp, _Closing(outgoing), outgoing.size, content_type="application/octet-stream")


class _Closing(Iterator[bytes]):
    """The pieces of a file, which is closed with them, also when they were never asked for."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._pieces = outgoing.pieces()

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        self._outgoing.close()


def _is_json(content_type: str | None) -> bool:
    media_type = (content_type or "application/octet-stream").partition(";")[0].strip().lower()
    if media_type == "application/json" or media_type.endswith("+json"):
        return True
    if media_type != "application/octet-stream":
        raise UnsupportedMediaType(
            "The body is the file (Content-Type: application/octet-stream), or JSON that names one."
        )
    return False
