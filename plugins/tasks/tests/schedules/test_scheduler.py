"""The scheduler: no run is lost or doubled, whatever happens to the clock and to the server."""

from __future__ import annotations

import json
import random
from datetime import datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from svc_tasks.api import list_tasks
from svc_tasks.models import Schedule
from svc_tasks.queue import Queue, finished
from svc_tasks.records import LAST_RUNS, SCHEDULES, LastRun, encode, last_run_file
from svc_tasks.schedules.configuration import CRON
from svc_tasks.schedules.scheduler import LATE_MS, SET_BACK_MS, TOGETHER, Scheduler
from svc_tasks.schedules.store import CronStore

from svc.errors import InvalidInput
from svc.plugin import read_record

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Clock:
    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class Bench:
    """A scheduler with a clock of its own, and the times at which tasks were made."""

    def __init__(self, work: Any, zone: str = "UTC", start: str = "2026-06-01T00:00:30") -> None:
        self.work = work
        self.zone = zone
        self.clock = Clock(
            int(datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000
        )
        self.runs: list[int] = []
        self.is_chosen = True
        self.restart()

    def restart(self) -> None:
        self.scheduler = Scheduler(
            self.work.database, lambda: self.work.types, self.zone, self.clock, lambda: self.is_chosen
        )

    def runs_of(self, schedule_id: str) -> list[str]:
        """The tasks that a schedule has started."""
        return [one.id for one in list_tasks(self.work.database) if one.schedule_id == schedule_id]

    def store(self, *schedules: dict[str, Any]) -> None:
        with self.work.database.transaction() as changes:
            content = json.dumps({"schedules": schedules}).encode()
            changes.put(CRON.path, content, updated_ms=self.clock.now)

    def look(self, forward: int = MINUTE) -> int:
        """Lets time pass, looks, and ends what was enqueued; returns how many tasks were."""
        self.clock.now += forward
        made = self.scheduler.check()
        queue = Queue(self.work.database)
        for task_id in made:
            queue.change(task_id, lambda task: finished(task, "completed"), "end")
            self.runs.append(self.clock.now)
        return len(made)

    def local(self) -> list[str]:
        zone = ZoneInfo(self.zone)
        return [datetime.fromtimestamp(one / 1000, zone).strftime("%d %H:%M") for one in self.runs]


@pytest.fixture
def bench(work: Any) -> Bench:
    return Bench(work)


NIGHTLY = {"id": "nightly", "task_type": "count", "schedule": "30 3 * * *", "args": {"to": 2}}
OFTEN = {"id": "often", "task_type": "babble", "schedule": "*/5 * * * *"}


def test_what_is_due_is_enqueued_once(bench: Bench) -> None:
    bench.store(NIGHTLY, OFTEN)
    assert sum(bench.look() for _ in range(60)) == 12
    made = list_tasks(bench.work.database)
    assert {task.schedule_id for task in made} == {"often"}
    while bench.clock.now % DAY < 4 * HOUR:
        bench.look(10 * MINUTE)
    (nightly,) = list_tasks(bench.work.database, "count")
    assert (nightly.args["to"], nightly.schedule_id, nightly.actor) == (2, "nightly", None)


def test_what_is_the_same_as_a_task_that_waits_is_not_enqueued_again(bench: Bench) -> None:
    bench.store(OFTEN)
    waiting = bench.work.add("babble")
    assert sum(bench.look() for _ in range(30)) == 0
    assert [task.id for task in list_tasks(bench.work.database)] == [waiting.id]
    Queue(bench.work.database).cancel(waiting.id)
    assert sum(bench.look() for _ in range(5)) == 1


def test_what_was_missed_while_nobody_looked_runs_once(bench: Bench) -> None:
    bench.store(OFTEN, NIGHTLY)
    bench.look()
    bench.restart()
    assert bench.look(3 * DAY) == 2
    assert bench.look(MINUTE) == 0


def test_restarts_at_any_time_lose_and_double_nothing(bench: Bench) -> None:
    bench.store(OFTEN)
    bench.look(1_000)
    chance = random.Random(3)
    begun = bench.clock.now
    total = 0
    while bench.clock.now < begun + 4 * HOUR:
        total += bench.look(chance.randrange(1_000, 2 * MINUTE))
        if chance.random() < 0.5:
            bench.restart()
    assert total == 48


def test_two_schedulers_at_once_enqueue_it_once(bench: Bench) -> None:
    bench.store(OFTEN)
    bench.look(1_000)
    other = Scheduler(bench.work.database, lambda: bench.work.types, "UTC", bench.clock)
    for _ in range(12):
        bench.look(5 * MINUTE)
        assert other.check() == []
    assert len(bench.runs) == 12


@pytest.mark.parametrize(
    ("start", "runs"),
    [
        ("2026-10-24T12:00:10", ["25 02:30", "26 02:30"]),
        ("2026-03-28T12:00:10", ["29 03:00", "30 02:30"]),
    ],
)
def test_a_nightly_run_comes_once_on_the_days_when_the_clock_changes(
    work: Any, start: str, runs: list[str]
) -> None:
    bench = Bench(work, "Europe/Berlin", start)
    bench.store({**NIGHTLY, "schedule": "30 2 * * *"})
    for _ in range(2 * 24 * 6):
        bench.look(10 * MINUTE)
        bench.restart()
    assert [one[:5] for one in bench.local()] == [one[:5] for one in runs]
    assert bench.local() == runs


def test_a_clock_that_is_set_back_doubles_nothing(bench: Bench) -> None:
    bench.store(OFTEN)
    assert sum(bench.look() for _ in range(60)) == 12
    bench.clock.now -= HOUR
    assert sum(bench.look() for _ in range(60)) == 0
    assert sum(bench.look() for _ in range(60)) == 12


def test_a_clock_that_was_wrong_by_years_does_not_stop_schedules(bench: Bench) -> None:
    bench.store(OFTEN)
    bench.look()
    assert bench.look(4 * 365 * DAY) == 1
    bench.clock.now -= 4 * 365 * DAY
    assert SET_BACK_MS < 365 * DAY
    assert sum(bench.look() for _ in range(61)) == 12


def test_a_schedule_that_is_changed_or_new_makes_up_for_nothing_before_it(bench: Bench) -> None:
    bench.clock.now += 12 * HOUR
    bench.store({**OFTEN, "schedule": "0 3 * * *"})
    bench.look()
    bench.clock.now += MINUTE
    bench.store({**OFTEN, "schedule": "0 4 * * *"})
    assert sum(bench.look() for _ in range(10)) == 0
    bench.clock.now += DAY
    assert sum(bench.look() for _ in range(3)) == 1


def test_a_schedule_begins_when_its_file_was_stored_though_nobody_looked_yet(bench: Bench) -> None:
    """Stored 40 seconds before it is due, looked at 50 seconds later."""
    bench.clock.now += 5 * MINUTE - bench.clock.now % (5 * MINUTE) - 40_000
    bench.store(OFTEN)
    assert bench.look(50_000) == 1
    assert bench.look(50_000) == 0


def test_a_file_that_says_it_is_old_makes_up_for_nothing(bench: Bench) -> None:
    bench.store(OFTEN)
    bench.clock.now += DAY + LATE_MS
    bench.clock.now += 5 * MINUTE - bench.clock.now % (5 * MINUTE) + LATE_MS + MINUTE
    assert bench.look(0) == 0


def test_a_disabled_schedule_starts_nothing_and_makes_up_for_nothing(bench: Bench) -> None:
    bench.store(OFTEN)
    assert sum(bench.look() for _ in range(5)) == 1
    bench.store({**OFTEN, "enabled": False})
    assert sum(bench.look() for _ in range(20)) == 0
    assert list(bench.work.database.system().entries(SCHEDULES)) == []
    bench.store(OFTEN)
    assert sum(bench.look() for _ in range(5)) == 1


def test_one_that_cannot_start_its_task_keeps_no_other_back(bench: Bench, caplog: Any) -> None:
    content = {
        "schedules": [{"id": "1", "task_type": "bad-check", "schedule": "* * * * *"}, OFTEN, 7, {"id": "x"}]
    }
    # As an import brings it, which checks nothing.
    bench.work.database.use_content_checks([])
    with bench.work.database.transaction() as changes:
        changes.put(CRON.path, json.dumps(content).encode(), updated_ms=bench.clock.now)
    assert sum(bench.look() for _ in range(10)) == 2
    told = [record.fields["reason"] for record in caplog.records if record.message == "schedule"]
    assert len(told) == 3
    assert told[0].startswith("schedule 2 of /.config/cron.json does not run")


def test_a_run_whose_type_is_away_is_made_up_for_when_it_is_back(bench: Bench) -> None:
    bench.store(OFTEN)
    bench.look(1_000)
    types, bench.work.types = bench.work.types, {}
    assert bench.look(HOUR) == 0
    bench.work.types = types
    assert bench.look(MINUTE) == 1
    assert bench.look(MINUTE) == 0


def test_what_is_added_while_no_server_runs_begins_then(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr("svc_tasks.schedules.store.now_ms", bench.clock)
    store = CronStore(bench.work.database, bench.work.types, "UTC")
    store.add(Schedule(id="nightly", task_type="count", schedule="30 3 * * *"))
    assert bench.look(2 * DAY) == 1


def test_many_that_are_due_at_once_are_few_commits(bench: Bench) -> None:
    count = 2 * TOGETHER + 1
    bench.store(
        *(
            {**OFTEN, "id": str(number), "task_type": "count", "args": {"to": number + 1}}
            for number in range(count)
        )
    )
    bench.look(1_000)
    before = bench.work.database.head().sequence
    bench.clock.now += 5 * MINUTE
    made = bench.scheduler.check()
    assert len(made) == len(set(made)) == count
    assert bench.work.database.head().sequence - before == 3
    assert {task.schedule_id for task in list_tasks(bench.work.database)} == {
        str(number) for number in range(count)
    }
    assert bench.scheduler.check() == []


def test_schedules_of_the_same_work_enqueue_it_once(bench: Bench) -> None:
    bench.store(OFTEN, {**OFTEN, "id": "as-often"}, {**NIGHTLY, "schedule": "*/5 * * * *"})
    bench.look(1_000)
    bench.clock.now += 5 * MINUTE
    assert len(bench.scheduler.check()) == 2
    store = CronStore(bench.work.database, bench.work.types, "UTC")
    last = {one.id: store.answer(one).last_task_id for one in store.schedules()}
    assert last["often"] == last["as-often"] != last["nightly"]


def test_when_others_change_one_of_many_the_rest_is_enqueued_all_the_same(
    bench: Bench, monkeypatch: Any
) -> None:
    bench.store(OFTEN, {**NIGHTLY, "schedule": "*/5 * * * *"})
    bench.look(1_000)
    bench.clock.now += 5 * MINUTE
    other = Scheduler(bench.work.database, lambda: bench.work.types, "UTC", bench.clock)
    want, raced = Queue.want, []

    def want_late(self: Queue, task_type: str, *args: Any, **kwargs: Any) -> Any:
        wanted = want(self, task_type, *args, **kwargs)
        if not raced and task_type == "babble":
            raced.append(True)
            raced.extend(other.check())
        return wanted

    monkeypatch.setattr(Queue, "want", want_late)
    made = bench.scheduler.check()
    assert len(raced) == 3
    assert made == []
    assert len(list_tasks(bench.work.database)) == 2


class Clocks:
    """The two clocks of a process, and the events of a job that looks at them."""

    def __init__(self) -> None:
        self.wall = 1_790_000_000.0
        self.steady = 500.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def go(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def test_the_job_looks_each_minute_and_at_once_when_the_clock_was_moved(
    bench: Bench, monkeypatch: Any
) -> None:
    import schedule
    from svc_tasks.schedules import job as home

    clocks = Clocks()
    looks: list[float] = []

    class Now(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(clocks.wall, tz)

    monkeypatch.setattr(home, "time", clocks)
    monkeypatch.setattr(schedule.datetime, "datetime", Now)
    monkeypatch.setattr(Scheduler, "check", lambda self: looks.append(clocks.steady))

    class Context:
        database = bench.work.database
        configuration = None

    job = home.SchedulerJob()

    def run(seconds: int) -> int:
        before = len(looks)
        for _ in range(seconds):
            job.run(Context())
            clocks.go(1)
        return len(looks) - before

    assert run(121) == 3
    clocks.wall -= 400 * 86_400
    assert run(61) == 2
    clocks.wall += 800 * 86_400
    assert run(61) == 2


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"", "schedules"),
        (b"[]", "schedules"),
        (b"{}", "schedules"),
        ({"schedules": {}}, "schedules"),
        ({"schedules": [], "more": 1}, "more"),
        ({"schedules": [{"id": "a"}]}, "schedules[0]"),
        ({"schedules": [{**OFTEN, "id": "../a"}]}, "schedules[0].id"),
        ({"schedules": [{**OFTEN, "schedule": "x"}]}, "schedules[0].schedule"),
        ({"schedules": [{**OFTEN, "schedule": "* * * * * *"}]}, "schedules[0].schedule"),
        ({"schedules": [OFTEN, OFTEN]}, "schedules[1].id"),
        ({"schedules": [{**OFTEN, "task_type": "none"}]}, "schedules[0].task_type"),
        ({"schedules": [{**OFTEN, "task_type": "hidden"}]}, "schedules[0].task_type"),
        ({"schedules": [{**NIGHTLY, "args": {"to": "x"}}]}, "schedules[0].args.to"),
        ({"schedules": [{**OFTEN, "task_type": "bad-check"}]}, "schedules[0].args"),
        ({"schedules": [{**OFTEN, "enabled": 1}]}, "schedules[0].enabled"),
        ({"schedules": [{**OFTEN, "id": f"s{number}"} for number in range(1_001)]}, "schedules"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_and_the_old_one_stays(
    bench: Bench, content: Any, field: str
) -> None:
    from svc_tasks.schedules.configuration import parse_cron_file

    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(InvalidInput) as refused:
        parse_cron_file(raw, bench.work.types, bench.work.database)
    assert field in refused.value.details["field"] or field in refused.value.message


class TestOneNode:
    """A schedule that one node of a cluster runs."""

    ONCE: ClassVar = {"id": "s", "task_type": "count", "schedule": "*/10 * * * *", "runs_on": "one_node"}

    @pytest.fixture
    def bench(self, work: Any) -> Bench:
        made = Bench(work)
        made.is_chosen = False
        made.restart()
        made.store(self.ONCE, {**self.ONCE, "id": "each", "args": {"to": 2}, "runs_on": "each_node"})
        return made

    def test_another_node_runs_it(self, bench: Bench) -> None:
        assert bench.look() == 0
        assert bench.look(10 * MINUTE) == 1, "the other schedule"
        assert bench.runs_of("s") == []

    def test_who_takes_over_makes_up_for_what_nobody_ran(self, bench: Bench) -> None:
        bench.look()
        bench.look(HOUR)
        bench.is_chosen = True
        assert bench.look() == 1
        assert len(bench.runs_of("s")) == 1
        assert bench.look() == 0

    def test_who_takes_over_leaves_what_the_other_ran(self, bench: Bench) -> None:
        bench.look()
        bench.clock.now += HOUR
        ran = LastRun(considered_until=bench.clock.now, schedule="*/10 * * * *", timezone="UTC")
        with bench.work.database.transaction() as changes:
            changes.put_system(last_run_file("s"), encode(ran))
        bench.is_chosen = True
        bench.look(0)
        assert bench.runs_of("s") == []
        bench.look(10 * MINUTE)
        assert len(bench.runs_of("s")) == 1

    def test_a_run_is_noted_for_the_others_and_forgotten_with_its_schedule(self, bench: Bench) -> None:
        bench.is_chosen = True
        bench.look()
        bench.look(10 * MINUTE)
        system = bench.work.database.system()
        ran = read_record(system, system.get(last_run_file("s")), LastRun)
        assert ran is not None
        assert ran.considered_until == bench.clock.now
        assert system.get(last_run_file("each")) is None
        bench.store()
        bench.look()
        assert list(bench.work.database.system().entries(LAST_RUNS)) == []

    def test_it_is_shown_where_it_runs(self, work: Any) -> None:
        for is_here in (True, False):
            store = CronStore(work.database, work.types, "UTC", lambda is_here=is_here: is_here)
            each = Schedule(id="s", task_type="count", schedule="* * * * *")
            assert store.answer(replace(each, runs_on="one_node")).runs_here is is_here
            assert store.answer(each).runs_here

    def test_another_word_is_refused(self, work: Any) -> None:
        with pytest.raises(InvalidInput):
            CRON.parse(json.dumps({"schedules": [{**self.ONCE, "runs_on": "all"}]}).encode(), lambda _: None)

    def test_a_file_without_it_stays_without_it(self, work: Any) -> None:
        CronStore(work.database, work.types, "UTC").add(
            Schedule(id="s", task_type="count", schedule="0 1 * * *")
        )
        assert b"runs_on" not in CRON.read(work.database.at())
