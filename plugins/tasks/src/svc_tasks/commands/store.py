"""What the commands ask of a database, in a file or a server; answers are the documents of the routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from svc.plugin import Source

__all__ = ["FOLLOW_SECONDS", "OVER", "PLUGIN_ID", "Document", "Report", "TaskStore", "open_tasks"]

PLUGIN_ID = "tasks"
FOLLOW_SECONDS = 0.3
OVER = frozenset({"completed", "failed", "cancelled"})

Document = dict[str, Any]
Report = Callable[[Document], None]


class TaskStore(Protocol):
    """Tasks and schedules of one database. Methods block and raise the errors of ``svc.errors``."""

    def tasks(self, *, task_type: str | None, status: str | None) -> list[Document]:
        """All tasks, or those of a type or a status, the newest first."""

    def task(self, task_id: str) -> Document:
        """A task."""

    def run(self, task_type: str, args: Mapping[str, Any]) -> Document:
        """Enqueues a task."""

    def follow(self, task_id: str, report: Report, *, may_run: bool) -> Document:
        """Waits until a task is over, and calls ``report`` with it now and then.

        ``may_run`` runs it here, where nobody else runs tasks.
        """

    def cancel(self, task_id: str) -> Document:
        """Cancels a task."""

    def schedules(self) -> list[Document]:
        """All schedules."""

    def add(self, schedule: Mapping[str, Any]) -> Document:
        """Adds a schedule."""

    def change(self, schedule_id: str, **members: Any) -> Document:
        """Changes a schedule."""

    def remove(self, schedule_id: str) -> Document:
        """Removes a schedule."""


def open_tasks(source: Source, *, read_only: bool = False) -> AbstractContextManager[TaskStore]:
    """Opens what a command works on, for as long as the context lasts; see ``Source.open_store``."""
    return source.open_store(
        PLUGIN_ID,
        local="svc_tasks.commands.local:LocalTasks",
        remote="svc_tasks.commands.remote:RemoteTasks",
        read_only=read_only,
    )
