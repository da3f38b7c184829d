"""The list of tasks, the page of one, and the form that starts one or makes a schedule of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_portal.api import Act, Answer, Message, Redirect, RootPage, Shown

from svc_tasks.models import Schedule, Task, TaskQuery
from svc_tasks.operations import add_schedule, cancel_task, list_tasks, run_task, show_task
from svc_tasks.portal.arguments import arguments_of, fields_of, find_type, startable_types

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["NewTaskPage", "TaskPage", "TasksPage"]

MOST_SHOWN = 200
_STATUSES = ("pending", "running", "completed", "failed", "cancelled")


class TasksPage(RootPage):
    """The tasks, the newest first."""

    name: ClassVar[str] = "tasks"
    path: ClassVar[str] = "tasks"
    title: ClassVar[str] = "Tasks"
    place: ClassVar[int | None] = 70

    def show(self, request: PortalRequest) -> Answer:
        """Those of one type or status, if the address says so."""
        kind, status = request.query.get("type"), request.query.get("status")
        tasks = request.call(list_tasks, TaskQuery(kind or None, status or None)).tasks
        values = {
            "rows": [task_values(request, one) for one in tasks[:MOST_SHOWN]],
            "total": len(tasks),
            "kind": kind,
            "status": status,
            "statuses": _STATUSES,
            "here": request.url("tasks"),
            "schedules_url": request.url("tasks.schedules"),
            "types": [(name, request.url("tasks.new", type=name)) for name in startable_types(request)],
        }
        return Shown("tasks.html", values)


class TaskPage(RootPage):
    """One task, which is shown anew while it is not over."""

    name: ClassVar[str] = "tasks.one"
    path: ClassVar[str] = "tasks/{task}"
    title: ClassVar[str] = "Task"
    follows: ClassVar[str | None] = "tasks"

    def show(self, request: PortalRequest) -> Answer:
        """How far it is, and what came of it."""
        task = request.call(show_task, request.fields["task"])
        values = task_values(request, task)
        return Shown(
            "task.html", {"task": values, "all_url": request.url("tasks")}, title=f"Task {task.task_type}"
        )

    def acts(self) -> Mapping[str, Act]:
        """Cancels it."""
        return {"cancel": _cancel}


class NewTaskPage(RootPage):
    """Starts a task of a type, now or by a schedule."""

    name: ClassVar[str] = "tasks.new"
    path: ClassVar[str] = "tasks/new/{type}"
    title: ClassVar[str] = "Start a task"
    follows: ClassVar[str | None] = "tasks"

    def show(self, request: PortalRequest) -> Answer:
        """The form, with a field for each argument."""
        return _form(request, {})

    def acts(self) -> Mapping[str, Act]:
        """Starts it, or adds the schedule."""
        return {"start": _start, "schedule": _schedule}

    def refused(self, request: PortalRequest, message: Message) -> Answer:
        """What is wrong is said above the form, which keeps what it has."""
        task_type = find_type(request, request.fields["type"])
        names = ("id", "schedule", *(one.field for one in fields_of(task_type)))
        said = {name: request.form.get(name) for name in names if name in request.form}
        return _form(request, said, message)


def _cancel(request: PortalRequest) -> Message:
    task = request.call(cancel_task, request.fields["task"])
    said = "was cancelled" if task.is_finished else "ends soon"
    return Message(f"The task {task.task_type} {said}.")


def _start(request: PortalRequest) -> Redirect:
    task_type = find_type(request, request.fields["type"])
    task = request.call(run_task, task_type.name, arguments_of(request, task_type))
    return Redirect(request.url("tasks.one", task=task.id))


def _schedule(request: PortalRequest) -> Redirect:
    task_type = find_type(request, request.fields["type"])
    arguments = arguments_of(request, task_type)
    schedule = Schedule(
        id=request.form.require("id"),
        task_type=task_type.name,
        schedule=request.form.require("schedule"),
        args=arguments,
    )
    request.call(add_schedule, schedule)
    return Redirect(request.url("tasks.schedules"), Message(f"Added the schedule {schedule.id}."))


def _form(request: PortalRequest, said: Mapping[str, str], message: Message | None = None) -> Shown:
    task_type = find_type(request, request.fields["type"])
    values = {
        "fields": fields_of(task_type),
        "said": said,
        "here": request.url("tasks.new", type=task_type.name),
        "back": request.url("tasks"),
    }
    return Shown("new.html", values, title=f"Start a task: {task_type.name}", message=message)


def task_values(request: PortalRequest, task: Task) -> dict[str, Any]:
    """Returns what templates show of a task."""
    progress = task.progress or None
    return {
        "id": task.id,
        "type": task.task_type,
        "status": task.status,
        "url": request.url("tasks.one", task=task.id),
        "arguments": _shown(task.args),
        "created_ms": task.created_at,
        "started_ms": task.started_at,
        "finished_ms": task.finished_at,
        "actor": task.actor,
        "schedule": task.schedule_id,
        "attempts": task.attempts,
        "error": task.error,
        "result": _shown(task.result) if isinstance(task.result, dict) else [],
        "is_finished": task.is_finished,
        "is_ending": task.cancel_requested and not task.is_finished,
        "progress": progress,
        "seconds_left": None
        if progress is None or progress.eta_ms is None
        else max(1, progress.eta_ms // 1000),
    }


def _shown(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for name, value in values.items()
    ]
