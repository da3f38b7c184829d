"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="index.trigram",
    version="0.1.0",
    summary="Substrings, similar and misspelt values",
    api=(1, 1),
    adds={
        "query:index_types": ("svc_index_trigram.index:TrigramIndex",),
        "query:query_operators": ("svc_index_trigram.operators:OPERATORS",),
    },
)
