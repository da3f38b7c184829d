"""Reads and changes ``/.config/cron.json``: the file is the truth, each change of it a compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from svc.plugin import Database, Extension, Transaction, Version, attempt, read_record
from svc_tasks.api import NODE_CHOICES, TASK_TYPES, TaskType, runs_here
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.models import Schedule, ScheduleChange, ShownSchedule
from svc_tasks.records import (
    ScheduleState,
    encode,
    now_ms,
    schedule_file,
)
from svc_tasks.schedules.configuration import CRON, check_schedule, parse_cron_file
from svc_tasks.schedules.times import check_expression, next_times

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["CronStore", "cron_store", "stored_schedules"]

Types = Mapping[str, Extension[TaskType]]


def _ignore(fault: str) -> None:
    """The scheduler is who speaks of it."""
    del fault


def stored_schedules(version: Version, note: Callable[[str], None] = _ignore) -> list[Schedule]:
    """Returns the schedules of a version in the order of the file; what can't be read of it is left out.

    ``note`` is called with a sentence for each part that is left out.
    """
    return CRON.stored(version, lambda schedule: check_expression(schedule.schedule), note)


def cron_store(call: Call) -> CronStore:
    """Returns the schedules of a call's database."""
    settings = call.configuration or TasksConfiguration()
    return CronStore(
        call.database,
        call.extensions(TASK_TYPES),
        settings.timezone,
        lambda: runs_here(call.extensions(NODE_CHOICES)),
    )


class CronStore:
    """The schedules of a database. Methods block as reads and commits do."""

    def __init__(
        self,
        database: Database,
        types: Types,
        timezone: str,
        runs_one_node_here: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._runs_one_node_here = runs_one_node_here
        self._types = types
        self._timezone = timezone

    def schedules(self) -> list[Schedule]:
        """Returns the schedules in the order of the file; what can't be read of it is left out."""
        return stored_schedules(self._database.at())

    def answer(self, schedule: Schedule) -> ShownSchedule:
        """Returns a schedule as it is shown: with the next three times, and its last run."""
        system = self._database.system()
        state = read_record(system, system.get(schedule_file(schedule.id)), ScheduleState)
        return ShownSchedule(
            **asdict(schedule),
            next_runs=next_times(schedule.schedule, self._timezone, now_ms()) if schedule.enabled else [],
            last_run_at=None if state is None else state.last_run_at,
            last_task_id=None if state is None else state.last_task_id,
            runs_here=not schedule.is_of_one_node or self._runs_one_node_here(),
        )

    def get(self, schedule_id: str) -> Schedule:
        """Returns a schedule."""
        return CRON.find(self.schedules(), schedule_id)

    def add(self, schedule: Schedule, actor: str | None = None) -> Schedule:
        """Adds a schedule that is valid; AlreadyExists where there is one of this id."""
        check_schedule(schedule, self._types, self._database)
        CRON.add(
            self._database,
            schedule,
            actor=actor,
            also=lambda changes: self._note_begin(changes, [], [schedule]),
        )
        return schedule

    def update(self, schedule_id: str, wanted: ScheduleChange, actor: str | None = None) -> Schedule:
        """Changes members of a schedule."""
        members = {name: value for name, value in asdict(wanted).items() if value is not UNSET}

        def change(old: Schedule, changes: Transaction) -> Schedule:
            new = msgspec.structs.replace(old, **members)
            check_schedule(new, self._types, self._database, old)
            self._note_begin(changes, [old], [new])
            return new

        return CRON.replace(self._database, schedule_id, change, actor=actor)

    def remove(self, schedule_id: str, actor: str | None = None) -> Schedule:
        """Removes a schedule."""
        return CRON.replace(
            self._database, schedule_id, lambda _old, _changes: None, verb="remove", actor=actor
        )

    def read_file(self) -> bytes:
        """Returns the file as it is."""
        return CRON.read(self._database.at())

    def write_file(self, content: bytes, actor: str | None = None) -> list[Schedule]:
        """Stores a whole file, byte for byte."""
        schedules = parse_cron_file(content, self._types, self._database, self.schedules())

        def work() -> None:
            before = self.schedules()
            with self._database.transaction(actor=actor, message="store schedules") as changes:
                changes.put(CRON.path, content, content_type="application/json")
                self._note_begin(changes, before, schedules)

        attempt(work, "The file of schedules")
        return schedules

    def _note_begin(self, changes: Transaction, before: list[Schedule], after: list[Schedule]) -> None:
        """Notes since when a schedule is to run that begins with this commit, also while no server runs."""
        known = {one.id: one for one in before if one.enabled}
        for schedule in after:
            old = known.get(schedule.id)
            if schedule.enabled and (old is None or old.schedule != schedule.schedule):
                state = ScheduleState(
                    considered_until=now_ms(), schedule=schedule.schedule, timezone=self._timezone
                )
                changes.put_system(schedule_file(schedule.id), encode(state))
