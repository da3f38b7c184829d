"""What the operations of the plugin answer."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from svc_metrics.counted import Distribution

__all__ = ["Identity", "Latency", "PluginState", "RouteLatency", "Statistics"]


class Identity(Struct, frozen=True, kw_only=True):
    """Which database and which program this is."""

    database_id: str
    location: str
    version: Annotated[str, Meta(description="Root hash of HEAD, in hex.")]
    sequence: Annotated[int, Meta(description="Number of the last commit.")]
    committed_at: Annotated[int | None, Meta(description="Unix milliseconds.")]
    svc_version: str
    node_id: Annotated[int | None, Meta(description="Of a node of a cluster: its id.")] = None
    cluster_id: Annotated[str | None, Meta(description="Of a node of a cluster: that of the cluster.")] = None


class RouteLatency(Struct, frozen=True):
    """How long requests of a route took, to the last byte of the answer."""

    route: str
    method: str
    spread: Distribution


class Latency(Struct, frozen=True):
    """How long things took since the server began: requests, and batches of commits with their parts."""

    requests: list[RouteLatency]
    commit: Distribution
    sync: Distribution
    lock: Distribution


class PluginState(Struct, frozen=True):
    """A plugin that is enabled in the database."""

    id: str
    version: str


class Statistics(Struct, frozen=True, kw_only=True):
    """What a server holds, takes and does. Sizes are bytes; rates are None without a background process."""

    counts: dict[str, int]
    sizes: dict[str, int]
    throughput: dict[str, dict[str, float | None]]
    health: dict[str, float]
    memory: dict[str, Any]
    identity: Identity
    latency: Latency
    plugins: list[PluginState]
    sync: Annotated[dict[str, Any], Meta(description="Empty where the database is in no cluster.")]
