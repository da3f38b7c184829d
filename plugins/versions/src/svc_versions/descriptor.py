"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, SystemPath
from svc_versions.configuration import VersionsConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="versions",
    version="0.1.0",
    summary="Snapshots, forks, restore and merge",
    api=(1, 1),
    configuration=VersionsConfiguration,
    implementation="svc_versions.plugin",
    operations=("svc_versions.operations",),
    extends=("events:event_types",),
    retired=("blame_size", "blame_scan"),
    response_headers=("X-Svc-Version",),
    system_paths=(
        SystemPath("refs/snapshots", BackupRule.INCLUDE, documents="versions/snapshots"),
        SystemPath("refs/forks", BackupRule.SKIP),
        SystemPath("refs/abandoned", BackupRule.SKIP),
        SystemPath("refs/forks-bases", BackupRule.SKIP),
        SystemPath("refs/abandoned-bases", BackupRule.SKIP),
        SystemPath("versions", BackupRule.SKIP),
        SystemPath("versions/lifecycle", BackupRule.INCLUDE),
        SystemPath("versions/snapshots", BackupRule.INCLUDE),
    ),
)
