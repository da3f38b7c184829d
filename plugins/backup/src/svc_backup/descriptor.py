"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, PluginDescriptor, SystemPath
from svc_backup.configuration import BackupConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="backup",
    version="0.1.0",
    summary="Export, patch, import and promote of versions",
    api=(1, 1),
    configuration=BackupConfiguration,
    adds={
        "portal:portal_pages": (
            "svc_backup.portal.backups:BackupsPage",
            "svc_backup.portal.backups:BackupPage",
        ),
    },
    command_group="Versions",
    operations=("svc_backup.operations",),
    response_headers=("X-Svc-Version",),
    system_paths=(SystemPath("refs/imports", BackupRule.SKIP),),
    commands=(
        CommandHome(
            "export", "svc_backup.commands.export:export", "Writes a version into a file of its own."
        ),
        CommandHome(
            "diff", "svc_backup.commands.diff:diff", "Shows what changed between versions, or writes a patch."
        ),
        CommandHome(
            "import", "svc_backup.commands.import_files:import_files", "Takes in exports and patches."
        ),
        CommandHome("promote", "svc_backup.commands.promote:promote", "Makes a version HEAD."),
    ),
)
