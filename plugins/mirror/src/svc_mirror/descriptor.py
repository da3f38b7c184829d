"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor
from svc_mirror.configuration import MirrorConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="mirror",
    version="0.1.0",
    summary="Copies of directories that clients keep up to date, both ways",
    api=(1, 1),
    configuration=MirrorConfiguration,
    implementation="svc_mirror.plugin",
    command_group="Files",
    operations=("svc_mirror.operations",),
    needs=("files",),
)
