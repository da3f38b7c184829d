"""Which commit each line of a text comes from; of a directory, which changed each entry last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_portal.api import Answer, PortalPage, Shown

from svc.errors import PayloadTooLarge
from svc.plugin import Path, parse_path
from svc_history.models import Blame, BlameLine, BlameQuery
from svc_history.operations import blame_path
from svc_history.portal.shown import ROWS, hidden_as_missing, who

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["BlamePage"]

LINES = 1_000
_MOST_BYTES = 16 * 1024 * 1024


class BlamePage(PortalPage):
    """The lines of a text, or the entries of a directory, with their commits."""

    name: ClassVar[str] = "blame"
    path: ClassVar[str] = "blame/{path:path}"
    title: ClassVar[str] = "Blame"
    follows: ClassVar[str | None] = "files"

    def show(self, request: PortalRequest) -> Answer:
        """By pages."""
        path: Path = request.fields["path"]
        query = BlameQuery(
            version=request.query.get("version") or None, limit=ROWS, after=request.query.get("after") or None
        )
        values: dict[str, Any] = {
            "path": path,
            "crumbs": request.crumbs("blame", "All files", path),
            "history_url": request.url("history", path=path),
            "lines": None,
            "entries": None,
            "next_url": None,
            "truncated": False,
        }
        with hidden_as_missing():
            try:
                content = request.send(blame_path, path, query).read(_MOST_BYTES)
                values |= _values(request, path, msgspec.json.decode(content, type=Blame))
            except PayloadTooLarge:
                pass  # The page says so: the command has no such limit.
        return Shown("blame.html", values, title=f"Blame of {path[-1] if path else 'all files'}")


def _values(request: PortalRequest, path: Path, blame: Blame) -> dict[str, Any]:
    own = {"version": request.query.get("version")}
    if not isinstance(blame.lines, list):
        following = request.url("blame", {**own, "after": blame.next_cursor}, path=path)
        entries = [
            {
                "entry": entry,
                "who": who(request, entry),
                "url": request.url("history", path=parse_path(entry.path)),
                "commit_url": _commit_url(request, entry.sequence),
            }
            for entry in blame.items
        ]
        return {"entries": entries, "next_url": following if blame.has_more else None}
    wanted = request.query.get("line", "1")
    first = max(0, int(wanted) - 1) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else 0
    end = first + LINES
    following = request.url("blame", {**own, "line": end + 1}, path=path)
    return {
        "lines": _lines(request, blame.lines[first:end]),
        "total": len(blame.lines),
        "truncated": blame.truncated is True,
        "next_url": following if end < len(blame.lines) else None,
    }


def _lines(request: PortalRequest, lines: list[BlameLine]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    last: int | None = None
    for line in lines:
        begins = line.sequence != last
        last = line.sequence
        rows.append(
            {
                "line": line,
                "begins": begins,
                "who": who(request, line) if begins else "",
                "commit_url": _commit_url(request, line.sequence) if begins else None,
            }
        )
    return rows


def _commit_url(request: PortalRequest, sequence: int | None) -> str | None:
    return None if sequence is None else request.url("commits", version=sequence)
