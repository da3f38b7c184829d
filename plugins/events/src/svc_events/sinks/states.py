"""What the background process tells of its deliveries, and whether they go well."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from svc.plugin import HealthCheck, HealthReport, HealthStatus, PluginContext, StateFile
from svc_events.api import DestinationState

__all__ = ["SinkHealth", "SinkStates", "states_file"]

_FAILING_MS = 10 * 60_000
_BUSY_MS = 2 * 60_000


class SinkStates(msgspec.Struct, frozen=True):
    """The destinations of all sinks."""

    destinations: tuple[DestinationState, ...] = ()


def states_file(state_directory: Path) -> StateFile[SinkStates]:
    """The file that the job writes, and everybody reads."""
    return StateFile(state_directory / "events" / "sinks.json", SinkStates)


class SinkHealth(HealthCheck):
    """Degraded while a destination has failed for ten minutes, or a delivery has hung for two."""

    name = "events.sinks"

    def check(self, context: PluginContext) -> HealthReport:
        """Reads one small file."""
        said = states_file(context.database.state_directory).read()
        now = time.time_ns() // 1_000_000
        bad = {
            f"{one.sink}/{one.id}": {
                "error": one.error or "A delivery does not end.",
                "commits_behind": one.commits_behind,
            }
            for one in (said[0].destinations if said is not None else ())
            if now - (one.failing_since or now) > _FAILING_MS or now - (one.busy_since or now) > _BUSY_MS
        }
        if not bad:
            return HealthReport()
        return HealthReport(
            HealthStatus.DEGRADED, "Events can't be delivered to a sink.", {"destinations": bad}
        )
