"""Reads and changes ``/.config/cron.json``: the file is the truth, each change of it a compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from svc.errors import AlreadyExists, NotFound
from svc.plugin import Database, Extension, Transaction, attempt, read_record, same_content
from svc_tasks.api import TASK_TYPES, TaskType
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.models import Schedule, ScheduleChange, ShownSchedule
from svc_tasks.records import (
    ScheduleState,
    encode,
    now_ms,
    schedule_file,
)
from svc_tasks.schedules.configuration import (
    CRON_FILE,
    CronFile,
    check_schedule,
    parse_cron_file,
    readable_schedules,
)
from svc_tasks.schedules.times import next_times

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["CronStore", "cron_store", "stored_schedules"]

Types = Mapping[str, Extension[TaskType]]
Change = Callable[[list[Schedule]], list[Schedule]]


def stored_schedules(database: Database) -> list[Schedule]:
    """Returns the schedules of a database in the order of the file; what can't be read of it is left out."""
    version = database.at()
    entry = version.get(CRON_FILE)
    return [] if entry is None else readable_schedules(version.read_all(entry), _ignore)


def cron_store(call: Call) -> CronStore:
    """Returns the schedules of a call's database."""
    settings = call.configuration or TasksConfiguration()
    return CronStore(call.database, call.extensions(TASK_TYPES), settings.timezone)


class CronStore:
    """The schedules of a database. Methods block as reads and commits do."""

    def __init__(self, database: Database, types: Types, timezone: str) -> None:
        self._database = database
        self._types = types
        self._timezone = timezone

    def schedules(self) -> list[Schedule]:
        """Returns the schedules in the order of the file; what can't be read of it is left out."""
        return stored_schedules(self._database)

    def answer(self, schedule: Schedule) -> ShownSchedule:
        """Returns a schedule as it is shown: with the next three times, and its last run."""
        system = self._database.system()
        state = read_record(system, system.get(schedule_file(schedule.id)), ScheduleState)
        return ShownSchedule(
            **asdict(schedule),
            next_runs=next_times(schedule.schedule, self._timezone, now_ms()) if schedule.enabled else [],
            last_run_at=None if state is None else state.last_run_at,
            last_task_id=None if state is None else state.last_task_id,
        )

    def get(self, schedule_id: str) -> Schedule:
        """Returns a schedule."""
        return _found(self.schedules(), schedule_id)

    def add(self, schedule: Schedule, actor: str | None = None) -> Schedule:
        """Adds a schedule that is valid; AlreadyExists where there is one of this id."""

        def change(present: list[Schedule]) -> list[Schedule]:
            if any(one.id == schedule.id for one in present):
                raise AlreadyExists(f"There is a schedule {schedule.id!r} already.", id=schedule.id)
            return [*present, schedule]

        check_schedule(schedule, self._types, self._database)
        self._change(change, f"add schedule {schedule.id}", actor)
        return schedule

    def update(self, schedule_id: str, wanted: ScheduleChange, actor: str | None = None) -> Schedule:
        """Changes members of a schedule."""
        members = {name: value for name, value in asdict(wanted).items() if value is not UNSET}
        changed: list[Schedule] = []

        def change(present: list[Schedule]) -> list[Schedule]:
            old = _found(present, schedule_id)
            new = msgspec.structs.replace(old, **members)
            check_schedule(new, self._types, self._database, old)
            changed[:] = [new]
            return [new if one.id == schedule_id else one for one in present]

        self._change(change, f"change schedule {schedule_id}", actor)
        return changed[0]

    def remove(self, schedule_id: str, actor: str | None = None) -> Schedule:
        """Removes a schedule."""
        removed: list[Schedule] = []

        def change(present: list[Schedule]) -> list[Schedule]:
            removed[:] = [_found(present, schedule_id)]
            return [one for one in present if one.id != schedule_id]

        self._change(change, f"remove schedule {schedule_id}", actor)
        return removed[0]

    def read_file(self) -> bytes:
        """Returns the file as it is."""
        version = self._database.at()
        entry = version.get(CRON_FILE)
        if entry is None:
            raise NotFound("There is no /.config/cron.json.", path="/.config/cron.json")
        return version.read_all(entry)

    def write_file(self, content: bytes, actor: str | None = None) -> list[Schedule]:
        """Stores a whole file, byte for byte."""
        schedules = parse_cron_file(content, self._types, self._database, self.schedules())

        def work() -> None:
            before = self.schedules()
            with self._database.transaction(actor=actor, message="store schedules") as changes:
                changes.put(CRON_FILE, content, content_type="application/json")
                self._note_begin(changes, before, schedules)

        attempt(work, "The file of schedules")
        return schedules

    def _change(self, change: Change, message: str, actor: str | None) -> None:
        def work() -> None:
            version = self._database.at()
            entry = version.get(CRON_FILE)
            present = [] if entry is None else _strictly(version.read_all(entry))
            new = change(present)
            content = msgspec.json.format(msgspec.json.encode(CronFile(schedules=new)), indent=2)
            with self._database.transaction(actor=actor, message=message) as changes:
                changes.put(
                    CRON_FILE, content, content_type="application/json", condition=same_content(entry)
                )
                self._note_begin(changes, present, new)

        attempt(work, "The file of schedules")

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


def _strictly(content: bytes) -> list[Schedule]:
    """The schedules of a file that is to be written again: nothing of it may get lost."""
    from svc.errors import Conflict

    faults: list[str] = []
    found = readable_schedules(content, faults.append)
    if faults:
        raise Conflict(f"{faults[0][:1].upper()}{faults[0][1:]}; store a valid file first.")
    return found


def _found(schedules: list[Schedule], schedule_id: str) -> Schedule:
    for schedule in schedules:
        if schedule.id == schedule_id:
            return schedule
    raise NotFound(f"There is no schedule {schedule_id[:100]!r}.", id=schedule_id[:100])


def _ignore(fault: str) -> None:
    """The scheduler is who speaks of it."""
    del fault
