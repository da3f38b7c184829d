"""How many tasks wait and run, for whoever reads metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from svc_metrics.api import Gauge, GaugeSource

from svc.plugin import PluginContext
from svc_tasks.queue import Queue

__all__ = ["TaskGauges"]


class TaskGauges(GaugeSource):
    """One gauge for each state that a task can be in."""

    name = "tasks"

    def gauges(self, context: PluginContext) -> Iterator[Gauge]:
        """Reads the records of tasks, which are few."""
        found = Counter(task.status for task in Queue(context.database).tasks())
        for status in ("pending", "running", "completed", "failed", "cancelled"):
            yield Gauge("svc_tasks", "Tasks that are kept, by status.", found[status], {"status": status})
