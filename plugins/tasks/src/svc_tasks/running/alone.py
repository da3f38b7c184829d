"""Runs one task of a database file in this process, where nothing else runs the tasks of the database."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from svc.errors import NotFound, ServiceUnavailable
from svc.plugin import Database, read_settings
from svc_cli import extensions_of
from svc_tasks.answers import present_answer, task_answer
from svc_tasks.api import TASK_TYPES, find_task
from svc_tasks.descriptor import PLUGIN
from svc_tasks.lock import RunnerLock
from svc_tasks.models import Task
from svc_tasks.operations import FOLLOW_SECONDS, tell_progress
from svc_tasks.running.supervisor import Supervisor

if TYPE_CHECKING:
    from svc_cli import Source

__all__ = ["follow_in_file"]

_TICK_SECONDS = 0.1

Progress = Callable[[int, int], None]


def follow_in_file(source: Source, task_id: str, progress: Progress, *, may_run: bool) -> Task:
    """Looks on until a task is over; runs it here as soon as nothing else runs tasks. Blocks.

    Args:
        source: names the file.
        task_id: the task.
        progress: told (items done, items in all).
        may_run: whether it may be run here.

    Raises:
        NotFound: there is no such task, or no such task type here.
        ServiceUnavailable: nothing runs the tasks, and it may not be run here.
    """
    with source.open_file(PLUGIN.id) as database:
        lock = RunnerLock(database)
        try:
            while True:
                found = present_answer(database, find_task(database, task_id))
                tell_progress(found, progress)
                if found.is_finished:
                    return found
                if lock.acquire():
                    if not may_run:
                        raise ServiceUnavailable(
                            "Nobody runs the tasks of this database; 'svc start' and 'svc task run' do."
                        )
                    return _run(database, task_id, progress)
                time.sleep(FOLLOW_SECONDS)
        finally:
            lock.release()


def _run(database: Database, task_id: str, progress: Progress) -> Task:
    """Is the runner, of this task alone, until it is over. An interrupt leaves it to the next runner."""
    types = extensions_of(database, PLUGIN.id, TASK_TYPES)
    wanted = find_task(database, task_id).task_type
    if wanted not in types:
        raise NotFound(f"No plugin that is in use here has the task type {wanted!r}.", task_type=wanted)
    supervisor = Supervisor(database, lambda: types, read_settings(PLUGIN, database), only=task_id)
    supervisor.recover()
    try:
        while True:
            supervisor.tick(_TICK_SECONDS)
            process = supervisor.processes.get(task_id)
            found = task_answer(find_task(database, task_id), None if process is None else process.progress)
            tell_progress(found, progress)
            if found.is_finished:
                return found
    finally:
        supervisor.stop()
