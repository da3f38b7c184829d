"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugins import PluginDescriptor
from svc_backup.configuration import BackupConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="backup",
    version="0.1.0",
    summary="Export, patch, import and promote of versions",
    api=(1, 1),
    configuration=BackupConfiguration,
    implementation="svc_backup.plugin",
)
"""Files, links and blobs of a database, over HTTP and at the shell."""
