"""The hooks of the plugin: its command, its events, its pages and its background job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType
    from svc_portal.api import EntryAction, PortalPage

    from svc.plugin import JobRegistry, NamedRegistry

__all__ = [
    "svc_background",
    "svc_register_entry_actions",
    "svc_register_event_types",
    "svc_register_portal_pages",
]


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the job that removes the records of links that ended."""
    from svc_sharing.pruning import PruneLinksJob

    jobs.add(PruneLinksJob())


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds ``files_shared``."""
    from svc_sharing.event_types import ShareEvents

    event_types.add(ShareEvents())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds what is shared, with whom, and all links."""
    from svc_sharing.portal.pages import LinksPage, SharedPage, SharingPage

    for page in (SharedPage, SharingPage, LinksPage):
        portal_pages.add(page())


@hookimpl
def svc_register_entry_actions(entry_actions: NamedRegistry[EntryAction]) -> None:
    """Adds sharing an entry."""
    from svc_sharing.portal.pages import ShareAction

    entry_actions.add(ShareAction())
