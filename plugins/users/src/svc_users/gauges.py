"""What processes keep of rights, for whoever reads statistics; the levels themselves show by themselves."""

from __future__ import annotations

from typing import Any

from svc_metrics.api import Counted, Gauge, GaugeSource

from svc.plugin import PluginContext

__all__ = ["RightsGauges"]


class RightsGauges(GaugeSource):
    """No gauge: two levels have their place in the statistics."""

    name = "users"

    def gauges(self, context: PluginContext) -> tuple[Gauge, ...]:
        """None."""
        return ()

    def statistics(self, context: PluginContext, counted: Counted) -> dict[str, Any]:
        """How many rights are kept, in all processes together."""
        caches = {
            "permissions_entries": int(counted.total("svc_cached_rights", kind="rights")),
            "grants_index_entries": int(counted.total("svc_cached_rights", kind="groups")),
        }
        return {"memory": {"caches": caches}}
