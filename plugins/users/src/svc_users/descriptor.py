"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, SystemPath
from svc_users.configuration import UsersConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="users",
    version="0.1.0",
    summary="Users, groups and grants: who may do what",
    api=(1, 1),
    configuration=UsersConfiguration,
    implementation="svc_users.plugin",
    operations=("svc_users.operations",),
    extends=("events:event_types",),
    system_paths=(
        SystemPath("users", BackupRule.INCLUDE),
        SystemPath("groups", BackupRule.INCLUDE),
        SystemPath("grants", BackupRule.INCLUDE),
        SystemPath("grants-by-path", BackupRule.INCLUDE),
    ),
)
