"""How far event sinks are, for whoever reads metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc_metrics.api import Counted, Gauge, GaugeSource

from svc.plugin import PluginContext
from svc_events.sinks.states import live_states

__all__ = ["SinkGauges"]


class SinkGauges(GaugeSource):
    """Two gauges for each destination of a sink."""

    name = "events"

    def gauges(self, context: PluginContext) -> Iterator[Gauge]:
        """Reads what the background process said last."""
        for one in live_states(context.database.state_directory):
            labels = {"sink": one.sink, "destination": one.id}
            yield Gauge(
                "svc_sink_commits_behind",
                "Commits that a destination of an event sink has not looked at.",
                one.commits_behind,
                labels,
            )
            yield Gauge(
                "svc_sink_failures",
                "Deliveries of a destination that failed since the last that did not.",
                one.failures,
                labels,
            )

    def statistics(self, context: PluginContext, counted: Counted) -> dict[str, Any]:
        """How many streams are open, and how far the farthest destination is behind."""
        behind = [one.commits_behind for one in live_states(context.database.state_directory)]
        return {
            "counts": {"event_streams": int(counted.total("svc_event_streams"))},
            "health": {"sink_commits_behind": max(behind, default=0)},
        }
