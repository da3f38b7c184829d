"""Links among the actions of an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import EntryAction, PortalEntry

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["BlameAction", "HistoryAction"]

_TEXT = frozenset(
    f"application/{name}" for name in ("json", "javascript", "toml", "xml", "yaml", "x-sh", "x-ndjson")
)


class HistoryAction(EntryAction):
    """What became of a file, directory or link."""

    name: ClassVar[str] = "history"
    title: ClassVar[str] = "History"
    place: ClassVar[int] = 30

    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """Its history."""
        return request.url("history", path=entry.path)


class BlameAction(EntryAction):
    """Who wrote the lines of a text."""

    name: ClassVar[str] = "history.blame"
    title: ClassVar[str] = "Blame"
    place: ClassVar[int] = 31

    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """Of texts alone."""
        content_type = entry.content_type or ""
        if entry.kind != "file" or not (content_type.startswith("text/") or content_type in _TEXT):
            return None
        return request.url("blame", path=entry.path)
