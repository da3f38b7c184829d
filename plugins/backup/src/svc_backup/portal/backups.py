"""The list of backup files, exports to save or to write there, and the import of a file after a preview."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import msgspec
from svc_portal.api import Act, Answer, Handed, Message, RootPage, Shown, Undo

from svc.plugin import Path
from svc_backup.models import ExportBody, ExportQuery, ExportReport, ImportBody, ImportReport, PromoteBody
from svc_backup.operations import (
    export_version,
    import_version,
    list_backups,
    preview_import,
    promote_version,
)

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["BackupPage", "BackupsPage"]


class BackupsPage(RootPage):
    """What lies in the backup directory of the server."""

    name: ClassVar[str] = "backups"
    path: ClassVar[str] = "backups"
    title: ClassVar[str] = "Backups"
    place: ClassVar[int | None] = 72

    def show(self, request: PortalRequest) -> Answer:
        """The files, and forms for another one."""
        listed = request.call(list_backups)
        values = {
            "rows": [
                (one, request.url("backups.one", path=tuple(one.name.split("/"))) if one.kind else None)
                for one in listed.files
            ],
            "has_more": listed.more,
            "here": request.here,
            "tasks_url": request.url_if("tasks", {"type": "backup"}),
        }
        return Shown("backups.html", values)

    def acts(self) -> Mapping[str, Act]:
        """Hands an export over, writes one, or makes a version HEAD again."""
        return {"save": _save, "write": _write, "promote": _promote}


class BackupPage(RootPage):
    """One file: what an import of it would do, and the import."""

    name: ClassVar[str] = "backups.one"
    path: ClassVar[str] = "backups/{path:path}"
    title: ClassVar[str] = "Backup"
    follows: ClassVar[str | None] = "backups"

    def show(self, request: PortalRequest) -> Answer:
        """Its kind, its version, and whether it fits to what is here."""
        path: Path = request.fields["path"]
        preview = request.call(preview_import, path)
        compare = request.url_if("compare", {"from": "HEAD", "to": preview.version}, path=())
        values = {
            "preview": preview,
            "here": request.here,
            "all_url": request.url("backups"),
            "compare_url": compare if preview.held and not preview.head else None,
        }
        return Shown("backup.html", values, title=f"Backup {preview.file.name}")

    def acts(self) -> Mapping[str, Act]:
        """Imports it."""
        return {"import": _import, "promote": _promote}


def _snapshot(request: PortalRequest) -> str | None:
    return request.form.get("snapshot").strip() or None


def _save(request: PortalRequest) -> Answer:
    return Handed(request.send(export_version, ExportQuery(snapshot=_snapshot(request))))


def _write(request: PortalRequest) -> Message:
    name = request.form.require("output").strip()
    body = ExportBody(output=name, snapshot=_snapshot(request))
    answer = request.send(export_version, ExportQuery(), body)
    report = msgspec.json.decode(answer.read(), type=ExportReport)
    return Message(f"Wrote {name}: {report.files} files, {report.size} bytes.")


def _import(request: PortalRequest) -> Answer | Message:
    path: Path = request.fields["path"]
    is_head = bool(request.form.get("promote"))
    before = request.context.database.head().root.hex()
    body = ImportBody(file="/".join(path), promote=is_head, force=bool(request.form.get("force")))
    content = "application/json", msgspec.json.encode(body)
    report = msgspec.json.decode(request.send(import_version, content=content).read(), type=ImportReport)
    done = f"Imported {report.files_imported} files and {report.chunks_imported} chunks"
    if not report.head_promoted:
        return Message(f"{done}. HEAD is as it was.")
    undo = Undo(request.here, {"action": "promote", "hash": before})
    return Message(f"{done}; this version is HEAD now.", undo)


def _promote(request: PortalRequest) -> Message:
    done = request.call(promote_version, PromoteBody(request.form.require("hash")))
    undo = Undo(request.here, {"action": "promote", "hash": done.previous})
    return Message(f"HEAD is version {done.head[:12]} now.", undo)
