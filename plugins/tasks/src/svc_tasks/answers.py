"""Tasks as routes and commands show them."""

from __future__ import annotations

from typing import Any

import msgspec

from svc_tasks.api import Task, TaskProgress

__all__ = ["task_answer"]


def task_answer(task: Task, progress: TaskProgress | None = None) -> dict[str, Any]:
    """Returns the task object of an answer."""
    answer: dict[str, Any] = {
        "id": task.id,
        "task_type": task.task_type,
        "status": task.status,
        "args": task.args,
        "created_at": task.created_at,
        "started_at": task.started_at,
        "finished_at": task.finished_at,
        "actor": task.actor,
        "schedule_id": task.schedule_id,
        "attempts": task.attempts,
        "cancel_requested": task.cancel_requested_at is not None,
        "error": task.error,
        "result": task.result,
    }
    if task.status == "running" and progress is not None:
        answer["progress"] = msgspec.to_builtins(progress)
    return answer
