"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, CompletionHome, PluginDescriptor, SyncRule, SystemPath
from svc_users.configuration import UsersConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="users",
    version="0.1.0",
    summary="Users, groups and grants: who may do what",
    api=(1, 1),
    configuration=UsersConfiguration,
    adds={
        "events:event_types": ("svc_users.event_types:PermissionEvents",),
        "metrics:gauge_sources": ("svc_users.gauges:RightsGauges",),
        "portal:portal_pages": (
            "svc_users.portal.users:UsersPage",
            "svc_users.portal.users:UserPage",
            "svc_users.portal.groups:GroupsPage",
            "svc_users.portal.groups:GroupPage",
            "svc_users.portal.access:AccessPage",
            "svc_users.portal.seeing:SeeAsPage",
        ),
        "portal:entry_actions": ("svc_users.portal.access:AccessAction",),
    },
    command_group="People",
    operations=("svc_users.operations",),
    names_users="show_user",
    system_paths=(
        SystemPath("users", BackupRule.INCLUDE, sync=SyncRule.LAST_WRITER),
        SystemPath("groups", BackupRule.INCLUDE, sync=SyncRule.REMOVAL_WINS),
        SystemPath("grants", BackupRule.INCLUDE, sync=SyncRule.REMOVAL_WINS),
        SystemPath("grants-by-path", BackupRule.INCLUDE, sync=SyncRule.REMOVAL_WINS),
    ),
    commands=(
        CommandHome("user", "svc_users.commands.user:user", "Makes, lists, changes and deactivates users."),
        CommandHome("group", "svc_users.commands.group:group", "Makes, lists, changes and deletes groups."),
        CommandHome(
            "grant", "svc_users.commands.grant:grant", "Grants paths to groups and users, and takes back."
        ),
        CommandHome("access", "svc_users.commands.access:access", "Explains what a user may do to a path."),
    ),
    completions=(
        CompletionHome("user", "svc_users.commands.completing:users"),
        CompletionHome("group", "svc_users.commands.completing:groups"),
    ),
)
