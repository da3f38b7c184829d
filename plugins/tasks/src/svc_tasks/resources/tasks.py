"""``/system/tasks``: list, show, trigger and cancel tasks."""

from __future__ import annotations

from typing import Any

import falcon

from svc.errors import NotFound
from svc.plugin import SvcRequest, has_body, query_text, read_json, requires_root, send_json
from svc_tasks.answers import task_answer
from svc_tasks.api import TASK_TYPES, Task, enqueue, find_task, list_tasks, progress_of
from svc_tasks.queue import Queue

__all__ = ["CancelResource", "TaskResource", "TasksResource"]


class TasksResource:
    """All tasks."""

    @requires_root
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Lists them, the newest first; ``type`` and ``status`` narrow the list."""
        database = req.context.database
        status = query_text(req, "status")
        progress = progress_of(database)
        found = [
            task_answer(task, progress.get(task.id))
            for task in list_tasks(database, query_text(req, "type"))
            if status is None or task.status == status
        ]
        send_json(resp, {"tasks": found})


class TaskResource:
    """One task, by its id; or all of a type, by its name, to make one."""

    @requires_root
    def on_get(self, req: SvcRequest, resp: falcon.Response, task: str) -> None:
        """Shows a task."""
        found = find_task(req.context.database, task)
        send_json(resp, task_answer(found, progress_of(req.context.database).get(found.id)))

    @requires_root
    def on_post(self, req: SvcRequest, resp: falcon.Response, task: str) -> None:
        """Enqueues a task of a type: 202 with it, or with the same one that waits or runs already."""
        found = req.context.extensions(TASK_TYPES).get(task)
        if found is None or not found.value.trigger:
            raise NotFound(f"There is no task type {task[:64]!r} that can be started.", task_type=task[:64])
        args: dict[str, Any] = read_json(req, dict[str, Any]) if has_body(req) else {}
        made = enqueue(
            req.context.database,
            found.value,
            args,
            configuration=found.context.configuration,
            actor=req.context.actor,
        )
        send_json(resp, task_answer(made, progress_of(req.context.database).get(made.id)), 202)

    @requires_root
    def on_delete(self, req: SvcRequest, resp: falcon.Response, task: str) -> None:
        """Cancels a task."""
        send_json(resp, task_answer(_cancel(req, task)))


class CancelResource:
    """The cancellation of a task."""

    @requires_root
    def on_post(self, req: SvcRequest, resp: falcon.Response, task: str) -> None:
        """Cancels a task."""
        send_json(resp, task_answer(_cancel(req, task)))


def _cancel(req: SvcRequest, task_id: str) -> Task:
    return Queue(req.context.database).cancel(task_id, req.context.actor)
