"""The file ``/.config/cron.json``: schedules as values, and what makes a file valid."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from svc.errors import InvalidInput, SvcError
from svc.plugin import Database, Extension, Path
from svc_tasks.api import TaskType
from svc_tasks.arguments import checked, normalized
from svc_tasks.models import Schedule
from svc_tasks.schedules.times import check_expression

__all__ = [
    "CRON_FILE",
    "MAXIMUM_BYTES",
    "MAXIMUM_SCHEDULES",
    "CronFile",
    "check_schedule",
    "parse_cron_file",
    "readable_schedules",
]

CRON_FILE: Path = (".config", "cron.json")
MAXIMUM_BYTES = 1 << 20
MAXIMUM_SCHEDULES = 1_000

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Types = Mapping[str, Extension[TaskType]]

logger = logging.getLogger("svc.plugin.tasks")


class CronFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: schedules, each under its own id."""

    schedules: list[Schedule]


def parse_cron_file(
    content: bytes, types: Types, database: Database, present: Iterable[Schedule] = ()
) -> list[Schedule]:
    """Returns the schedules of a file that is wholly valid."""
    try:
        file = msgspec.json.decode(content, type=CronFile)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").removeprefix(".") or "schedules"
        raise InvalidInput(f"{what.replace('`', chr(39))} (at {field}).", field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidInput("The file is not valid JSON.", field="schedules") from None
    if len(file.schedules) > MAXIMUM_SCHEDULES:
        raise InvalidInput(
            f"A database has at most {MAXIMUM_SCHEDULES:,} schedules.",
            field="schedules",
            limit=MAXIMUM_SCHEDULES,
        )
    before = {schedule.id: schedule for schedule in present}
    seen: set[str] = set()
    for number, schedule in enumerate(file.schedules):
        with _at(f"schedules[{number}]."):
            check_schedule(schedule, types, database, before.get(schedule.id))
            if schedule.id in seen:
                raise InvalidInput(f"The id {schedule.id!r} is there twice.", field="id")
        seen.add(schedule.id)
    return file.schedules


def check_schedule(
    schedule: Schedule, types: Types, database: Database, before: Schedule | None = None
) -> dict[str, Any]:
    """Checks one schedule, and returns its arguments as the type has them.

    What makes no sense for the database any more keeps nobody from storing it once more with others, or from
    disabling it.
    """
    if not _ID.fullmatch(schedule.id):
        raise InvalidInput(
            "An id has 1 to 100 letters, digits, dots, hyphens and underscores, and begins with a letter or "
            "a digit.",
            field="id",
        )
    check_expression(schedule.schedule)
    found = types.get(schedule.task_type)
    if found is None or not found.value.trigger:
        raise InvalidInput(
            f"There is no task type {schedule.task_type[:64]!r} that a schedule may start.",
            field="task_type",
            task_types=sorted(name for name, one in types.items() if one.value.trigger),
        )
    with _at("args."):
        task_type, configuration = found.value, found.context.configuration
        if before is not None and schedule in (before, msgspec.structs.replace(before, enabled=False)):
            return normalized(task_type, schedule.args, configuration)
        return checked(task_type, schedule.args, configuration, database)


def readable_schedules(content: bytes, note: Callable[[str], None]) -> list[Schedule]:
    """Returns what can be read of a file that may have come by a way that checks nothing.

    ``note`` is called with a sentence for each part that is left out.
    """
    try:
        raw = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        note("/.config/cron.json is not valid JSON: no schedule runs")
        return []
    items = raw.get("schedules") if isinstance(raw, dict) else None
    if not isinstance(items, list):
        note("/.config/cron.json has no list of schedules: none runs")
        return []
    found: dict[str, Schedule] = {}
    for number, item in enumerate(items[:MAXIMUM_SCHEDULES]):
        try:
            schedule = msgspec.convert(item, Schedule)
            if not _ID.fullmatch(schedule.id):
                raise InvalidInput("its id is not valid")
            check_expression(schedule.schedule)
        except (msgspec.ValidationError, SvcError) as error:
            note(f"schedule {number} of /.config/cron.json does not run: {error}")
            continue
        found.setdefault(schedule.id, schedule)
    return list(found.values())


class _at:  # noqa: N801 - reads as a statement
    """Puts a place before the field of an error."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SvcError):
            field = error.details.get("field", "")
            if field != self._place.rstrip("."):
                error.details["field"] = f"{self._place}{field}".rstrip(".")
