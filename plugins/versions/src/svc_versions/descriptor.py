"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugins import PluginDescriptor
from svc_versions.configuration import VersionsConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="versions",
    version="0.1.0",
    summary="Snapshots, forks, history, restore and merge",
    api=(1, 1),
    configuration=VersionsConfiguration,
    implementation="svc_versions.plugin",
)
"""Files, links and blobs of a database, over HTTP and at the shell."""
