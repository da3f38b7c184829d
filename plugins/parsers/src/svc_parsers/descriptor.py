"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="parsers",
    version="0.1.0",
    summary="Reads fields from documents of many formats",
    api=(1, 1),
    adds={
        "query:parsers": ("svc_parsers.parsers:PARSERS",),
    },
)
