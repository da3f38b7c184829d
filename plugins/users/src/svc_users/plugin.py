"""The hooks of the plugin: its commands, its events, its pages and what its caches hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType
    from svc_metrics.api import GaugeSource
    from svc_portal.api import EntryAction, PortalPage

    from svc.plugin import NamedRegistry

__all__ = [
    "svc_register_entry_actions",
    "svc_register_event_types",
    "svc_register_gauge_sources",
    "svc_register_portal_pages",
]


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds ``permissions_changed``."""
    from svc_users.event_types import PermissionEvents

    event_types.add(PermissionEvents())


@hookimpl
def svc_register_gauge_sources(gauge_sources: NamedRegistry[GaugeSource]) -> None:
    """Adds what is kept of rights."""
    from svc_users.gauges import RightsGauges

    gauge_sources.add(RightsGauges())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the pages of users, groups and rights."""
    from svc_users.portal.access import AccessPage
    from svc_users.portal.groups import GroupPage, GroupsPage
    from svc_users.portal.seeing import SeeAsPage
    from svc_users.portal.users import UserPage, UsersPage

    for page in (UsersPage, UserPage, GroupsPage, GroupPage, AccessPage, SeeAsPage):
        portal_pages.add(page())


@hookimpl
def svc_register_entry_actions(entry_actions: NamedRegistry[EntryAction]) -> None:
    """Adds who may do what to an entry."""
    from svc_users.portal.access import AccessAction

    entry_actions.add(AccessAction())
