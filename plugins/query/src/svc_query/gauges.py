"""How large the index is, for whoever reads metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc_metrics.api import Counted, Gauge, GaugeSource

from svc.plugin import PluginContext
from svc_cli import view_places
from svc_query.indexing import INDEX_VIEW
from svc_query.indexing.sizes import IndexSize, size_file

__all__ = ["IndexGauges"]


class IndexGauges(GaugeSource):
    """Says what the process that works on the index said last."""

    name = "query"

    def gauges(self, context: PluginContext) -> Iterator[Gauge]:
        """Reads one small file."""
        size = _size(context)
        yield Gauge("svc_indexes", "Indexes of queries.", size.indexes)
        yield Gauge("svc_indexed_documents", "Files that are in indexes.", size.documents)
        text = "Documents that are in memory and in no file of an index yet."
        yield Gauge("svc_unflushed_documents", text, size.unflushed)

    def statistics(self, context: PluginContext, counted: Counted) -> dict[str, Any]:
        """The same, in the words of the statistics."""
        size, database = _size(context), context.database
        applied = view_places(database.state_directory).get(INDEX_VIEW)
        behind = 0 if applied is None else max(0, database.head().sequence - applied)
        index_cache = {
            "cached_indexes": size.indexes,
            "pending_mutations": behind + size.unflushed,
            "total_mutations": int(counted.total("svc_parsed_files")),
            "flushes": size.flushes,
            "entries": size.documents,
            "estimated_bytes": size.tail_bytes,
        }
        return {"memory": {"index_cache": index_cache, "caches": {"index_config_entries": size.directories}}}


def _size(context: PluginContext) -> IndexSize:
    said = size_file(context.database.state_directory).read()
    return IndexSize() if said is None else said[0]
