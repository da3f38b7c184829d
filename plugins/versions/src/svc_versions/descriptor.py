"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, CompletionHome, PluginDescriptor, SyncRule, SystemPath
from svc_versions.configuration import VersionsConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="versions",
    version="0.1.0",
    summary="Snapshots, forks, restore and merge",
    api=(1, 1),
    configuration=VersionsConfiguration,
    adds={
        "views": ("svc_versions.ancestry:JumpsView",),
        "metrics:gauge_sources": ("svc_versions.gauges:VersionGauges",),
        "portal:portal_pages": (
            "svc_versions.portal.pages:SnapshotsPage",
            "svc_versions.portal.pages:SnapshotPage",
            "svc_versions.portal.pages:ForksPage",
            "svc_versions.portal.pages:ForkPage",
            "svc_versions.portal.merging:MergePage",
        ),
        "jobs": (
            "svc_versions.retention:RetentionJob",
            "svc_versions.scheduling:ScheduleJob",
        ),
        "events:event_types": ("svc_versions.event_types:VersionEvents",),
    },
    command_group="Versions",
    operations=("svc_versions.operations",),
    retired=("blame_size", "blame_scan"),
    response_headers=("X-Svc-Version",),
    system_paths=(
        SystemPath(
            "refs/snapshots",
            BackupRule.INCLUDE,
            documents="versions/snapshots",
            sync=SyncRule.KEEP_LOSERS,
        ),
        # What a document says of a fork are numbers of commits, which another node has not.
        SystemPath("refs/forks", BackupRule.SKIP, documents="versions/forks", sync=SyncRule.KEEP_LOSERS),
        SystemPath("refs/abandoned", BackupRule.SKIP),
        SystemPath("refs/forks-bases", BackupRule.SKIP),
        SystemPath("refs/abandoned-bases", BackupRule.SKIP),
        SystemPath("versions", BackupRule.SKIP),
        SystemPath("versions/lifecycle", BackupRule.INCLUDE, sync=SyncRule.LAST_WRITER),
        SystemPath("versions/snapshots", BackupRule.INCLUDE, sync=SyncRule.LAST_WRITER),
    ),
    commands=(
        CommandHome(
            "snapshot", "svc_versions.commands.snapshot:snapshot", "Makes, lists and restores snapshots."
        ),
        CommandHome("fork", "svc_versions.commands.fork:fork", "Makes, lists, promotes and abandons forks."),
        CommandHome(
            "merge", "svc_versions.commands.merge:merge", "Merges a fork or snapshot into HEAD or a fork."
        ),
        CommandHome(
            "restore", "svc_versions.commands.restore:restore", "Puts a file or directory back as it was."
        ),
    ),
    completions=(
        CompletionHome("snapshot", "svc_versions.commands.completing:snapshots"),
        CompletionHome("fork", "svc_versions.commands.completing:forks"),
        CompletionHome("version", "svc_versions.commands.completing:versions"),
    ),
)
