"""The operations on tasks and schedules. All of them are root's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from svc.errors import AlreadyExists, Conflict, NotFound
from svc.plugin import Weight, operation, requires_root
from svc_tasks.models import (
    NewSchedules,
    RemovedSchedule,
    Schedule,
    ScheduleChange,
    ScheduleList,
    ShownSchedule,
    Task,
    TaskList,
    TaskQuery,
)

if TYPE_CHECKING:
    from svc.plugin import Call
    from svc_cli import Service

__all__ = [
    "FOLLOW_SECONDS",
    "add_schedule",
    "cancel_task",
    "change_schedule",
    "delete_task",
    "follow_task",
    "list_schedules",
    "list_tasks",
    "read_schedule_file",
    "remove_schedule",
    "run_task",
    "show_schedule",
    "show_task",
    "store_schedule_file",
    "tell_progress",
]

FOLLOW_SECONDS = 0.3
"""So often whoever waits for a task looks at it."""

_NO_ARGUMENTS: dict[str, Any] = {}
_JSON = "application/json"


@operation("GET", "/system/tasks", requires_root, weight=Weight.DEAR)
def list_tasks(call: Call, query: TaskQuery = TaskQuery()) -> TaskList:
    """Lists tasks, the newest first."""
    from svc_tasks import answers, api

    progress = api.progress_of(call.database)
    return TaskList(
        [
            answers.task_answer(task, progress.get(task.id))
            for task in api.list_tasks(call.database, query.task_type)
            if query.status is None or task.status == query.status
        ]
    )


@operation("GET", "/system/tasks/{task}", requires_root, weight=Weight.SMALL)
def show_task(call: Call, task: str) -> Task:
    """Shows a task."""
    from svc_tasks import answers, api

    return answers.present_answer(call.database, api.find_task(call.database, task))


# One place in the URL, two meanings: GET and DELETE name a task, POST names a type.
# To send it again is harmless: the second time finds the task of the first.
@operation(
    "POST",
    "/system/tasks/{task}",
    requires_root,
    status=202,
    errors=(NotFound,),
    weight=Weight.SMALL,
    repeatable=True,
)
def run_task(call: Call, task: str, body: dict[str, Any] = _NO_ARGUMENTS) -> Task:
    """Enqueues a task of a type, or finds the same one that waits or runs already."""
    from svc_tasks import answers, api

    types = call.extensions(api.TASK_TYPES)
    found = types.get(task)
    if found is None or not found.value.trigger:
        known = ", ".join(sorted(name for name, one in types.items() if one.value.trigger)) or "none"
        raise NotFound(
            f"There is no task type {task[:64]!r} that can be started; there is: {known}.",
            task_type=task[:64],
        )
    made = api.enqueue(
        call.database, found.value, body, configuration=found.context.configuration, actor=call.actor
    )
    return answers.present_answer(call.database, made)


@operation(
    "POST",
    "/system/tasks/{task}/cancel",
    requires_root,
    errors=(Conflict,),
    weight=Weight.SMALL,
    repeatable=True,
)
def cancel_task(call: Call, task: str) -> Task:
    """Cancels a task: at once when it waits; one that runs ends between two of its batches."""
    from svc_tasks import answers
    from svc_tasks.queue import Queue

    return answers.task_answer(Queue(call.database).cancel(task, call.actor))


@operation("DELETE", "/system/tasks/{task}", requires_root, errors=(Conflict,), weight=Weight.SMALL)
def delete_task(call: Call, task: str) -> Task:
    """Cancels a task, as cancel_task does."""
    return cancel_task(call, task)


@operation("GET", "/system/cron", requires_root, weight=Weight.SMALL)
def list_schedules(call: Call) -> ScheduleList:
    """Lists schedules, in the order of the file."""
    from svc_tasks.schedules.store import cron_store

    store = cron_store(call)
    return ScheduleList([store.answer(one) for one in store.schedules()])


@operation("POST", "/system/cron", requires_root, status=201, errors=(AlreadyExists,), weight=Weight.SMALL)
def add_schedule(call: Call, body: Schedule) -> ShownSchedule:
    """Adds a schedule."""
    from svc_tasks.schedules.store import cron_store

    store = cron_store(call)
    return store.answer(store.add(body, call.actor))


@operation("GET", "/system/cron/{schedule}", requires_root, weight=Weight.SMALL)
def show_schedule(call: Call, schedule: str) -> ShownSchedule:
    """Shows a schedule."""
    from svc_tasks.schedules.store import cron_store

    store = cron_store(call)
    return store.answer(store.get(schedule))


@operation("PATCH", "/system/cron/{schedule}", requires_root, weight=Weight.SMALL, repeatable=True)
def change_schedule(call: Call, schedule: str, body: ScheduleChange) -> ShownSchedule:
    """Changes what the body names of a schedule."""
    from svc_tasks.schedules.store import cron_store

    store = cron_store(call)
    return store.answer(store.update(schedule, body, call.actor))


@operation("DELETE", "/system/cron/{schedule}", requires_root, weight=Weight.SMALL)
def remove_schedule(call: Call, schedule: str) -> RemovedSchedule:
    """Removes a schedule; a task that it has started goes on."""
    from msgspec.structs import asdict

    from svc_tasks.schedules.store import cron_store

    return RemovedSchedule(**asdict(cron_store(call).remove(schedule, call.actor)), deleted=True)


@operation(
    "GET",
    "/.config/cron.json",
    requires_root,
    weight=Weight.SMALL,
    media_types=(_JSON, _JSON),
    responder="svc_tasks.responders:read_schedule_file",
)
def read_schedule_file(call: Call) -> bytes:
    """Reads the file of schedules, byte for byte."""


@operation(
    "PUT",
    "/.config/cron.json",
    requires_root,
    weight=Weight.DEAR,
    media_types=(_JSON, _JSON),
    responder="svc_tasks.responders:store_schedule_file",
)
def store_schedule_file(call: Call, body: bytes) -> NewSchedules:
    """Stores the file of schedules; one that is not valid is refused, and the old one stays."""


def follow_task(service: Service, task_id: str, progress: Callable[[int, int], None]) -> Task:
    """Asks until a task is over, and returns it; ``progress`` is told (items done, items in all). Blocks.

    Raises:
        NotFound: there is none of this id, or none any more.
    """
    while True:
        found = service.call(show_task, task_id)
        tell_progress(found, progress)
        if found.is_finished:
            return found
        time.sleep(FOLLOW_SECONDS)


def tell_progress(task: Task, progress: Callable[[int, int], None]) -> None:
    """Tells how far a task is, where that is known."""
    known = task.progress
    if known and known.total_count:
        progress(min(known.indexed_count, known.total_count), known.total_count)
