"""Enqueues what is due; a task and the note of it are one commit, so no run is lost or doubled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from svc.errors import Conflict, NotFound, PreconditionFailed, SvcError
from svc.plugin import Database, Entry, Extension, Path, Version, attempt, read_record, same_content
from svc_tasks.api import TaskType
from svc_tasks.arguments import normalized
from svc_tasks.models import Schedule
from svc_tasks.queue import Queue, Wanted
from svc_tasks.records import (
    LAST_RUNS,
    SCHEDULES,
    LastRun,
    ScheduleState,
    encode,
    last_run_file,
    now_ms,
    schedule_file,
)
from svc_tasks.schedules.configuration import CRON
from svc_tasks.schedules.store import stored_schedules
from svc_tasks.schedules.times import due_after, time_zone

__all__ = ["LATE_MS", "SET_BACK_MS", "TOGETHER", "Scheduler"]

LATE_MS = 120_000
"""A schedule that came as a file begins when the file was stored, if that is not longer ago."""
SET_BACK_MS = 3 * 3_600_000
"""A clock that was set back further was wrong before: schedules begin anew with the new time."""

TOGETHER = 100
"""What is due of so many schedules is one commit."""

Types = Mapping[str, Extension[TaskType]]

logger = logging.getLogger("svc.plugin.tasks")


class _Step(NamedTuple):
    """What is to be stored about a schedule: its new state, and the task that is due, if one is.

    ``entry`` is the file of its state, as it was read.
    """

    schedule: Schedule
    entry: Entry | None
    state: ScheduleState
    wanted: Wanted | None

    @property
    def key(self) -> str | None:
        """Fingerprint of the task that this enqueues; None where it enqueues none."""
        return None if self.wanted is None or self.wanted.add is None else self.wanted.key


class Scheduler:
    """Looks at all schedules of a database. For one thread."""

    def __init__(
        self,
        database: Database,
        types: Callable[[], Types],
        timezone: str,
        clock: Callable[[], int] = now_ms,
        runs_here: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._types = types
        self._timezone = timezone
        self._clock = clock
        self._runs_here = runs_here
        self._is_chosen = True
        self._queue = Queue(database)
        self._told: set[str] = set()

    def check(self) -> list[str]:
        """Enqueues one task for each schedule that was due since it was last looked at; returns their ids.

        A schedule that fails keeps no other back, and is tried again the next time.
        """
        version = self._database.at()
        entry = version.get(CRON.path)
        schedules = stored_schedules(version, self._tell)
        begun_ms = 0 if entry is None else entry.updated_ms
        types = self._types()
        enabled = [schedule for schedule in schedules if schedule.enabled]
        is_asked = any(schedule.is_of_one_node for schedule in enabled)
        is_asked = is_asked or self._database.system().get(LAST_RUNS) is not None
        self._is_chosen = is_asked and self._runs_here()
        enqueued: list[str] = []
        for first in range(0, len(enabled), TOGETHER):
            enqueued += self._check_together(enabled[first : first + TOGETHER], types, begun_ms)
        known = {schedule.id for schedule in enabled}
        self._forget(SCHEDULES, known)
        if self._is_chosen:
            self._forget(LAST_RUNS, known)
        return enqueued

    def _check_together(self, schedules: list[Schedule], types: Types, begun_ms: int) -> list[str]:
        """Looks at some schedules, and stores what follows as one commit; each alone where that fails."""
        steps: list[_Step] = []
        alone: list[Schedule] = []
        keys: set[str] = set()
        for schedule in schedules:
            step = self._look(schedule, types, begun_ms, len(keys))
            if step is None:
                continue
            if step.key is None or step.key not in keys:
                steps.append(step)
                keys.update([step.key] if step.key is not None else [])
            else:
                # The same work as that of another schedule: its task is there when this is looked at again.
                alone.append(schedule)
        enqueued: list[str] = []
        try:
            enqueued += self._store(steps)
        except SvcError:
            alone = [step.schedule for step in steps] + alone
        for schedule in alone:
            look = partial(self._check_one, schedule, types, begun_ms)
            try:
                enqueued += attempt(look, f"The schedule {schedule.id}")
            except SvcError as error:
                self._tell_failure(schedule, error)
        return enqueued

    def _check_one(self, schedule: Schedule, types: Types, begun_ms: int) -> list[str]:
        step = self._look(schedule, types, begun_ms, 0)
        return [] if step is None else self._store([step])

    def _store(self, steps: list[_Step]) -> list[str]:
        if not steps:
            return []
        said = f"schedule {steps[0].schedule.id}" if len(steps) == 1 else f"{len(steps)} schedules"
        with self._database.transaction(message=said) as changes:
            for step in steps:
                place = schedule_file(step.schedule.id)
                changes.put_system(place, encode(step.state), condition=same_content(step.entry))
                if step.wanted is None:
                    continue
                if step.wanted.add is not None:
                    step.wanted.add(changes)
                if step.schedule.is_of_one_node:
                    changes.put_system(last_run_file(step.schedule.id), encode(_last_run(step.state)))
        tasks = [step.wanted.task for step in steps if step.key is not None and step.wanted is not None]
        for task in tasks:
            self._queue.log(task)
        return [task.id for task in tasks]

    def _look(self, schedule: Schedule, types: Types, begun_ms: int, beside: int) -> _Step | None:
        """Returns what is to be stored about a schedule now; None when nothing is."""
        now = self._clock()
        system = self._database.system()
        entry = system.get(schedule_file(schedule.id))
        known = read_record(system, entry, ScheduleState)
        state = self._begun(schedule, known, begun_ms, now)
        unless_due = None if state is known else _Step(schedule, entry, state, None)
        if schedule.is_of_one_node:
            if not self._is_chosen:
                return unless_due
            state = _with_runs_elsewhere(system, schedule.id, state, now)
        due = next(due_after(schedule.schedule, time_zone(self._timezone), state.considered_until), None)
        if due is None or due > now:
            return unless_due
        try:
            wanted = self._want(schedule, types, beside)
        except SvcError as error:
            self._tell_failure(schedule, error)
            return unless_due
        if wanted is None:
            return unless_due
        state = msgspec.structs.replace(
            state, considered_until=now, last_run_at=now, last_task_id=wanted.task.id
        )
        return _Step(schedule, entry, state, wanted)

    def _begun(
        self, schedule: Schedule, known: ScheduleState | None, begun_ms: int, now: int
    ) -> ScheduleState:
        """Returns what is known of a schedule, or with what it begins where that is of no use."""
        if (
            known is not None
            and (known.schedule, known.timezone) == (schedule.schedule, self._timezone)
            and known.considered_until <= now + SET_BACK_MS
        ):
            return known
        since = now if known is not None and known.considered_until > now else begun_ms
        return ScheduleState(
            considered_until=min(now, max(since, now - LATE_MS)),
            schedule=schedule.schedule,
            timezone=self._timezone,
            last_run_at=None if known is None else known.last_run_at,
            last_task_id=None if known is None else known.last_task_id,
        )

    def _want(self, schedule: Schedule, types: Types, beside: int) -> Wanted | None:
        found = types.get(schedule.task_type)
        if found is None:
            # Its plugin may come back; the run is then made up for.
            self._tell(f"the schedule {schedule.id} waits for the task type {schedule.task_type}")
            return None
        args: dict[str, Any] = normalized(found.value, schedule.args, found.context.configuration)
        return self._queue.want(schedule.task_type, args, actor=None, schedule_id=schedule.id, beside=beside)

    def _forget(self, place: Path, known: set[str]) -> None:
        """Removes what is known of schedules that are gone or disabled: they would begin anew."""
        system = self._database.system()
        if system.get(place) is None:
            return
        gone = [name for name, _ in system.entries(place) if name not in known]
        if not gone:
            return
        try:
            with self._database.transaction(message="forget schedules") as changes:
                for name in gone:
                    changes.delete_system((*place, name))
        except (NotFound, PreconditionFailed, Conflict):
            # Somebody else has changed them; the next time is soon.
            return

    def _tell_failure(self, schedule: Schedule, error: SvcError) -> None:
        self._tell(f"the schedule {schedule.id} can't start its task: {error.message}")

    def _tell(self, fault: str) -> None:
        """Writes a sentence into the log, once while nothing else comes in between."""
        if fault not in self._told:
            if len(self._told) > 1_000:
                self._told.clear()
            self._told.add(fault)
            logger.warning("schedule", extra={"fields": {"reason": fault}})


def _last_run(state: ScheduleState) -> LastRun:
    return LastRun(considered_until=state.considered_until, schedule=state.schedule, timezone=state.timezone)


def _with_runs_elsewhere(system: Version, schedule_id: str, state: ScheduleState, now: int) -> ScheduleState:
    """Returns what is known of a schedule, with what another node has run of it."""
    ran = read_record(system, system.get(last_run_file(schedule_id)), LastRun)
    if ran is None or (ran.schedule, ran.timezone) != (state.schedule, state.timezone):
        return state
    if not state.considered_until < ran.considered_until <= now + SET_BACK_MS:
        return state
    return msgspec.structs.replace(state, considered_until=ran.considered_until)
