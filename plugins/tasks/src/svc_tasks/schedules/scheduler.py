"""Enqueues what is due.

A task and the note that its time has come are one commit, so no run is lost or doubled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from svc.errors import Conflict, NotFound, PreconditionFailed, SvcError
from svc.plugin import Database, Entry, Extension, attempt
from svc_tasks.api import TaskType
from svc_tasks.arguments import normalized
from svc_tasks.queue import Queue
from svc_tasks.records import (
    SCHEDULES,
    ScheduleState,
    encode,
    now_ms,
    read_record,
    same_content,
    schedule_file,
)
from svc_tasks.schedules.configuration import CRON_FILE, Schedule, readable_schedules
from svc_tasks.schedules.times import due_after, time_zone

__all__ = ["LATE_MS", "SET_BACK_MS", "Scheduler"]

LATE_MS = 120_000
"""A schedule that came as a file begins when the file was stored, if that is not longer ago."""
SET_BACK_MS = 3 * 3_600_000
"""A clock that was set back further was wrong before: schedules begin anew with the new time."""

Types = Mapping[str, Extension[TaskType]]

logger = logging.getLogger("svc.plugin.tasks")


class Scheduler:
    """Looks at all schedules of a database. For one thread.

    Args:
        database: the open database.
        types: gives the task types that are in use now.
        timezone: name of the time zone that schedules are meant in.
        clock: gives the present time, Unix milliseconds.
    """

    def __init__(
        self, database: Database, types: Callable[[], Types], timezone: str, clock: Callable[[], int] = now_ms
    ) -> None:
        self._database = database
        self._types = types
        self._timezone = timezone
        self._clock = clock
        self._queue = Queue(database)
        self._told: set[str] = set()

    def check(self) -> list[str]:
        """Enqueues one task for each schedule that was due since it was last looked at; returns their ids.

        A schedule that fails keeps no other back, and is tried again the next time.
        """
        version = self._database.at()
        entry = version.get(CRON_FILE)
        schedules = [] if entry is None else readable_schedules(version.read_all(entry), self._tell)
        begun_ms = 0 if entry is None else entry.updated_ms
        types = self._types()
        enqueued: list[str] = []
        for schedule in schedules:
            if not schedule.enabled:
                continue
            look = partial(self._check_one, schedule, types, begun_ms)
            try:
                task_id = attempt(look, f"The schedule {schedule.id}")
            except SvcError as error:
                self._tell(f"the schedule {schedule.id} can't start its task: {error.message}")
                continue
            if task_id is not None:
                enqueued.append(task_id)
        self._forget({schedule.id for schedule in schedules if schedule.enabled})
        return enqueued

    def _check_one(self, schedule: Schedule, types: Types, begun_ms: int) -> str | None:
        """Looks at one schedule; returns the id of the task that it has enqueued."""
        now = self._clock()
        system = self._database.system()
        entry = system.get(schedule_file(schedule.id))
        state = read_record(system, entry, ScheduleState)
        if (
            state is None
            or (state.schedule, state.timezone) != (schedule.schedule, self._timezone)
            or state.considered_until > now + SET_BACK_MS
        ):
            known = state
            since = now if state is not None and state.considered_until > now else begun_ms
            state = ScheduleState(
                considered_until=min(now, max(since, now - LATE_MS)),
                schedule=schedule.schedule,
                timezone=self._timezone,
                last_run_at=None if known is None else known.last_run_at,
                last_task_id=None if known is None else known.last_task_id,
            )
            self._store(schedule, state, entry)
            entry = self._database.system().get(schedule_file(schedule.id))
        due = next(due_after(schedule.schedule, time_zone(self._timezone), state.considered_until), None)
        if due is None or due > now:
            return None
        return self._enqueue(schedule, types, state, entry, now)

    def _enqueue(
        self, schedule: Schedule, types: Types, state: ScheduleState, entry: Entry | None, now: int
    ) -> str | None:
        found = types.get(schedule.task_type)
        if found is None:
            # Its plugin may come back; the run is then made up for.
            self._tell(f"the schedule {schedule.id} waits for the task type {schedule.task_type}")
            return None
        args: dict[str, Any] = normalized(found.value, schedule.args, found.context.configuration)
        wanted = self._queue.want(schedule.task_type, args, actor=None, schedule_id=schedule.id)
        state = msgspec.structs.replace(
            state, considered_until=now, last_run_at=now, last_task_id=wanted.task.id
        )
        with self._database.transaction(message=f"schedule {schedule.id}") as changes:
            changes.put_system(schedule_file(schedule.id), encode(state), condition=same_content(entry))
            if wanted.add is not None:
                wanted.add(changes)
        if wanted.add is None:
            return None
        self._queue.log(wanted.task)
        return wanted.task.id

    def _store(self, schedule: Schedule, state: ScheduleState, entry: Entry | None) -> None:
        with self._database.transaction(message=f"begin schedule {schedule.id}") as changes:
            changes.put_system(schedule_file(schedule.id), encode(state), condition=same_content(entry))

    def _forget(self, known: set[str]) -> None:
        """Removes what is known of schedules that are gone or disabled: they would begin anew."""
        system = self._database.system()
        if system.get(SCHEDULES) is None:
            return
        gone = [name for name, _ in system.entries(SCHEDULES) if name not in known]
        if not gone:
            return
        try:
            with self._database.transaction(message="forget schedules") as changes:
                for name in gone:
                    changes.delete_system(schedule_file(name))
        except (NotFound, PreconditionFailed, Conflict):
            # Somebody else has changed them; the next time is soon.
            return

    def _tell(self, fault: str) -> None:
        """Writes a sentence into the log, once while nothing else comes in between."""
        if fault not in self._told:
            if len(self._told) > 1_000:
                self._told.clear()
            self._told.add(fault)
            logger.warning("schedule", extra={"fields": {"reason": fault}})
