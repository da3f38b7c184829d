"""The operations: metrics and statistics for root, and metrics for who has the token of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import AuthRequired, NotFound
from svc.plugin import Weight, operation, public, requires_root
from svc_metrics.models import PluginState, Statistics

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["read_metrics_as_root", "read_statistics", "scrape"]

_TEXT = "text/plain"


@operation("GET", "/system/stats", requires_root, weight=Weight.DEAR)
def read_statistics(call: Call) -> Statistics:
    """Reads what a server holds, takes and does: the payload of the event ``metrics``, and more."""
    from svc.plugin import enabled_plugins, run_blocking
    from svc_metrics.counted import Counted
    from svc_metrics.statistics import identity_of, latency_of, payload_of

    plugin = call.plugin
    assert plugin is not None
    counted = run_blocking(Counted, call.database.state_directory)
    payload = run_blocking(payload_of, plugin, counted)
    return Statistics(
        counts=payload["counts"],
        sizes=payload["sizes"],
        throughput=payload["throughput"],
        health=payload["health"],
        memory=payload["memory"],
        identity=identity_of(call.database, payload.pop("identity", {})),
        latency=latency_of(counted),
        plugins=[
            PluginState(one.id, one.version) for _, one in sorted(enabled_plugins(call.database).items())
        ],
        sync=payload.get("sync", {}),
    )


@operation(
    "GET",
    "/system/metrics",
    requires_root,
    weight=Weight.DEAR,
    media_types=(_TEXT, _TEXT),
    responder="svc_metrics.responders:read_metrics_as_root",
)
def read_metrics_as_root(call: Call) -> bytes:
    """Reads all metrics, in the text form of Prometheus, or of OpenMetrics where that is accepted."""


@operation(
    "GET",
    "/system/metrics/scrape",
    public,
    weight=Weight.DEAR,
    errors=(AuthRequired, NotFound),
    media_types=(_TEXT, _TEXT),
    responder="svc_metrics.responders:scrape",
)
def scrape(call: Call) -> bytes:
    """Reads the same with the bearer token ``scrape_token`` of the settings, which never expires."""
