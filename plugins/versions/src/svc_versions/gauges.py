"""How many snapshots and forks there are, for whoever reads metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc_metrics.api import Counted, Gauge, GaugeSource

from svc.plugin import PluginContext

__all__ = ["VersionGauges"]


class VersionGauges(GaugeSource):
    """Two gauges, which the tree of refs knows without a walk."""

    name = "versions"

    def gauges(self, context: PluginContext) -> Iterator[Gauge]:
        """Reads two totals."""
        yield Gauge("svc_snapshots", "Snapshots.", _count(context, "snapshots"))
        yield Gauge("svc_forks", "Active forks.", _count(context, "forks"))

    def statistics(self, context: PluginContext, counted: Counted) -> dict[str, Any]:
        """The same."""
        return {"counts": {name: _count(context, name) for name in ("snapshots", "forks")}}


def _count(context: PluginContext, kind: str) -> int:
    system, directory = context.database.system(), ("refs", kind)
    return 0 if system.get(directory) is None else system.entry_count(directory)
