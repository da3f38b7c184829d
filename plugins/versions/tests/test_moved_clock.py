"""Retention over years by a clock that is moved: five of them in some seconds, and restarts of a server."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from long_runs import Extent
from svc.plugin import Database
from svc_testing import Server, start_server

from .moved_clock import MovedClock, months_after  # noqa: TID252

BEGIN = datetime(2035, 1, 31, 23, 30, tzinfo=UTC)
END = datetime(2040, 3, 2, tzinfo=UTC)
"""Five years with the ends of all months and two leap years, around the last second that 32 bits can tell."""

EXTENT = Extent("LIFECYCLE")
STEPS = EXTENT.scaled(120)
SOME_MONTH_IS_SHORTER = timedelta(days=3, minutes=1)
"""A snapshot of the 31st may stay until the next month begins, where the month has no such day; the minute is
for the job, which has read the clock before the test does."""

Step = Callable[[datetime, dict[str, int]], dict[str, Any]]


@pytest.fixture
def clock(tmp_path: Path) -> MovedClock:
    return MovedClock(tmp_path / "clock")


@contextmanager
def living_through(path: Path, clock: MovedClock) -> Iterator[Step]:
    """Runs a process under the clock, which does a step when it is told to."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("five_years.py")), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **clock.environment()},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told, answers = process.stdin, process.stdout

    def step(at: datetime, change: dict[str, int]) -> dict[str, Any]:
        clock.set(at)
        told.write(json.dumps(change).encode() + b"\n")
        told.flush()
        line = answers.readline()
        assert line, "the process has ended"
        answer: dict[str, Any] = json.loads(line)
        moved_to = datetime.fromtimestamp(answer["now_ms"] / 1000, UTC)
        assert abs(moved_to - at) < timedelta(hours=1), "the clock of the process was moved"
        return answer

    try:
        yield step
    finally:
        told.close()
        process.kill()
        process.wait()
        answers.close()


def moments(generator: random.Random) -> list[datetime]:
    """Any times of five years, those around the ends of months, and leap days among them."""
    span = (END - BEGIN).total_seconds()
    found = [BEGIN + timedelta(seconds=generator.uniform(0, span)) for _ in range(STEPS)]
    month = BEGIN
    for number in range(62):
        month = months_after(BEGIN, number).replace(day=1, hour=0, minute=0)
        found.append(month + timedelta(hours=generator.choice([-25, -2, -1, 1, 23, 49])))
    found += [datetime(year, 2, 29, hour, tzinfo=UTC) for year in (2036, 2040) for hour in (1, 22)]
    return sorted(at for at in found if at >= BEGIN)


class Model:
    """What must be left, by the calendar alone."""

    def __init__(self) -> None:
        self.keeps = {"manual": 0, "automatic": 0}
        self.there: dict[str, datetime] = {}
        self.gone = 0

    def look(self, now: datetime, made: dict[str, int], left: set[str]) -> None:
        """Compares what is left with what must be, and what must not."""
        self.there |= {name: datetime.fromtimestamp(at / 1000, UTC) for name, at in made.items()}
        assert left <= set(self.there), "nothing comes back"
        for name, at in list(self.there.items()):
            months = self.keeps["manual" if name.startswith("manual-") else "automatic"]
            end = months_after(at, months)
            if not months or now <= end:
                assert name in left, f"{name} of {at} is gone at {now}, after less than {months} months"
            elif now > end + SOME_MONTH_IS_SHORTER:
                assert name not in left, f"{name} of {at} is still there at {now}, after {months} months"
            if name not in left:
                del self.there[name]
                self.gone += 1


def test_five_years_keep_each_snapshot_for_its_months_and_no_longer(
    tmp_path: Path, clock: MovedClock
) -> None:
    generator = random.Random(EXTENT.seed)
    times = moments(generator)
    model = Model()
    third = len(times) // 3
    with living_through(tmp_path / "five-years.svcdb", clock) as step:
        for number, at in enumerate(times):
            change: dict[str, int] = {}
            if number == 10:
                change = {"auto_months": 1, "manual_months": 12}
            elif number == third:
                change = {"auto_months": 3}  # what was to go in a month stays for three
            elif number == third * 2:
                change = {"manual_months": 6}  # what was to stay goes at once
            model.keeps["automatic"] = change.get("auto_months", model.keeps["automatic"])
            model.keeps["manual"] = change.get("manual_months", model.keeps["manual"])
            answer = step(at, change)
            # The process has the time that it answers with, and a little less.
            now = datetime.fromtimestamp(answer["now_ms"] / 1000, UTC)
            model.look(now, answer["made"], set(answer["left"]))
    assert model.gone > len(times), "most of the two snapshots of each step came to their end"
    assert model.there, "the last ones are left"


def test_a_clock_that_is_set_back_and_forth_deletes_nothing_before_its_time(
    tmp_path: Path, clock: MovedClock
) -> None:
    first, back = datetime(2036, 2, 29, 12, tzinfo=UTC), datetime(2035, 6, 1, tzinfo=UTC)
    with living_through(tmp_path / "back.svcdb", clock) as step:
        before = step(first, {"auto_months": 1, "manual_months": 1})["made"]
        after = step(back, {})
        assert set(before) <= set(after["left"])
        # What is made while the clock goes wrong is not dated before what was there.
        assert min(after["made"].values()) >= max(before.values())
        both = set(before) | set(after["made"])
        assert both <= set(step(datetime(2036, 3, 29, 11, tzinfo=UTC), {})["left"])
        assert not both & set(step(datetime(2036, 3, 29, 13, tzinfo=UTC), {})["left"])


def names_in(server: Server) -> set[str]:
    return {one["name"] for one in server.get("/versions/snapshots").json()["snapshots"]}


def send(server: Server, method: str, path: str, value: Any) -> Any:
    answer = server.request(
        method, path, body=msgspec.json.encode(value), headers={"Content-Type": "application/json"}
    )
    assert answer.status in (200, 201), answer.body
    return answer.json()


def test_a_server_keeps_to_the_settings_over_restarts_and_leap_days(
    database_path: Path, clock: MovedClock
) -> None:
    @contextmanager
    def running(at: datetime) -> Iterator[Server]:
        clock.set(at)
        options = ("--background", "true")
        with start_server(
            database_path, *options, plugins=("versions",), env=clock.environment(all_clocks=True)
        ) as server:
            yield server

    def wait_for(server: Server, expected: set[str]) -> None:
        for _ in range(200):
            if names_in(server) == expected:
                return
            time.sleep(0.05)
        assert names_in(server) == expected

    with running(datetime(2036, 1, 31, 12, tzinfo=UTC)) as server:
        settings = {"snapshot_retention": {"auto_months": 0, "manual_months": 1}}
        shown = send(server, "PUT", "/system/lifecycle", settings)
        assert shown["snapshot_retention"] == settings["snapshot_retention"]
        send(server, "POST", "/versions/snapshots", {"name": "january"})
    with running(datetime(2036, 2, 29, 12, tzinfo=UTC)) as server:
        with Database(database_path) as beside, beside.transaction() as transaction:
            transaction.put(("a",), b"1")
        send(server, "POST", "/versions/snapshots", {"name": "leap day"})
        assert names_in(server) == {"january", "leap day"}
    with running(datetime(2036, 3, 1, 13, tzinfo=UTC)) as server:
        wait_for(server, {"leap day"})
        assert server.get("/system/lifecycle").json()["snapshot_retention"]["manual_months"] == 1
    with running(datetime(2036, 3, 29, 13, tzinfo=UTC)) as server:
        wait_for(server, set())
