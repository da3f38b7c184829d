"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="docs",
    version="0.1.0",
    summary="The documentation, and a page that tries requests",
    api=(1, 1),
    adds={
        "portal:portal_links": ("svc_docs.portal:DocumentationLink",),
    },
    operations=("svc_docs.operations",),
)
