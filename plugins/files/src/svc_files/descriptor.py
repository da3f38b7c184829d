"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugins import PluginDescriptor
from svc_files.configuration import FilesConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="files",
    version="0.1.0",
    summary="Files, links and blobs over HTTP and at the shell",
    api=(1, 1),
    configuration=FilesConfiguration,
    implementation="svc_files.plugin",
)
"""Files, links and blobs of a database, over HTTP and at the shell."""
