"""How many tasks wait and run, for whoever reads metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from svc_metrics.api import Counted, Gauge, GaugeSource

from svc.plugin import PluginContext
from svc_tasks.queue import Queue
from svc_tasks.schedules.store import stored_schedules

__all__ = ["TaskGauges"]


class TaskGauges(GaugeSource):
    """One gauge for each state that a task can be in."""

    name = "tasks"

    def gauges(self, context: PluginContext) -> Iterator[Gauge]:
        """Reads the records of tasks, which are few."""
        found = _count(context)
        for status in ("pending", "running", "completed", "failed", "cancelled"):
            yield Gauge("svc_tasks", "Tasks that are kept, by status.", found[status], {"status": status})
        schedules = [one.enabled for one in stored_schedules(context.database.at())]
        text = "Schedules of tasks, by whether they are enabled."
        for is_enabled, name in ((True, "true"), (False, "false")):
            yield Gauge("svc_schedules", text, schedules.count(is_enabled), {"enabled": name})

    def statistics(self, context: PluginContext, counted: Counted) -> dict[str, Any]:
        """How many tasks wait and run."""
        found = _count(context)
        return {"counts": {"tasks_pending": found["pending"], "tasks_running": found["running"]}}


def _count(context: PluginContext) -> Counter[str]:
    return Counter(task.status for task in Queue(context.database).tasks())
