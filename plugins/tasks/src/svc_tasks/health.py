"""Whether tasks are run, and whether they succeed."""

from __future__ import annotations

from svc.plugin import HealthCheck, HealthReport, HealthStatus, PluginContext
from svc_tasks.api import Task
from svc_tasks.queue import Queue
from svc_tasks.records import now_ms
from svc_tasks.state import runner_file

__all__ = ["TaskHealth"]

_WAIT_MS = 60_000
_BEAT_MS = 30_000


class TaskHealth(HealthCheck):
    """Degraded while the latest task of a type has failed, and while tasks wait and nobody runs any."""

    name = "tasks"

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at the records, which are few, and at the sign of life of the runner."""
        tasks = Queue(context.database).tasks()
        now = now_ms()
        waiting = [task for task in tasks if task.status == "pending"]
        oldest = min((task.created_at for task in waiting), default=now)
        said = runner_file(context.database.state_directory).read()
        beat_ms = 0 if said is None else said[1]
        if now - oldest > _WAIT_MS and now - beat_ms > _BEAT_MS:
            return HealthReport(
                HealthStatus.DEGRADED,
                "Tasks wait, and nobody runs them.",
                {"waiting": len(waiting), "runner_seen_at": beat_ms or None},
            )
        failed = _failed_last(tasks)
        if failed:
            return HealthReport(
                HealthStatus.DEGRADED,
                "The latest task of a type has failed.",
                {"tasks": {task.task_type: {"id": task.id, "error": task.error} for task in failed}},
            )
        return HealthReport()


def _failed_last(tasks: list[Task]) -> list[Task]:
    """The failed tasks behind which no other one of their type has come to an end."""
    latest: dict[str, Task] = {}
    for task in tasks:
        if task.is_finished and task.status != "cancelled":
            known = latest.get(task.task_type)
            if known is None or (task.finished_at or 0) > (known.finished_at or 0):
                latest[task.task_type] = task
    return [task for task in latest.values() if task.status == "failed"]
