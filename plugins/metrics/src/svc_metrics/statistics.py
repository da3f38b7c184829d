"""What a server holds, takes and does, for ``/system/stats`` and the event ``metrics``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec.structs import asdict

from svc.plugin import counting_processes, space_of, version_of_svc
from svc_cli import view_places
from svc_metrics.api import GAUGE_SOURCES
from svc_metrics.counted import Counted, distribution_of
from svc_metrics.memory import memory_of
from svc_metrics.models import Identity, Latency, RouteLatency
from svc_metrics.rates import read_rates

if TYPE_CHECKING:
    from svc.plugin import Database, PluginContext

__all__ = ["identity_of", "latency_of", "payload_of"]

_NODE_BYTES = 6 * 1024
"""What a decoded node of a directory takes in memory, about."""


def payload_of(context: PluginContext, counted: Counted) -> dict[str, Any]:
    """Returns the sections of the event ``metrics``, with what the sources of other plugins add.

    Reads files of the state directory and the last commit; the cost does not depend on what is stored.
    """
    database = context.database
    totals, space = database.totals(), space_of(database)
    offered, stored = counted.total("svc_chunks_offered"), counted.total("svc_chunks_stored")
    nodes = int(counted.total("svc_cached_nodes"))
    sequence, places = database.head().sequence, view_places(database.state_directory)
    behind = [sequence - applied for applied in places.values()]
    payload: dict[str, Any] = {
        "counts": {
            "files": totals.files,
            "directories": totals.directories,
            "symlinks": totals.symlinks,
            "chunks": totals.chunks,
            "snapshots": 0,
            "forks": 0,
        },
        "sizes": {
            "disk_total": space.log_allocated + space.state,
            "kv_file": space.index,
            "logical_data": totals.size,
            "chunk_data": totals.chunk_bytes,
            "void_space": max(0, space.log - space.log_allocated),
            "dedup_savings": max(0, totals.size - totals.chunk_bytes),
        },
        "throughput": read_rates(database.state_directory),
        "health": {
            "disk_usage_percent": round(100 * (1 - space.disk_free / space.disk), 2) if space.disk else 0.0,
            "kv_fill_ratio": space.index / space.index_limit,
            "dedup_hit_rate": max(0.0, 1 - stored / offered) if offered else 0.0,
            "write_buffer_depth": int(counted.total("svc_commit_waiting_transactions")),
            "view_commits_behind": max(0, *behind, 0),
            "findings": len(database.findings()),
        },
        "memory": {
            "process": asdict(memory_of(counting_processes(database.state_directory))),
            "directory_cache": {"entries": nodes, "estimated_bytes": nodes * _NODE_BYTES},
            "caches": {},
        },
    }
    for name, source in sorted(context.extensions(GAUGE_SOURCES).items()):
        try:
            _join(payload, source.value.statistics(source.context, counted))
        except Exception as error:
            source.context.logger.error("The statistics of %s can't be read.", name, exc_info=error)
    payload["memory"]["estimated_engine_owned_bytes"] = sum(
        part.get("estimated_bytes", 0) for part in payload["memory"].values() if isinstance(part, dict)
    )
    return payload


def identity_of(database: Database, node: Mapping[str, Any]) -> Identity:
    """Returns which database and which program this is; ``node`` is what a source says of its node."""
    head = database.head()
    return Identity(
        database_id=str(UUID(bytes=database.database_id)),
        location=database.location,
        version=head.root.hex(),
        sequence=head.sequence,
        committed_at=head.time_ms or None,
        svc_version=version_of_svc(),
        node_id=node.get("node_id"),
        cluster_id=node.get("cluster_id"),
    )


def latency_of(counted: Counted) -> Latency:
    """Returns how long requests and commits took, since the server began."""
    found = sorted(counted.of("svc_http_request_seconds"), key=_route_of)
    return Latency(
        requests=[
            RouteLatency(*route, distribution_of(list(series)))
            for route, series in groupby(found, key=_route_of)
        ],
        commit=counted.distribution("svc_commit_seconds"),
        sync=counted.distribution("svc_log_sync_seconds"),
        lock=counted.distribution("svc_commit_lock_seconds"),
    )


def _route_of(series: Any) -> tuple[str, str]:
    labels = dict(series.declared.labels)
    return labels.get("route", ""), labels.get("method", "")


def _join(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        present = into.get(name)
        if isinstance(present, dict) and isinstance(value, Mapping):
            _join(present, value)
        else:
            into[name] = dict(value) if isinstance(value, Mapping) else value
