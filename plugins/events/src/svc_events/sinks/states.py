"""What the background process tells of its deliveries, and whether they go well."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from svc.plugin import HealthCheck, HealthReport, HealthStatus, PluginContext, StateFile, Version
from svc_events.api import DestinationState
from svc_events.sinks.records import SINKS, sink_records

__all__ = ["SinkHealth", "SinkStates", "live_states", "states_file"]

_FAILING_MS = 10 * 60_000
_BUSY_MS = 2 * 60_000
_SILENT_MS = 30_000
_FAR_BEHIND = 100_000
"""Commits."""


class SinkStates(msgspec.Struct, frozen=True):
    """The destinations of all sinks."""

    destinations: tuple[DestinationState, ...] = ()


def states_file(state_directory: Path) -> StateFile[SinkStates]:
    """The file that the job writes, and everybody reads."""
    return StateFile(state_directory / "events" / "sinks.json", SinkStates)


def live_states(state_directory: Path) -> tuple[DestinationState, ...]:
    """Returns how all destinations are; nothing when the job has not been alive for a while."""
    said = states_file(state_directory).read()
    if said is None or time.time_ns() // 1_000_000 - said[1] > _SILENT_MS:
        return ()
    return said[0].destinations


class SinkHealth(HealthCheck):
    """Degraded while a destination fails for ten minutes, hangs for two or lags, or nobody delivers."""

    name = "events.sinks"

    def check(self, context: PluginContext) -> HealthReport:
        """Reads one small file, and the places of destinations where that tells nothing."""
        database = context.database
        states = live_states(database.state_directory)
        now = time.time_ns() // 1_000_000
        bad = {
            f"{one.sink}/{one.id}": {
                "error": one.error or _slow(one),
                "commits_behind": one.commits_behind,
            }
            for one in states
            if now - (one.failing_since or now) > _FAILING_MS
            or now - (one.busy_since or now) > _BUSY_MS
            or one.commits_behind > _FAR_BEHIND
        }
        if bad:
            return HealthReport(
                HealthStatus.DEGRADED, "Events can't be delivered to a sink.", {"destinations": bad}
            )
        head = database.head()
        if not states and now - head.time_ms > _SILENT_MS:
            # To store where all are is a commit, too.
            waiting = [path for path, place in _places(database.system()) if place < head.sequence - 1]
            if waiting:
                return HealthReport(
                    HealthStatus.DEGRADED,
                    "Events wait for a sink, and nobody delivers them.",
                    {"destinations": waiting},
                )
        return HealthReport()


def _slow(state: DestinationState) -> str:
    return "It is far behind." if state.busy_since is None else "A delivery does not end."


def _places(system: Version) -> Iterator[tuple[str, int]]:
    """Where each destination stands: its path below the sinks, and a number of a commit."""
    if system.get(SINKS) is None:
        return
    for sink, _ in system.entries(SINKS):
        for name, record in sink_records(system, sink).items():
            yield f"{sink}/{name}", record.parsed.sequence
