"""How it goes with the peers, for whoever reads metrics and statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc_metrics.api import Counted, Gauge, GaugeSource

from svc.plugin import PluginContext
from svc_sync.configuration import SyncConfiguration
from svc_sync.exchange.peers import PeerStatus
from svc_sync.standing import STATES, Standing, standing_of

__all__ = ["SyncGauges"]


class SyncGauges(GaugeSource):
    """Peers, and for each how far this node is behind it."""

    name = "sync"

    def gauges(self, context: PluginContext) -> Iterator[Gauge]:
        """Reads a small file or two for each peer."""
        standing = _standing(context)
        if standing is None:
            return
        yield Gauge("svc_sync_peers", "Nodes that this one pulls from.", len(standing.peers))
        for state in STATES:
            labels = {"state": state.lower()}
            yield Gauge("svc_sync_peers_by_state", "The same, by state.", standing.in_state(state), labels)
        yield Gauge("svc_sync_members", "Nodes of the cluster.", standing.members)
        yield Gauge("svc_sync_registers", "Paths that some member may not know yet.", standing.registers)
        yield Gauge(
            "svc_sync_absent_members",
            "Members that are silent for days and keep registers from being forgotten.",
            len(standing.absent),
        )
        for peer, status in standing.peers:
            yield from _of_peer(status, {"peer": str(peer.node_id)})

    def statistics(self, context: PluginContext, counted: Counted) -> dict[str, Any]:
        """The ids of node and cluster, and how it goes with the peers."""
        standing = _standing(context)
        if standing is None:
            return {}
        states = [status for _, status in standing.peers]
        return {
            "identity": {"node_id": standing.node.node_id, "cluster_id": standing.node.cluster_id},
            "sync": {
                "members": standing.members,
                "peers": len(states),
                "active": standing.in_state("Active"),
                "failing": sum(one.failing_since is not None for one in states),
                "last_sync_at": max((one.last_sync_at or 0 for one in states), default=0) or None,
                "lag_ms": max((one.lag_ms for one in states), default=0),
                "clock_offset_ms": max((one.clock_offset_ms or 0 for one in states), key=abs, default=0),
                "registers": standing.registers,
                "absent": standing.absent,
                "sent_bytes": sum(one.sent for one in states),
                "received_bytes": sum(one.received for one in states),
            },
        }


def _standing(context: PluginContext) -> Standing | None:
    settings = context.configuration or SyncConfiguration()
    return standing_of(context.database, settings.absent_days)


def _of_peer(status: PeerStatus, labels: dict[str, str]) -> Iterator[Gauge]:
    yield Gauge("svc_sync_peer_active", "Whether a peer is pulled from.", status.state == "Active", labels)
    yield Gauge(
        "svc_sync_peer_lag_seconds",
        "Age of the oldest write that a peer had and this node had not.",
        status.lag_ms / 1_000,
        labels,
    )
    yield Gauge(
        "svc_sync_peer_clock_offset_seconds",
        "How far the clock of a peer is ahead.",
        (status.clock_offset_ms or 0) / 1_000,
        labels,
    )
    yield Gauge(
        "svc_sync_peer_last_sync_seconds",
        "When a pull from a peer was completed last, Unix seconds.",
        (status.last_sync_at or 0) / 1_000,
        labels,
    )
    yield Gauge("svc_sync_peer_sent_bytes", "Bytes of questions to a peer.", status.sent, labels)
    yield Gauge("svc_sync_peer_received_bytes", "Bytes of the answers of a peer.", status.received, labels)
