"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import CommandHome, PluginDescriptor
from svc_mirror.configuration import MirrorConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="mirror",
    version="0.1.0",
    summary="Copies of directories that clients keep up to date, both ways",
    api=(1, 1),
    configuration=MirrorConfiguration,
    command_group="Files",
    operations=("svc_mirror.operations",),
    needs=("files",),
    commands=(
        CommandHome("mirror", "svc_mirror.command:mirror", "Keeps a directory of a server here, both ways."),
    ),
)
