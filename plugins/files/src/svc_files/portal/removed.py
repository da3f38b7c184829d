"""What was deleted below a directory, and its way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import Act, Answer, Message, PortalPage, Shown, Undo

from svc.errors import Forbidden, InvalidInput, NotFound
from svc.plugin import Path, encode_json, format_path
from svc_files.models import DeletedQuery, RestoreBody
from svc_files.operations import list_deleted, restore_deleted
from svc_files.portal.pages import ROWS

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["DeletedPage"]


class DeletedPage(PortalPage):
    """Deleted files; those who may delete there see them."""

    name: ClassVar[str] = "deleted"
    path: ClassVar[str] = "deleted/{path:path}"
    title: ClassVar[str] = "Deleted files"
    follows: ClassVar[str | None] = "files"

    def show(self, request: PortalRequest) -> Answer:
        """By pages, in path order."""
        path: Path = request.fields["path"]
        after = request.query.get("after") or None
        try:
            page = request.call(list_deleted, DeletedQuery(path=format_path(path), limit=ROWS, after=after))
        except (Forbidden, NotFound):
            raise NotFound("There is nothing at this path.") from None
        values = {
            "path": path,
            "crumbs": request.crumbs("files", "Files", path),
            "here": request.url("deleted", path=path),
            "rows": page.items,
            "after": after,
            "next_url": request.url("deleted", {"after": page.next_cursor}, path=path)
            if page.has_more
            else None,
        }
        return Shown("deleted.html", values, title=f"Deleted in {path[-1] if path else 'all files'}")

    def acts(self) -> Mapping[str, Act]:
        """Brings what was chosen back."""
        return {"": _restore}


def _restore(request: PortalRequest) -> Message:
    """Brings paths back; the message takes back what came."""
    restored = request.form.all("paths")
    if not restored:
        raise InvalidInput("Nothing was chosen.", field="paths")
    for one in restored:
        request.call(restore_deleted, RestoreBody(one))
    text = restored[0] if len(restored) == 1 else f"{len(restored)} files"
    fields = {"action": "delete", "list": encode_json(restored).decode()}
    return Message(f"Restored {text}.", Undo(request.url("files", path=request.fields["path"]), fields))
