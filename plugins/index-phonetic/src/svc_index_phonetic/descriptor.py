"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="index.phonetic",
    version="0.1.0",
    summary="Values that sound alike",
    api=(1, 1),
    adds={
        "query:index_types": ("svc_index_phonetic.index:PhoneticIndex",),
        "query:query_operators": ("svc_index_phonetic.operators:PhoneticOperator",),
    },
)
