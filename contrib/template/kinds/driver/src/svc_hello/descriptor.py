"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="contrib.hello",
    version="0.1.0",
    summary="Greets in the styles that other plugins add",
    api=(1, 1),
    adds={
        "contrib.hello:hello_styles": ("svc_hello.styles:Plain",),
    },
    operations=("svc_hello.operations",),
    families="svc_hello.api",
)
