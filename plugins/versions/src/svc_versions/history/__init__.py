"""The history of paths: who changed what, when, and how any two versions differ.

The commit feed flows in, through a view that keeps for every path the commits that touched it; histories,
logs, comparisons and line-by-line origins flow out, over HTTP and at the shell, as the caller may see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from svc.database import View
    from svc.plugins import NamedRegistry, RouteRegistry

__all__ = ["HISTORY_COMMANDS", "register_history_routes", "register_history_views"]

HISTORY_COMMANDS: dict[str, tuple[str, str]] = {
    "log": ("svc_versions.history.commands:log", "Lists commits, of everything or of a path."),
    "show": ("svc_versions.history.commands:show", "Shows one commit and what it changed."),
    "history": ("svc_versions.history.commands:history", "Shows what became of a file or directory."),
    "blame": ("svc_versions.history.commands:blame", "Shows which commit each line comes from."),
}
"""Where each command of the history is, and its line in the help."""


def register_history_routes(routes: RouteRegistry) -> None:
    """Adds the routes of histories, the log, comparisons and blame."""
    from svc_versions.history.resources import (
        BlameResource,
        CommitResource,
        CompareResource,
        FileHistoryResource,
        LogResource,
    )

    file_history = FileHistoryResource()
    routes.add("/version/file-history/{path:path}", file_history)
    routes.add("/versions/file-history/{path:path}", file_history)
    routes.add("/versions/history/{path:path}", file_history)
    routes.add("/versions/log", LogResource())
    routes.add("/versions/commits/{version}", CommitResource())
    routes.add("/versions/compare", CompareResource())
    routes.add("/versions/blame/{path:path}", BlameResource())


def register_history_views(views: NamedRegistry[View]) -> None:
    """Adds the view that keeps the commits of every path."""
    from svc_versions.history.view import HistoryView

    views.add(HistoryView())
