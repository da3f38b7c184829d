"""The hooks of the plugin: its commands and its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType

    from svc.plugin import CommandRegistry, NamedRegistry

__all__ = [
    "COMMANDS",
    "svc_register_commands",
    "svc_register_event_types",
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


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds ``permissions_changed``."""
    from svc_users.event_types import PermissionEvents

    event_types.add(PermissionEvents())
