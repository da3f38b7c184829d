"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="index.fulltext",
    version="0.1.0",
    summary="Full-text search, ranked by BM25",
    api=(1, 1),
    adds={
        "query:index_types": ("svc_index_fulltext.index_type:FulltextIndexType",),
        "query:query_operators": ("svc_index_fulltext.operator:SearchOperator",),
    },
)
