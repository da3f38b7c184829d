"""Runs tasks of a database in a test, as the background process does, and ends them at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from svc.plugin import Database, Extension, Transaction
from svc_tasks.api import Task, TaskType, enqueue, find_task
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.records import active_file, fingerprint
from svc_tasks.running.supervisor import Supervisor

__all__ = ["TaskBench"]

_SECONDS = 100.0


class TaskBench:
    """A database with a runner."""

    def __init__(self, database: Database, types: Mapping[str, Extension[TaskType]]) -> None:
        self.database = database
        self._types = types

    def add(self, name: str, args: Mapping[str, Any]) -> Task:
        """Enqueues a task."""
        found = self._types[name]
        return enqueue(self.database, found.value, args, configuration=found.context.configuration)

    def configuration(self, name: str) -> Any:
        """The settings of the plugin that added a type."""
        return self._types[name].context.configuration

    def mark(self, changes: Transaction, task: Task) -> None:
        """Lets a task count as one that waits or runs, in a transaction that writes its record."""
        key = fingerprint(task.task_type, task.args)
        changes.put_system(active_file(key), task.id.encode())

    def task(self, task: Task) -> Task:
        """The task as it is now."""
        return find_task(self.database, task.id)

    @contextmanager
    def runner(self, **settings: Any) -> Iterator[Supervisor]:
        """A runner; what runs at the end of the context is killed and left as it is."""
        made = Supervisor(self.database, lambda: self._types, TasksConfiguration(**settings))
        made.recover()
        try:
            yield made
        finally:
            made.abandon()

    def finish(self, task: Task, **settings: Any) -> Task:
        """Runs tasks until this one is over, and returns it."""
        with self.runner(**settings) as runner:
            self.run_until(runner, lambda: self.task(task).is_finished)
        return self.task(task)

    def run_until(self, runner: Supervisor, holds: Callable[[], bool], seconds: float = _SECONDS) -> None:
        """Lets a runner work until something holds; an ``AssertionError`` when that takes too long."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "The task takes too long."
            runner.tick(0.01)

    def has_begun(self, runner: Supervisor, task: Task) -> bool:
        """Whether the process of a task has said something, or the task is over."""
        process = runner.processes.get(task.id)
        return (process is not None and process.has_spoken) or self.task(task).is_finished

    def has_got_on(self, runner: Supervisor, task: Task) -> bool:
        """Whether a task has done a batch, or is over."""
        process = runner.processes.get(task.id)
        return (process is not None and process.progress.indexed_count > 0) or self.task(task).is_finished

    def is_idle(self, runner: Supervisor) -> bool:
        """Whether no process runs that the runner has not seen the end of."""
        return not runner.processes
