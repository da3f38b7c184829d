"""The hooks of the plugin: its routes and its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType

    from svc.plugin import CommandRegistry, NamedRegistry, RouteRegistry

__all__ = [
    "COMMANDS",
    "svc_register_commands",
    "svc_register_event_types",
    "svc_register_routes",
]

COMMANDS = {
    "user": ("svc_users.commands.user:user", "Makes, lists, changes and deactivates users."),
    "group": ("svc_users.commands.group:group", "Makes, lists, changes and deletes groups."),
    "grant": ("svc_users.commands.grant:grant", "Grants paths to groups and users, and takes back."),
    "access": ("svc_users.commands.access:access", "Explains what a user may do to a path."),
}
"""Where each command is, and its line in the help."""


@hookimpl
def svc_register_routes(routes: RouteRegistry) -> None:
    """Adds the routes of users, groups, grants and their explanation."""
    from svc_users.resources.access import AccessResource
    from svc_users.resources.grants import GrantResource, GrantsResource
    from svc_users.resources.groups import GroupResource, GroupsResource
    from svc_users.resources.users import UserResource, UsersResource

    routes.add("/system/users", UsersResource())
    routes.add("/system/users/{user_id}", UserResource())
    routes.add("/system/groups", GroupsResource())
    routes.add("/system/groups/{name}", GroupResource())
    routes.add("/system/grants", GrantsResource())
    routes.add("/system/grants/{grant_id}", GrantResource())
    routes.add("/system/access", AccessResource())


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
