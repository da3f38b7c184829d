"""The tasks of a server's database."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from svc_client import Client
from svc_tasks.client import Tasks
from svc_tasks.commands.store import FOLLOW_SECONDS, OVER, Document, Report

__all__ = ["RemoteTasks"]


class RemoteTasks:
    """See ``TaskStore``."""

    def __init__(self, client: Client) -> None:
        self._tasks = Tasks(client)

    def tasks(self, *, task_type: str | None, status: str | None) -> list[Document]:
        """All tasks, or those of a type or a status, the newest first."""
        return self._tasks.list(task_type=task_type, status=status)

    def task(self, task_id: str) -> Document:
        """A task."""
        return self._tasks.get(task_id)

    def run(self, task_type: str, args: Mapping[str, Any]) -> Document:
        """Enqueues a task."""
        return self._tasks.run(task_type, args)

    def follow(self, task_id: str, report: Report, *, may_run: bool) -> Document:
        """Asks until a task is over."""
        del may_run
        while True:
            found = self._tasks.get(task_id)
            report(found)
            if found["status"] in OVER:
                return found
            time.sleep(FOLLOW_SECONDS)

    def cancel(self, task_id: str) -> Document:
        """Cancels a task."""
        return self._tasks.cancel(task_id)

    def schedules(self) -> list[Document]:
        """All schedules."""
        found: list[Document] = self._tasks.schedules()["schedules"]
        return found

    def add(self, schedule: Mapping[str, Any]) -> Document:
        """Adds a schedule."""
        return self._tasks.add_schedule(schedule)

    def change(self, schedule_id: str, **members: Any) -> Document:
        """Changes a schedule."""
        return self._tasks.change_schedule(schedule_id, **members)

    def remove(self, schedule_id: str) -> Document:
        """Removes a schedule."""
        return self._tasks.remove_schedule(schedule_id)
