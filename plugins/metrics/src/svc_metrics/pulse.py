"""The event ``metrics``: the statistics of the server, again and again."""

from __future__ import annotations

from typing import Any

from svc_events.api import Pulse

from svc.plugin import PluginContext
from svc_metrics.configuration import MetricsConfiguration
from svc_metrics.counted import Counted
from svc_metrics.statistics import payload_of

__all__ = ["MetricsPulse"]


class MetricsPulse(Pulse):
    """Root's alone, since it tells how much there is that others may not see."""

    name = "metrics"
    seen_by = "root"

    def interval_ms(self, configuration: MetricsConfiguration | None) -> int:
        """As the settings say."""
        return (configuration or MetricsConfiguration()).event_seconds * 1000

    def payload(self, context: PluginContext, due_ms: int) -> dict[str, Any]:
        """Returns what there is now."""
        return payload_of(context, Counted(context.database.state_directory))
