"""``/version(s)/restore`` and ``/version(s)/file-restore/{path}``: the way back to an older state."""

from __future__ import annotations

import falcon
import msgspec

from svc.errors import InvalidInput
from svc.plugin import Path, context_of, format_path, parse_time, read_json, requires_root, send_json
from svc_versions.requests import settings_of
from svc_versions.restoring import restore_path, restore_snapshot

__all__ = ["FileRestoreResource", "RestoreResource"]


class RestoreBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a restore: the snapshot."""

    name: str


class FileRestoreBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a path's restore: a snapshot, a version (a root hash in hex) or a time; the first wins."""

    snapshot: str | None = None
    version: str | None = None
    at: str | None = None


class RestoreResource:
    """Makes a snapshot HEAD again."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Restores it, with a safety snapshot of what HEAD was."""
        body = read_json(req, RestoreBody, settings_of(req).maximum_json)
        context = context_of(req)
        restored = restore_snapshot(context.database, body.name, actor=context.actor)
        version = restored.version.hex()
        resp.set_header("X-Svc-Version", version)
        send_json(
            resp,
            {
                "restored": True,
                "name": restored.name,
                "auto_snapshot": restored.auto_snapshot,
                "version": version,
            },
        )


class FileRestoreResource:
    """Puts a file, a link or a directory back as a version has it."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response, path: Path) -> None:
        """Restores the path, with a safety snapshot of what HEAD was."""
        body = read_json(req, FileRestoreBody, settings_of(req).maximum_json)
        if body.snapshot is None and body.version is None and body.at is None:
            raise InvalidInput("The body names a snapshot or a version.", field="snapshot")
        context = context_of(req)
        database = context.database
        source = database.resolve_version(
            snapshot=body.snapshot,
            version=body.version,
            at=None if body.at is None else parse_time(body.at),
        )
        label = None if body.snapshot is None else f"snapshot {body.snapshot}"
        restored = restore_path(database, path, source, actor=context.actor, label=label)
        version = restored.version.hex()
        resp.set_header("X-Svc-Version", version)
        send_json(
            resp,
            {
                "restored": True,
                "path": format_path(restored.path),
                "from_snapshot": body.snapshot,
                "from_version": source.hex(),
                "auto_snapshot": restored.auto_snapshot,
                "size": restored.entry.size,
                "entry_type": int(restored.entry.kind),
                "version": version,
            },
        )
