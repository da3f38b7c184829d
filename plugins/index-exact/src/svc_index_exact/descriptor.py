"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="index.exact",
    version="0.1.0",
    summary="Equality, ranges and order over the values of fields",
    api=(1, 1),
    adds={
        "query:index_types": ("svc_index_exact.index:ExactIndex",),
        "query:query_operators": ("svc_index_exact.operators:OPERATORS",),
    },
)
