"""The tasks of a database file. Whoever holds the file is root."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from svc.errors import InvalidInput, NotFound, ServiceUnavailable
from svc.plugin import Database, Extension, extensions_of, read_settings
from svc_tasks.answers import task_answer
from svc_tasks.api import TASK_TYPES, TaskType, enqueue, find_task, list_tasks, progress_of
from svc_tasks.commands.store import FOLLOW_SECONDS, OVER, PLUGIN_ID, Document, Report
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.descriptor import PLUGIN
from svc_tasks.lock import RunnerLock
from svc_tasks.queue import Queue
from svc_tasks.running.supervisor import Supervisor
from svc_tasks.schedules.configuration import Schedule
from svc_tasks.schedules.store import CronStore

__all__ = ["LocalTasks"]

_TICK_SECONDS = 0.1

Types = Mapping[str, Extension[TaskType]]


class LocalTasks:
    """See ``TaskStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue = Queue(database)

    def tasks(self, *, task_type: str | None, status: str | None) -> list[Document]:
        """All tasks, or those of a type or a status, the newest first."""
        progress = progress_of(self._database)
        return [
            task_answer(task, progress.get(task.id))
            for task in list_tasks(self._database, task_type)
            if status is None or task.status == status
        ]

    def task(self, task_id: str) -> Document:
        """A task."""
        return task_answer(find_task(self._database, task_id), progress_of(self._database).get(task_id))

    def run(self, task_type: str, args: Mapping[str, Any]) -> Document:
        """Enqueues a task."""
        types = self._types()
        found = types.get(task_type)
        if found is None or not found.value.trigger:
            known = ", ".join(sorted(name for name, one in types.items() if one.value.trigger)) or "none"
            raise NotFound(
                f"There is no task type {task_type[:64]!r} that can be started; there is: {known}."
            )
        return task_answer(
            enqueue(self._database, found.value, args, configuration=found.context.configuration)
        )

    def follow(self, task_id: str, report: Report, *, may_run: bool) -> Document:
        """Runs a task here where nobody else runs tasks, and looks on where somebody does."""
        lock = RunnerLock(self._database)
        try:
            while True:
                found = self.task(task_id)
                report(found)
                if found["status"] in OVER:
                    return found
                if lock.acquire():
                    if not may_run:
                        raise ServiceUnavailable(
                            "Nobody runs the tasks of this database; 'svc start' and 'svc task run' do."
                        )
                    return self._run_here(task_id, report)
                time.sleep(FOLLOW_SECONDS)
        finally:
            lock.release()

    def cancel(self, task_id: str) -> Document:
        """Cancels a task."""
        return task_answer(self._queue.cancel(task_id))

    def schedules(self) -> list[Document]:
        """All schedules."""
        store = self._cron()
        return [store.answer(schedule) for schedule in store.schedules()]

    def add(self, schedule: Mapping[str, Any]) -> Document:
        """Adds a schedule."""
        store = self._cron()
        try:
            wanted = msgspec.convert(dict(schedule), Schedule)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"The schedule is not valid: {error}.") from None
        return store.answer(store.add(wanted))

    def change(self, schedule_id: str, **members: Any) -> Document:
        """Changes a schedule."""
        store = self._cron()
        return store.answer(store.update(schedule_id, members))

    def remove(self, schedule_id: str) -> Document:
        """Removes a schedule."""
        return {"deleted": True, **msgspec.to_builtins(self._cron().remove(schedule_id))}

    def _run_here(self, task_id: str, report: Report) -> Document:
        """Is the runner, of this task alone, until it is over. An interrupt leaves it to the next runner."""
        types = self._types()
        wanted = find_task(self._database, task_id).task_type
        if wanted not in types:
            raise NotFound(f"No plugin that is in use here has the task type {wanted!r}.", task_type=wanted)
        supervisor = Supervisor(self._database, lambda: types, self._settings(), only=task_id)
        supervisor.recover()
        try:
            while True:
                supervisor.tick(_TICK_SECONDS)
                process = supervisor.processes.get(task_id)
                progress = None if process is None else process.progress
                found = task_answer(find_task(self._database, task_id), progress)
                report(found)
                if found["status"] in OVER:
                    return found
        finally:
            supervisor.stop()

    def _types(self) -> Types:
        return extensions_of(self._database, PLUGIN_ID, TASK_TYPES)

    def _settings(self) -> TasksConfiguration:
        settings: TasksConfiguration = read_settings(PLUGIN, self._database)
        return settings

    def _cron(self) -> CronStore:
        return CronStore(self._database, self._types(), self._settings().timezone)
