"""The file ``/.config/cron.json``: schedules as values, and what makes one valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from svc.errors import InvalidInput
from svc.plugin import ConfigurationList, Database, Extension, at_field
from svc_tasks.api import TaskType
from svc_tasks.arguments import checked, normalized
from svc_tasks.models import Schedule
from svc_tasks.schedules.times import check_expression

__all__ = ["CRON", "check_schedule", "parse_cron_file"]

CRON = ConfigurationList("cron.json", "schedule", Schedule)

Types = Mapping[str, Extension[TaskType]]


def parse_cron_file(
    content: bytes, types: Types, database: Database, present: Iterable[Schedule] = ()
) -> list[Schedule]:
    """Returns the schedules of a file that is wholly valid."""
    before = {schedule.id: schedule for schedule in present}
    return CRON.parse(content, lambda one: check_schedule(one, types, database, before.get(one.id)))


def check_schedule(
    schedule: Schedule, types: Types, database: Database, before: Schedule | None = None
) -> dict[str, Any]:
    """Checks one schedule, and returns its arguments as the type has them.

    What makes no sense for the database any more keeps nobody from storing it once more with others, or from
    disabling it.
    """
    check_expression(schedule.schedule)
    found = types.get(schedule.task_type)
    if found is None or not found.value.trigger:
        raise InvalidInput(
            f"There is no task type {schedule.task_type[:64]!r} that a schedule may start.",
            field="task_type",
            task_types=sorted(name for name, one in types.items() if one.value.trigger),
        )
    with at_field("args."):
        task_type, configuration = found.value, found.context.configuration
        if before is not None and schedule in (before, msgspec.structs.replace(before, enabled=False)):
            return normalized(task_type, schedule.args, configuration)
        return checked(task_type, schedule.args, configuration, database)
