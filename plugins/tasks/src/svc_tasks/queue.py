"""The queue: tasks as records of the system tree, each change a commit under the condition of what was read.

Any process may use it at any time; who loses a race reads again and decides anew.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from svc.errors import Conflict, NotFound, PreconditionFailed, ServiceUnavailable
from svc.plugin import Condition, Database, Entry, Transaction, attempt, read_record, same_content
from svc_tasks.api import Json, Task, TaskType
from svc_tasks.arguments import checked
from svc_tasks.records import (
    ACTIVE,
    RECORDS,
    active_file,
    encode,
    fingerprint,
    is_task_id,
    new_task_id,
    now_ms,
    record_file,
)

__all__ = ["KEPT", "KEPT_MS", "MAXIMUM_PENDING", "Queue", "Wanted", "begin_message", "finished"]

KEPT = 100
"""Most finished tasks that are kept."""
KEPT_MS = 24 * 3_600_000
"""How long a finished task is kept."""
MAXIMUM_PENDING = 1_000
"""Most tasks that wait or run at once."""

_NEW = Condition(if_none_match=("*",))
_WHAT = "The queue of tasks"

logger = logging.getLogger("svc.plugin.tasks")


class Wanted(NamedTuple):
    """A task that shall be enqueued, or is already: then ``add``, which puts it into a transaction, is None.

    ``key`` is its fingerprint: of those that have the same one, only one can be added.
    """

    task: Task
    key: str
    add: Callable[[Transaction], None] | None


class Queue:
    """The tasks of a database. Methods block as reads and commits do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- reading -----------------------------------------------------------------------------------

    def tasks(self, task_type: str | None = None) -> list[Task]:
        """Returns the tasks of one type, or of all, the newest first."""
        system = self._database.system()
        if system.get(RECORDS) is None:
            return []
        found = [
            task
            for _, entry in system.entries(RECORDS, reverse=True)
            if (task := read_record(system, entry, Task)) is not None
        ]
        return [task for task in found if task_type is None or task.task_type == task_type]

    def active(self) -> list[Task]:
        """Returns the tasks that wait or run, the oldest first."""
        system = self._database.system()
        if system.get(ACTIVE) is None:
            return []
        ids = sorted(system.read_all(entry).decode() for _, entry in system.entries(ACTIVE))
        found = (read_record(system, system.get(record_file(task_id)), Task) for task_id in ids)
        return [task for task in found if task is not None and not task.is_finished]

    def get(self, task_id: str) -> Task:
        """Returns a task."""
        return self._read(task_id)[0]

    # -- enqueueing --------------------------------------------------------------------------------

    def enqueue(
        self,
        task_type: TaskType,
        args: Mapping[str, Any],
        *,
        configuration: Any = None,
        actor: str | None = None,
        schedule_id: str | None = None,
    ) -> Task:
        """Enqueues a task, or returns the same one that waits or runs; see ``svc_tasks.api.enqueue``."""
        wanted_args = checked(task_type, args, configuration, self._database)

        def work() -> Task:
            wanted = self.want(task_type.name, wanted_args, actor=actor, schedule_id=schedule_id)
            if wanted.add is not None:
                with self._database.transaction(actor=actor, message=f"enqueue {task_type.name}") as changes:
                    wanted.add(changes)
                self.log(wanted.task)
            return wanted.task

        return attempt(work, _WHAT)

    def want(
        self,
        task_type: str,
        args: dict[str, Any],
        *,
        actor: str | None,
        schedule_id: str | None,
        beside: int = 0,
    ) -> Wanted:
        """Returns the task with these arguments, and how to add it where it is not there yet.

        A transaction with ``add`` fails (``PreconditionFailed``) when somebody else was faster. Raises
        ServiceUnavailable where too many wait already.
        """
        system = self._database.system()
        key = fingerprint(task_type, args)
        marker = system.get(active_file(key))
        if marker is not None:
            entry = system.get(record_file(system.read_all(marker).decode()))
            present = read_record(system, entry, Task)
            if present is not None and not present.is_finished:
                return Wanted(present, key, None)
        waiting = system.entry_count(ACTIVE) if system.get(ACTIVE) is not None else 0
        if waiting + beside >= MAXIMUM_PENDING:
            raise ServiceUnavailable(
                f"{MAXIMUM_PENDING:,} tasks wait already; try again when some are done.",
                limit=MAXIMUM_PENDING,
                retry_after=60,
            )
        task = Task(
            id=new_task_id(self._database),
            task_type=task_type,
            status="pending",
            args=args,
            created_at=now_ms(),
            actor=actor,
            schedule_id=schedule_id,
        )

        def add(changes: Transaction) -> None:
            changes.put_system(record_file(task.id), encode(task), condition=_NEW)
            changes.put_system(active_file(key), task.id.encode(), condition=same_content(marker))

        return Wanted(task, key, add)

    # -- changing ----------------------------------------------------------------------------------

    def change(
        self,
        task_id: str,
        change: Callable[[Task], Task | None],
        message: str,
        *,
        actor: str | None = None,
    ) -> Task:
        """Changes the record of a task; one that becomes finished waits and runs no more.

        ``change`` returns the new record, or None to leave it. It is called again after a race.
        """

        def work() -> Task:
            task, entry = self._read(task_id)
            changed = change(task)
            if changed is None or changed == task:
                return task
            with self._database.transaction(actor=actor, message=message) as changes:
                condition = same_content(entry)
                changes.put_system(record_file(task_id), encode(changed), condition=condition)
                if changed.is_finished:
                    marker = active_file(fingerprint(task.task_type, task.args))
                    # Put first: what is not there can't be deleted.
                    changes.put_system(marker, b"")
                    changes.delete_system(marker)
            if changed.status != task.status:
                self.log(changed)
            return changed

        return attempt(work, f"The task {task_id}")

    def cancel(self, task_id: str, actor: str | None = None) -> Task:
        """Cancels a task: at once when it waits; one that runs ends between two of its batches.

        Raises NotFound, and Conflict where it is completed or has failed.
        """

        def cancelled(task: Task) -> Task | None:
            if task.status == "pending":
                return finished(task, "cancelled")
            if task.status == "running":
                return msgspec.structs.replace(task, cancel_requested_at=task.cancel_requested_at or now_ms())
            if task.status == "cancelled":
                return None
            raise Conflict(f"The task is {task.status} already.", task_id=task_id, status=task.status)

        return self.change(task_id, cancelled, f"cancel task {task_id}", actor=actor)

    def prune(self) -> int:
        """Removes finished tasks older than a day, and the oldest beyond a hundred; returns how many."""
        past = [task for task in self.tasks() if task.is_finished]
        past.sort(key=lambda task: (task.finished_at or 0, task.id), reverse=True)
        horizon = now_ms() - KEPT_MS
        old = [task for place, task in enumerate(past) if place >= KEPT or (task.finished_at or 0) < horizon]
        if not old:
            return 0
        # Somebody else may remove the same ones; the next time removes the rest.
        with contextlib.suppress(NotFound, PreconditionFailed, Conflict):
            with self._database.transaction(message="remove old tasks") as changes:
                for task in old:
                    changes.delete_system(record_file(task.id))
            return len(old)
        return 0

    def _read(self, task_id: str) -> tuple[Task, Entry]:
        system = self._database.system()
        entry = system.get(record_file(task_id)) if is_task_id(task_id) else None
        task = read_record(system, entry, Task)
        if task is None or entry is None:
            raise NotFound(f"There is no task {task_id[:64]!r}.", task_id=task_id[:64])
        return task, entry

    def log(self, task: Task) -> None:
        """Writes what became of a task into the log; never its arguments, which may be anything."""
        level = logging.WARNING if task.status == "failed" else logging.INFO
        fields: dict[str, Any] = {"task": task.id, "type": task.task_type, "status": task.status}
        if task.schedule_id is not None:
            fields["schedule"] = task.schedule_id
        if task.error is not None:
            fields["reason"] = task.error
        logger.log(level, "task", extra={"fields": fields})


def begin_message(task_id: str) -> str:
    """Returns what the commit says that begins a run. Events of old commits are known by it."""
    return f"begin task {task_id}"


def finished(task: Task, status: str, *, error: str | None = None, result: Json = None) -> Task:
    """Returns a task as it is when it has come to its end: ``completed``, ``failed`` or ``cancelled``."""
    return msgspec.structs.replace(
        task, status=status, error=error, result=result, checkpoint=None, finished_at=now_ms()
    )
