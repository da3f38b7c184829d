"""When schedules are due: both changes of daylight saving time, in whatever steps somebody looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svc_tasks.schedules.times import check_expression, due_after, next_times, time_zone

from svc.errors import InvalidInput

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = 60_000
DAY = 24 * 60 * MINUTE


def ms(text: str, zone: ZoneInfo = BERLIN, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp() * 1000)


def all_due(expression: str, since: int, until: int, zone: ZoneInfo = BERLIN) -> list[int]:
    return list(takewhile(lambda due: due <= until, due_after(expression, zone, since)))


def local(times: list[int], zone: ZoneInfo = BERLIN) -> list[str]:
    return [datetime.fromtimestamp(one / 1000, zone).strftime("%d %H:%M") for one in times]


def test_what_names_an_hour_that_comes_twice_is_due_once() -> None:
    """On 25 October 2026 the clock goes from 3 to 2."""
    since, until = ms("2026-10-24T12:00"), ms("2026-10-26T12:00")
    assert local(all_due("30 2 * * *", since, until)) == ["25 02:30", "26 02:30"]
    assert all_due("30 2 * * *", since, until)[0] == ms("2026-10-25T02:30")


def test_what_names_an_hour_that_does_not_come_is_due_behind_the_gap() -> None:
    """On 29 March 2026 the clock goes from 2 to 3."""
    since, until = ms("2026-03-28T12:00"), ms("2026-03-30T12:00")
    assert local(all_due("30 2 * * *", since, until)) == ["29 03:00", "30 02:30"]


@pytest.mark.parametrize(("day", "hours"), [("2026-10-25", 25), ("2026-03-29", 23), ("2026-06-01", 24)])
def test_what_recurs_within_an_hour_goes_on_through_both_changes(day: str, hours: int) -> None:
    since = ms(f"{day}T00:00") - 1
    until = since + hours * 60 * MINUTE
    assert len(all_due("*/10 * * * *", since, until)) == hours * 6
    assert len(all_due("0 * * * *", since, until)) == hours


EXPRESSIONS = [
    "30 2 * * *",
    "*/7 * * * *",
    "0 * * * *",
    "15,45 1-3 * * *",
    "5 2 25 10 *",
    "0 0 29 3 *",
    "59 2 * * 0",
]


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(["2026-10-25", "2026-03-29"]),
    st.lists(st.integers(1, 200), min_size=1, max_size=60),
)
def test_in_whatever_steps_somebody_looks_each_time_is_due_once(
    expression: str, day: str, steps: list[int]
) -> None:
    start = ms(f"{day}T00:00") - 1
    until = start + sum(steps) * MINUTE
    found: list[int] = []
    now = start
    for step in steps:
        before, now = now, now + step * MINUTE
        found += all_due(expression, before, now)
    assert found == all_due(expression, start, until)
    assert found == sorted(set(found))


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("day", ["2026-10-25", "2026-03-29"])
def test_who_looks_every_few_minutes_sees_each_time_once(expression: str, day: str) -> None:
    start = ms(f"{day}T00:00") - 1
    looks = [start + number * 5 * MINUTE for number in range(6 * 12)]
    found = [due for before, now in pairwise(looks) for due in all_due(expression, before, now)]
    assert found == all_due(expression, start, looks[-1])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_a_day_has_its_fixed_time_once_in_every_zone_for_years(zone: str) -> None:
    since = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)
    due = all_due("45 1 * * *", since, since + 3 * 365 * DAY, time_zone(zone))
    days = [datetime.fromtimestamp(one / 1000, time_zone(zone)).date() for one in due]
    assert all(later - earlier == timedelta(days=1) for earlier, later in pairwise(days))
    assert len(days) >= 3 * 365 - 1


def test_the_next_three_times() -> None:
    since = ms("2026-02-27T00:00", ZoneInfo("UTC"))
    assert local(next_times("0 12 29 2 *", "UTC", since), ZoneInfo("UTC")) == ["29 12:00"] * 3


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "0 0 0 * * *",
        "61 * * * *",
        "a b c d e",
        "0 0 31 2 *",
        "* * * * *" + " " * 300,
        "0 25 * * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "@daily",
    ],
)
def test_what_is_no_expression_of_five_fields_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_expression(expression)
    assert refused.value.details["field"] == "schedule"


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "a" * 1_000, "Europe\0"]
)
def test_a_time_zone_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        time_zone(name)
