"""The hooks of the plugin: its commands, its events, its pages and what its caches hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType
    from svc_metrics.api import GaugeSource
    from svc_portal.api import EntryAction, PortalPage

    from svc.plugin import CommandRegistry, NamedRegistry

__all__ = [
    "COMMANDS",
    "svc_register_commands",
    "svc_register_entry_actions",
    "svc_register_event_types",
    "svc_register_gauge_sources",
    "svc_register_portal_pages",
]

COMMANDS = {
    "user": ("svc_users.commands.user:user", "Makes, lists, changes and deactivates users."),
    "group": ("svc_users.commands.group:group", "Makes, lists, changes and deletes groups."),
    "grant": ("svc_users.commands.grant:grant", "Grants paths to groups and users, and takes back."),
    "access": ("svc_users.commands.access:access", "Explains what a user may do to a path."),
}
"""Where each command is, and its line in the help."""


@hookimpl
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds the commands of users, groups, grants and their explanation."""
    from svc.plugin import LazyCommand

    for name, (home, summary) in COMMANDS.items():
        commands.add(LazyCommand(name, home, summary))
    for kind in ("user", "group"):
        commands.complete(kind, f"svc_users.commands.completing:{kind}s")


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
