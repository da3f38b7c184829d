"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, SyncRule, SystemPath
from svc_users.configuration import UsersConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="users",
    version="0.1.0",
    summary="Users, groups and grants: who may do what",
    api=(1, 1),
    configuration=UsersConfiguration,
    implementation="svc_users.plugin",
    command_group="People",
    operations=("svc_users.operations",),
    names_users="show_user",
    extends=("events:event_types", "metrics:gauge_sources", "portal:entry_actions", "portal:portal_pages"),
    system_paths=(
        SystemPath("users", BackupRule.INCLUDE, sync=SyncRule.LAST_WRITER),
        SystemPath("groups", BackupRule.INCLUDE, sync=SyncRule.REMOVAL_WINS),
        SystemPath("grants", BackupRule.INCLUDE, sync=SyncRule.REMOVAL_WINS),
        SystemPath("grants-by-path", BackupRule.INCLUDE, sync=SyncRule.REMOVAL_WINS),
    ),
)
