"""From records of tasks to what operations answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from svc_tasks.api import Task as TaskRecord
from svc_tasks.api import TaskProgress, progress_of
from svc_tasks.models import Task

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["present_answer", "task_answer"]


def present_answer(database: Database, task: TaskRecord) -> Task:
    """Returns a task with its progress, if it runs."""
    return task_answer(task, progress_of(database).get(task.id))


def task_answer(task: TaskRecord, progress: TaskProgress | None = None) -> Task:
    """Returns a task; its progress only while it runs."""
    return Task(
        id=task.id,
        task_type=task.task_type,
        status=task.status,
        args=task.args,
        created_at=task.created_at,
        started_at=task.started_at,
        finished_at=task.finished_at,
        actor=task.actor,
        schedule_id=task.schedule_id,
        attempts=task.attempts,
        cancel_requested=task.cancel_requested_at is not None,
        error=task.error,
        result=task.result,
        progress=progress if task.status == "running" and progress is not None else UNSET,
    )
