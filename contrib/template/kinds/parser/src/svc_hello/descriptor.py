"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="contrib.hello",
    version="0.1.0",
    summary="Reads files of key = value lines",
    api=(1, 1),
    adds={
        "query:parsers": ("svc_hello.properties:PropertiesParser",),
    },
)
