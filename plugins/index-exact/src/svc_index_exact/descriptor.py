"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="index.exact",
    version="0.1.0",
    summary="Equality, ranges and order over the values of fields",
    api=(1, 1),
    implementation="svc_index_exact.plugin",
    extends=("query:index_types", "query:query_operators"),
)
