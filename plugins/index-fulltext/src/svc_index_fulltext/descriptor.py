"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="index.fulltext",
    version="0.1.0",
    summary="Full-text search, ranked by BM25",
    api=(1, 1),
    implementation="svc_index_fulltext.plugin",
    extends=("query:index_types", "query:query_operators"),
)
