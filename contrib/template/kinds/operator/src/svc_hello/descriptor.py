"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="contrib.hello",
    version="0.1.0",
    summary="Finds texts that are shorter than a number of letters",
    api=(1, 1),
    adds={
        "query:query_operators": ("svc_hello.lengths:ShorterThan",),
    },
)
