"""Whether the node gets what the others have."""

from __future__ import annotations

from typing import Any

from svc.plugin import HealthCheck, HealthReport, HealthStatus, PluginContext
from svc_sync.configuration import SyncConfiguration
from svc_sync.exchange.membership import is_alone
from svc_sync.exchange.peers import PeerStatus
from svc_sync.exchange.records import now_ms
from svc_sync.models import PeerRecord
from svc_sync.standing import standing_of

__all__ = ["SyncHealth"]


class SyncHealth(HealthCheck):
    """Degraded while a peer fails or a member is silent for long, and until the first copy is complete."""

    name = "sync"

    def check(self, context: PluginContext) -> HealthReport:
        """Reads a small file for each peer."""
        settings = context.configuration or SyncConfiguration()
        standing = standing_of(context.database, settings.absent_days)
        peers = [] if standing is None else standing.peers
        since = now_ms() - settings.degraded_seconds * 1_000
        failing = [
            _details(peer, status)
            for peer, status in peers
            if status.failing_since is not None and status.failing_since < since
        ]
        if failing:
            return HealthReport(
                HealthStatus.DEGRADED, "A peer has not been pulled from for long.", {"peers": failing[:100]}
            )
        if settings.join and is_alone(context.database):
            return HealthReport(HealthStatus.DEGRADED, "The node has not joined the cluster yet.")
        if standing is None:
            return HealthReport()
        if standing.stale is not None:
            return HealthReport(
                HealthStatus.DEGRADED, "The node has to join the cluster anew.", {"reason": standing.stale}
            )
        if standing.node.copying is not None:
            return HealthReport(HealthStatus.DEGRADED, "The first copy of the cluster is not complete.")
        if standing.absent:
            return HealthReport(
                HealthStatus.DEGRADED,
                "A member is silent for so long that what it lacks piles up; 'svc sync remove' ends it.",
                {"members": standing.absent[:100]},
            )
        return HealthReport()


def _details(peer: PeerRecord, status: PeerStatus) -> dict[str, Any]:
    return {
        "node_id": peer.node_id,
        "address": peer.address,
        "error": status.last_error,
        "failing_since": status.failing_since,
    }
