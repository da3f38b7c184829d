"""The history of a path: who changed it, when and how; each change leads to what it was then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import UNSET
from svc_portal.api import Answer, PortalPage, Shown

from svc.plugin import EntryKind, Path
from svc_history.models import HistoryQuery, HistoryRow
from svc_history.operations import show_history
from svc_history.portal.shown import ROWS, hidden_as_missing, past_url, short, what_changed, who
from svc_history.portal.timeline import timeline_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["HistoryPage"]

_OVER_SNAPSHOTS = "snapshots"


class HistoryPage(PortalPage):
    """What became of a file, directory or link."""

    name: ClassVar[str] = "history"
    path: ClassVar[str] = "history/{path:path}"
    title: ClassVar[str] = "History"
    follows: ClassVar[str | None] = "files"

    def show(self, request: PortalRequest) -> Answer:
        """The changes by commits, or from snapshot to snapshot; newest first, by pages."""
        path: Path = request.fields["path"]
        over, after = request.query.get("over"), request.query.get("after")
        by_commits = over != _OVER_SNAPSHOTS
        query = HistoryQuery(commits=by_commits, limit=ROWS, after=after or None)
        with hidden_as_missing():
            page = request.call(show_history, path, query)
        rows = page.history
        values = {
            "path": path,
            "crumbs": request.crumbs("history", "All files", path),
            "rows": [_row(request, path, row) for row in rows],
            "timeline": timeline_of(rows),
            "by_commits": by_commits,
            "commits_url": request.url("history", path=path),
            "snapshots_url": request.url("history", {"over": _OVER_SNAPSHOTS}, path=path),
            "compare_url": request.url("compare", path=path),
            "files_url": request.entry_url(path),
            "next_url": request.url("history", {"over": over, "after": page.next_cursor}, path=path)
            if page.has_more
            else None,
            "after": after,
            "damaged": page.damaged_commits if isinstance(page.damaged_commits, list) else [],
        }
        return Shown("history.html", values, title=f"History of {path[-1] if path else 'all files'}")


def _row(request: PortalRequest, path: Path, row: HistoryRow) -> dict[str, Any]:
    is_there = row.change_type != "deleted" and row.collected is not True
    has_commit = not isinstance(row.sequence, type(UNSET))
    restorable = is_there and path and request.identity.is_unrestricted_root
    versions = {"from": "HEAD", "to": row.version}
    return {
        "row": row,
        "id": row.sequence if has_commit else row.snapshot,
        "short": short(row.version),
        "who": who(request, row),
        "what": what_changed(row),
        "message": row.message or "",
        "size": row.size if is_there and row.entry_type != EntryKind.DIRECTORY else None,
        "is_known": row.collected is not True,
        "look_url": past_url(request, path, row.version) if is_there else None,
        "commit_url": request.url("commits", version=row.sequence) if has_commit else None,
        "restore_url": request.url("compare", versions, path=path) if restorable else None,
    }
