"""When an expression is due: functions of instants and of the time zone, with its daylight saving time.

What names an hour is due once on each day, also where the clock shows that hour twice; where it does not show
it, it is due right behind the gap. What recurs within hours goes on through both changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from svc.errors import InvalidInput

__all__ = ["check_expression", "due_after", "next_times", "time_zone"]

MAXIMUM_EXPRESSION = 200
_FIELDS = 5
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=64)
def time_zone(name: str) -> ZoneInfo:
    """Returns a time zone by its name in the IANA database."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"There is no time zone {name[:64]!r}.", field="timezone") from None


@lru_cache(maxsize=1_024)
def check_expression(expression: str) -> None:
    """Checks a cron expression of five fields: minute, hour, day of month, month, day of week.

    Raises InvalidInput also for one that is never due.
    """
    fields = expression.split()
    if len(fields) != _FIELDS or len(expression) > MAXIMUM_EXPRESSION:
        raise InvalidInput(
            "A schedule has five fields: minute, hour, day of month, month, day of week.", field="schedule"
        )
    try:
        next(CronSim(expression, _SOME_DAY))
    except CronSimError as error:
        raise InvalidInput(f"The schedule {expression!r} is not valid: {error}.", field="schedule") from None
    except StopIteration:
        raise InvalidInput(f"The schedule {expression!r} is never due.", field="schedule") from None


def due_after(expression: str, zone: ZoneInfo, after_ms: int) -> Iterator[int]:
    """Yields when an expression is due after an instant, in order, Unix milliseconds."""
    start = datetime.fromtimestamp(after_ms // 1000, UTC).astimezone(zone)
    last = after_ms
    for due in CronSim(expression, start.astimezone(UTC) if zone.key == "UTC" else start):
        due_ms = round(due.timestamp()) * 1000
        # In an hour that comes twice, the library may begin again with the first.
        if due_ms > last:
            yield due_ms
            last = due_ms


def next_times(expression: str, timezone: str, after_ms: int, count: int = 3) -> list[int]:
    """Returns the next times that an expression is due, Unix milliseconds."""
    return list(islice(due_after(expression, time_zone(timezone), after_ms), count))
