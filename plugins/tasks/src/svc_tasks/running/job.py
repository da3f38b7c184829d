"""The job of the background process that runs tasks."""

from __future__ import annotations

from svc.plugin import BackgroundJob, JobContext
from svc_tasks.api import TASK_TYPES
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.lock import RunnerLock
from svc_tasks.running.supervisor import Supervisor

__all__ = ["TaskRunner"]

_TICK_SECONDS = 0.1
_LOCK_SECONDS = 0.5


class TaskRunner(BackgroundJob):
    """Runs tasks until it is told to end; what goes wrong ends its run, and the next one goes on."""

    name = "tasks"
    interval_s = 0.5
    # One run lasts as long as the process. The health check of the plugin sees one that hangs.
    stuck_after_s = 5 * 365 * 86_400.0

    def run(self, context: JobContext) -> None:
        """Runs tasks. Blocks until the job shall end."""
        lock = RunnerLock(context.database)
        try:
            while not lock.acquire():
                # A command runs a task of this database by itself.
                if context.wait(_LOCK_SECONDS):
                    return
            configuration = context.configuration or TasksConfiguration()
            supervisor = Supervisor(context.database, lambda: context.extensions(TASK_TYPES), configuration)
            try:
                supervisor.recover()
                while not context.is_stopping:
                    supervisor.tick(_TICK_SECONDS)
                supervisor.stop()
            except BaseException:
                supervisor.abandon()
                raise
        finally:
            lock.release()
