"""The job of the background process that looks at schedules."""

from __future__ import annotations

import time

import schedule as periodic

from svc.plugin import BackgroundJob, JobContext
from svc_tasks.api import NODE_CHOICES, TASK_TYPES, runs_here
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.schedules.scheduler import Scheduler

__all__ = ["SchedulerJob"]

_CHECK_SECONDS = 60
_MOVED_SECONDS = 5.0


class SchedulerJob(BackgroundJob):
    """Looks at all schedules at the start of the process, each 60 seconds, and when the clock was moved."""

    name = "schedules"
    interval_s = 1.0
    stuck_after_s = 300.0

    def __init__(self) -> None:
        self._periodic: periodic.Scheduler | None = None
        self._scheduler: Scheduler | None = None
        self._ahead = 0.0

    def run(self, context: JobContext) -> None:
        """Looks if it is time to."""
        if self._scheduler is None:
            configuration = context.configuration or TasksConfiguration()
            self._scheduler = Scheduler(
                context.database,
                lambda: context.extensions(TASK_TYPES),
                configuration.timezone,
                runs_here=lambda: runs_here(context.extensions(NODE_CHOICES)),
            )
        # The library goes by the clock on the wall: after a move it would wait for a time far away.
        ahead = time.time() - time.monotonic()
        if self._periodic is None or abs(ahead - self._ahead) > _MOVED_SECONDS:
            self._periodic = periodic.Scheduler()
            self._periodic.every(_CHECK_SECONDS).seconds.do(self._scheduler.check)
            self._ahead = ahead
            self._periodic.run_all()
        else:
            self._periodic.run_pending()
