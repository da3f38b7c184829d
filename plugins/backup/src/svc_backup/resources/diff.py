"""``POST /versions/diff``: what leads from one version to another, as a patch."""

from __future__ import annotations

import falcon
import msgspec

from svc.errors import InvalidInput
from svc.plugin import context_of, has_body, pause, query_text, read_json, requires_root, send_json
from svc_backup.format import plan_patch
from svc_backup.output_files import refuse_existing
from svc_backup.reports import patch_json
from svc_backup.resources.export import write_below
from svc_backup.resources.requests import named_version, send_file
from svc_backup.server_paths import backup_directory, path_in_backups

__all__ = ["DiffBody", "DiffResource"]


class DiffBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body: which versions the patch is between (``from`` and ``to``, else HEAD), and where it goes.

    ``output`` names a file in the server's backup directory; without it the patch is the answer.
    """

    output: str | None = None
    source: str | None = msgspec.field(default=None, name="from")
    to: str | None = None


class DiffResource:
    """Makes patches."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answers with the patch, or with a report of what was written on the server."""
        database = context_of(req).database
        body = read_json(req, DiffBody) if has_body(req) else DiffBody()
        source, to = body.source or query_text(req, "from"), body.to or query_text(req, "to")
        if source is None:
            raise InvalidInput("A patch needs the version that it is made from.", field="from")
        base = named_version(database, source, "from")
        target = database.head().root if to is None else named_version(database, to, "to")
        if body.output is None:
            outgoing = plan_patch(database, base, target, pause=pause)
            name = f"svc-{base.hex()[:16]}-{target.hex()[:16]}.svcdb"
            send_file(resp, outgoing, name, patch_json(outgoing))
            return
        path = path_in_backups(database.path, body.output, "output")
        refuse_existing(path)
        with plan_patch(database, base, target, pause=pause) as outgoing:
            write_below(outgoing, path, backup_directory(database.path))
            send_json(resp, {"output": str(path), **patch_json(outgoing)})
