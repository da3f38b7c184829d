"""Links among the actions of an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import EntryAction, PortalEntry

from svc.plugin import Operation

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["CopyAction", "DeletedAction", "MoveAction", "PastAction", "RenameAction"]


class _FormAction(EntryAction):
    form: ClassVar[str]
    needs: ClassVar[Operation]

    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """The form of the entry, where it may be done; never for the root."""
        if not entry.path or not request.may(self.needs, entry.path):
            return None
        return request.url("files", {"do": self.form}, path=entry.path)


class RenameAction(_FormAction):
    """Another name."""

    name: ClassVar[str] = "files.rename"
    title: ClassVar[str] = "Rename"
    place: ClassVar[int] = 10
    form: ClassVar[str] = "rename"
    needs: ClassVar[Operation] = Operation.DELETE


class MoveAction(_FormAction):
    """Another directory."""

    name: ClassVar[str] = "files.move"
    title: ClassVar[str] = "Move"
    place: ClassVar[int] = 11
    form: ClassVar[str] = "move"
    needs: ClassVar[Operation] = Operation.DELETE


class CopyAction(_FormAction):
    """A copy in another directory."""

    name: ClassVar[str] = "files.copy"
    title: ClassVar[str] = "Copy"
    place: ClassVar[int] = 12
    form: ClassVar[str] = "copy"
    needs: ClassVar[Operation] = Operation.READ


class _DirectoryAction(EntryAction):
    """A link of the page of a directory; rows of listings go without."""

    page: ClassVar[str]

    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """The page about the directory that is shown."""
        if entry.kind != "directory" or request.fields.get("path") != entry.path:
            return None
        return request.url(self.page, path=entry.path)


class PastAction(_DirectoryAction):
    """The directory as it was."""

    name: ClassVar[str] = "files.past"
    title: ClassVar[str] = "As of a time"
    place: ClassVar[int] = 40
    page: ClassVar[str] = "past"


class DeletedAction(_DirectoryAction):
    """What was deleted in it."""

    name: ClassVar[str] = "files.deleted"
    title: ClassVar[str] = "Deleted files"
    place: ClassVar[int] = 41
    page: ClassVar[str] = "deleted"

    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """For those who may delete there."""
        may_delete = request.may(Operation.DELETE, entry.path)
        return super().url(request, entry) if may_delete else None
