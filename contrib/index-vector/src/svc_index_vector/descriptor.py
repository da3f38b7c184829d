"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="index.vector",
    version="0.1.0",
    summary="Finds the nearest neighbours of a vector",
    api=(1, 1),
    adds={
        "query:index_types": ("svc_index_vector.index_type:VectorIndexType",),
        "query:query_operators": ("svc_index_vector.operator:NearestOperator",),
    },
)
