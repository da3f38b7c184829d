"""The hooks of the plugin: its view, its commands and its part of the portal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import EntryAction, PortalPage

    from svc.plugin import NamedRegistry, View

__all__ = [
    "svc_register_entry_actions",
    "svc_register_portal_pages",
    "svc_register_views",
]


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the view that keeps the commits of every path."""
    from svc_history.view import HistoryView

    views.add(HistoryView())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds histories, comparisons, blame, the log and commits."""
    from svc_history.portal.blame import BlamePage
    from svc_history.portal.comparison import ComparePage
    from svc_history.portal.history import HistoryPage
    from svc_history.portal.log import CommitPage, LogPage

    for page in (HistoryPage, ComparePage, BlamePage, LogPage, CommitPage):
        portal_pages.add(page())


@hookimpl
def svc_register_entry_actions(entry_actions: NamedRegistry[EntryAction]) -> None:
    """Adds the history and blame of an entry."""
    from svc_history.portal.actions import BlameAction, HistoryAction

    for action in (HistoryAction, BlameAction):
        entry_actions.add(action())
