"""``POST /versions/export``: a version as a file, on the server or as the answer."""

from __future__ import annotations

from pathlib import Path

import falcon
import msgspec

from svc.plugin import context_of, has_body, pause, query_text, read_json, requires_root, send_json
from svc_backup.format import Outgoing, plan_export
from svc_backup.output_files import refuse_existing, write_file
from svc_backup.reports import export_json
from svc_backup.resources.requests import chosen_version, send_file
from svc_backup.server_paths import backup_directory, path_in_backups
from svc_backup.writing import make_directory

__all__ = ["ExportBody", "ExportResource", "write_below"]


class ExportBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body: a snapshot, a root hash in hex or a time, else HEAD; and where the file goes.

    ``output`` names a file in the server's backup directory; without it the file is the answer.
    """

    output: str | None = None
    snapshot: str | None = None
    version: str | None = None
    at: str | int | None = None


class ExportResource:
    """Exports one version: user data only."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answers with the file, or with a report of what was written on the server."""
        database = context_of(req).database
        query = ExportBody(
            None, query_text(req, "snapshot"), query_text(req, "version"), query_text(req, "at")
        )
        body = read_json(req, ExportBody) if has_body(req) else query
        root = chosen_version(
            database, body.snapshot or query.snapshot, body.version or query.version, body.at or query.at
        )
        if body.output is None:
            outgoing = plan_export(database, root, pause=pause)
            send_file(resp, outgoing, f"svc-{root.hex()[:16]}.svcdb", export_json(outgoing))
            return
        path = path_in_backups(database.path, body.output, "output")
        refuse_existing(path)
        with plan_export(database, root, pause=pause) as outgoing:
            write_below(outgoing, path, backup_directory(database.path))
            send_json(resp, {"output": str(path), **export_json(outgoing)})


def write_below(outgoing: Outgoing, path: Path, directory: Path) -> None:
    """Writes a file into the backup directory, which is made when it is missing, readable by its owner.

    Raises as ``make_directory`` and ``write_file``.
    """
    make_directory(directory)
    make_directory(path.parent)
    write_file(outgoing, path, pause=pause)
