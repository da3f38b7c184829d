"""Tasks and schedules of a server for programs: what ``svc_client`` has for files, for this plugin's routes.

``Tasks(client).run("gc")`` enqueues a task; all of it is root's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from msgspec import Struct

from svc_client import Client

__all__ = ["Tasks"]

Document = dict[str, Any]


class _Progress(Struct):
    progress: float
    eta_ms: int | None
    indexed_count: int
    total_count: int
    message: str | None


class _Task(Struct):
    id: str
    task_type: str
    status: Literal["pending", "running", "completed", "failed", "cancelled"]
    created_at: int
    started_at: int | None
    finished_at: int | None
    error: str | None
    result: Any
    progress: _Progress | None = None


class _Tasks(Struct):
    tasks: list[_Task]


class _Schedule(Struct):
    id: str
    task_type: str
    schedule: str
    args: Document
    enabled: bool
    next_runs: list[int]


class _Removed(Struct):
    deleted: Literal[True]


class _Schedules(Struct):
    schedules: list[_Schedule]


class Tasks:
    """The routes of the plugin ``tasks``. Methods block, and raise the errors of ``svc.errors``.

    Args:
        client: of the server; the caller closes it.
    """

    def __init__(self, client: Client) -> None:
        self._transport = client.transport

    def list(self, *, task_type: str | None = None, status: str | None = None) -> list[Document]:
        """Returns the tasks, the newest first."""
        query = {name: value for name, value in (("type", task_type), ("status", status)) if value}
        found: list[Document] = self._send("GET", "/system/tasks", _Tasks, query=query)["tasks"]
        return found

    def get(self, task_id: str) -> Document:
        """Returns a task; raises NotFound."""
        return self._send("GET", _at("tasks", task_id), _Task)

    def run(self, task_type: str, args: Mapping[str, Any] | None = None) -> Document:
        """Enqueues a task and returns it, or the same one that waits or runs already."""
        # A second time finds the task of the first.
        return self._send("POST", _at("tasks", task_type), _Task, value=dict(args or {}), repeatable=True)

    def cancel(self, task_id: str) -> Document:
        """Cancels a task and returns it; raises NotFound, and Conflict where it is over."""
        return self._send("POST", f"{_at('tasks', task_id)}/cancel", _Task, repeatable=True)

    def schedules(self) -> Document:
        """Returns the schedules with their next times, under ``schedules``."""
        return self._send("GET", "/system/cron", _Schedules)

    def add_schedule(self, schedule: Mapping[str, Any]) -> Document:
        """Adds a schedule and returns it; raises AlreadyExists."""
        return self._send("POST", "/system/cron", _Schedule, value=dict(schedule))

    def change_schedule(self, schedule_id: str, **members: Any) -> Document:
        """Changes members of a schedule and returns it; raises NotFound."""
        return self._send("PATCH", _at("cron", schedule_id), _Schedule, value=members, repeatable=True)

    def remove_schedule(self, schedule_id: str) -> Document:
        """Removes a schedule and returns what it was; raises NotFound."""
        return self._send("DELETE", _at("cron", schedule_id), _Removed)

    def _send(self, method: str, url: str, form: type[Struct], **options: Any) -> Document:
        return self._transport.document(method, url, form, **options)


def _at(kind: str, name: str) -> str:
    return f"/system/{kind}/{quote(name, safe='')}"
