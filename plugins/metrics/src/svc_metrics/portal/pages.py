"""The page and the card: figures, rates as curves, and how long requests take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Answer, RootPage, Shown, StateCard

from svc_metrics.models import Statistics
from svc_metrics.operations import read_statistics
from svc_metrics.portal.curves import HEIGHT, WIDTH, curve_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["MetricsCard", "MetricsPage"]

_ROUTES = 20
_TITLES = {
    "writes_per_sec": "Commits of writers",
    "reads_per_sec": "Reads",
    "bytes_written_per_sec": "Bytes received",
    "bytes_read_per_sec": "Bytes sent",
}


class MetricsPage(RootPage):
    """All of it."""

    name: ClassVar[str] = "metrics"
    path: ClassVar[str] = "metrics"
    title: ClassVar[str] = "Metrics"
    place: ClassVar[int | None] = 75

    def show(self, request: PortalRequest) -> Answer:
        """What the server holds, takes and does."""
        statistics = request.call(read_statistics)
        latency = statistics.latency
        busiest = sorted(latency.requests, key=lambda one: -one.spread.count)[:_ROUTES]
        spreads = [(f"{one.method or '-'} {one.route or 'no route'}", one.spread) for one in busiest]
        commits = [
            ("Commit", latency.commit),
            ("Waiting for the lock", latency.lock),
            ("Waiting for the disk", latency.sync),
        ]
        values = {
            **_usual(statistics),
            "counts": _named(statistics.counts),
            "sizes": _named(statistics.sizes),
            "health": _named(statistics.health),
            "memory": statistics.memory["process"],
            "tables": [("Requests", spreads), ("Commits", commits)],
            "here": request.url("metrics"),
        }
        return Shown("metrics.html", values)


class MetricsCard(StateCard):
    """What it does just now."""

    name: ClassVar[str] = "metrics"
    title: ClassVar[str] = "Just now"
    template: ClassVar[str] = "card.html"
    place: ClassVar[int] = 20

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """Nothing for others than root."""
        if not request.identity.is_unrestricted_root:
            return None
        statistics = request.call(read_statistics)
        memory = statistics.memory["process"]
        return {**_usual(statistics), "memory": memory, "url": request.url("metrics")}


def _usual(statistics: Statistics) -> dict[str, Any]:
    rates = [
        {"name": name, "title": title, "rates": rate, "curve": curve_of(rate), "is_bytes": "bytes" in name}
        for name, title in _TITLES.items()
        if (rate := statistics.throughput.get(name)) is not None
    ]
    disk = statistics.health["disk_usage_percent"]
    return {"rates": rates, "width": WIDTH, "height": HEIGHT, "disk_percent": disk}


def _named(values: Mapping[str, float]) -> list[tuple[str, float]]:
    return [(name.replace("_", " "), value) for name, value in values.items()]
