"""Tasks of a real server and of real background processes, which are killed and whose clocks are moved."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from svc_tasks.api import Task, list_tasks
from svc_tasks.records import SCHEDULES, ScheduleState

from long_runs import Extent
from svc.database import Database, read_record
from svc.plugins import Plugins, enable, initialize
from svc_testing import DistributionFactory, Server, start_server
from svc_testing.processes import svc_command

EXTENT = Extent("TASKS")
LIBRARY = Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH")) / "faketime" / "libfaketimeMT.so.1"
BERLIN = ZoneInfo("Europe/Berlin")
JSON = {"Content-Type": "application/json"}
MINUTE = 60_000


def wait_for(holds: Callable[[], Any], seconds: float = 60) -> Any:
    """Asks until the answer is true, and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


@contextmanager
def background(
    path: Path, strange: DistributionFactory, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A background process of its own; killed at the end if it runs still."""
    process = subprocess.Popen(
        [*svc_command(), "background", "-D", str(path)],
        env=strange.environment({**os.environ, **(variables or {})}),
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def made(path: Path, plugins: Plugins, **settings: Any) -> Database:
    database = Database(path)
    assert initialize(database, plugins) == ()
    if settings:
        enable(database, plugins, "tasks", settings)
    return database


def names(database: Database, name: str) -> list[str]:
    if database.at().get(("counted", name)) is None:
        return []
    return [entry for entry, _ in database.at().entries(("counted", name))]


def gets_on(database: Database, last_run: int | None, least: int) -> bool:
    """Whether a further run of the only task has done something."""
    (present,) = list_tasks(database)
    is_new = present.status != "pending" and present.started_at != last_run
    return is_new and (present.is_finished or len(names(database, "count")) > least)


def add(database: Database, kind: str, **args: Any) -> Task:
    from acme_strange import types
    from svc_tasks.api import enqueue

    task_type = next(one() for one in types.TYPES if one.name == kind)
    return enqueue(database, task_type, args)


@pytest.mark.timeout(120 * max(1, EXTENT.scale))
def test_a_background_process_that_is_killed_in_the_middle_loses_and_skips_nothing(
    tmp_path: Path, plugins: Plugins, strange: DistributionFactory
) -> None:
    """By SIGKILL, at random moments: the task goes on behind its last checkpoint."""
    chance = random.Random(EXTENT.seed)
    kills = EXTENT.scaled(5)
    length = 150
    with made(tmp_path / "killed.svcdb", plugins) as database:
        path = database.path
        task = add(database, "count", to=length, batch=1, pause=0.01)
        last_run: int | None = None
        for _ in range(kills):
            with background(path, strange) as process:
                wait_for(partial(gets_on, database, last_run, len(names(database, "count"))))
                time.sleep(chance.random() * 0.3)
                process.send_signal(signal.SIGKILL)
                process.wait()
            (present,) = list_tasks(database)
            assert present.status in {"running", "completed"}, present
            last_run = present.started_at
            if present.status == "completed":
                # Long runs need further tasks.
                assert names(database, "count") == [f"{one:06}" for one in range(length)]
                with database.transaction() as changes:
                    changes.delete(("counted", "count"), recursive=True)
                    changes.delete_system(("tasks", "records", task.id))
                task = add(database, "count", to=length, batch=1, pause=0.01)
        with background(path, strange):
            wait_for(lambda: list_tasks(database)[0].is_finished)
        (end,) = list_tasks(database)
        assert (end.status, end.result, end.id) == ("completed", {"counted": length}, task.id)
        assert names(database, "count") == [f"{one:06}" for one in range(length)]


def test_no_process_of_a_task_outlives_its_background_process(
    tmp_path: Path, plugins: Plugins, strange: DistributionFactory
) -> None:
    with made(tmp_path / "orphan.svcdb", plugins) as database:
        add(database, "hang")
        with background(database.path, strange) as process:
            children = wait_for(lambda: children_of(process.pid))
            wait_for(lambda: all(Path(f"/proc/{one}/comm").read_text() == "svc-task\n" for one in children))
            process.kill()
            process.wait()
        wait_for(lambda: not any(is_alive(one) for one in children))


def children_of(pid: int) -> list[int]:
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += [int(one) for one in (thread / "children").read_text().split()]
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_an_orderly_end_lets_the_task_wait_and_costs_no_attempt(
    tmp_path: Path, plugins: Plugins, strange: DistributionFactory
) -> None:
    with made(tmp_path / "orderly.svcdb", plugins) as database:
        add(database, "count", to=100_000, pause=0.02)
        for least in (0, 20):
            with background(database.path, strange) as process:
                wait_for(lambda least=least: len(names(database, "count")) > least)
                process.terminate()
                assert process.wait(30) == 0
            (left,) = list_tasks(database)
            assert (left.status, left.attempts) == ("pending", 0)
            assert left.checkpoint == len(names(database, "count"))


class MovedClock:
    """The clocks of the processes that have its variables; it is moved between them, not while one runs.

    libfaketime can't leave the monotonic clock alone for who sleeps by it, nor fake it for who waits by it.
    """

    def __init__(self, file: Path) -> None:
        assert LIBRARY.exists(), "libfaketime is not installed: run tests/system_packages.py"
        self._file = file
        self.variables = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "0",
            "NO_FAKE_STAT": "1",
        }

    def set(self, time_ms: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{time_ms // 1000 - int(time.time()):+d}")
        new.replace(self._file)


@pytest.mark.parametrize("due", ["2027-03-28T03:00", "2027-10-31T02:30"], ids=["spring", "autumn"])
def test_a_server_runs_a_schedule_once_on_the_days_when_the_clock_changes(
    tmp_path: Path, plugins: Plugins, strange: DistributionFactory, due: str
) -> None:
    """Background processes are killed and started through the night, each with a later clock."""
    due_ms = int(datetime.fromisoformat(due).replace(tzinfo=BERLIN).timestamp() * 1000)
    schedules = [
        {"id": "night", "task_type": "babble", "schedule": "30 2 * * *"},
        # It is due at every look, so its state says when the last one was.
        {"id": "mark", "task_type": "tell", "schedule": "* * * * *"},
    ]
    clock = MovedClock(tmp_path / "clock")
    runs = []
    with made(tmp_path / "moved.svcdb", plugins, timezone="Europe/Berlin") as database:
        with database.transaction() as changes:
            changes.put((".config", "cron.json"), json.dumps({"schedules": schedules}).encode(), updated_ms=1)

        # In autumn the same time of the day comes again, an hour later.
        for minutes in (-20, 5, 65):
            now = due_ms + minutes * MINUTE
            clock.set(now)
            with background(database.path, strange, clock.variables):
                wait_for(lambda now=now: marked(database) >= now)
            night = state_of(database, "night")
            runs.append(night is not None and night.last_run_at is not None)
        assert runs == [False, True, True]
        assert [one.schedule_id for one in list_tasks(database, "babble")] == ["night"]
        night = state_of(database, "night")
        assert night is not None
        assert due_ms + 5 * MINUTE <= (night.last_run_at or 0) < due_ms + 7 * MINUTE


def marked(database: Database) -> int:
    state = state_of(database, "mark")
    return 0 if state is None else state.last_run_at or 0


def state_of(database: Database, name: str) -> ScheduleState | None:
    system = database.system()
    return read_record(system, system.get((*SCHEDULES, name)), ScheduleState)


@contextmanager
def serving(path: Path, strange: DistributionFactory, *options: str) -> Iterator[Server]:
    """A server with a background process."""
    plugins: Sequence[str] = ("files", "tasks", "acme.strange")
    environment = {name: value for name, value in os.environ.items() if name.startswith("SVC_TEST_")}
    with start_server(
        path,
        *("--background", "true", *options),
        plugins=plugins,
        env=strange.environment(environment),
    ) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, strange: DistributionFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("served") / "served.svcdb"
    with serving(path, strange, "--workers", "2") as running:
        yield running


def send(server: Server, method: str, path: str, value: Any = None) -> Any:
    body = None if value is None else msgspec.json.encode(value)
    answer = server.request(method, path, body=body, headers=JSON if body else {})
    assert answer.status < 300, answer
    return answer.json()


def finished_of(server: Server, task: Any) -> Any:
    def ask() -> Any:
        found = send(server, "GET", f"/system/tasks/{task['id']}")
        return found if found["status"] in {"completed", "failed", "cancelled"} else None

    return wait_for(ask)


def test_every_worker_shows_the_progress_of_a_task(server: Server) -> None:
    task = send(server, "POST", "/system/tasks/count", {"to": 300, "pause": 0.02, "name": "shown"})
    seen: list[Any] = []

    def is_seen_often() -> bool:
        found = send(server, "GET", f"/system/tasks/{task['id']}")
        if found.get("progress", {}).get("indexed_count"):
            seen.append(found["progress"])
        return len(seen) >= 8

    wait_for(is_seen_often)
    assert seen[-1]["total_count"] == 300
    counts = [one["indexed_count"] for one in seen]
    assert counts == sorted(counts)
    assert send(server, "DELETE", f"/system/tasks/{task['id']}")["cancel_requested"]
    assert finished_of(server, task)["status"] == "cancelled"


def test_what_a_stranger_does_wrong_leaves_the_server_alone(server: Server) -> None:
    bad = [send(server, "POST", f"/system/tasks/{name}") for name in ("raise", "crash", "exit")]
    good = send(server, "POST", "/system/tasks/count", {"to": 3, "name": "good"})
    assert finished_of(server, good)["status"] == "completed"
    assert send(server, "GET", "/files/counted/good/000002") == 2
    assert finished_of(server, bad[0])["error"] == "RuntimeError: the moon is full"
    send(server, "DELETE", f"/system/tasks/{bad[1]['id']}")
    for one in bad[1:]:
        assert finished_of(server, one)["status"] in {"failed", "cancelled"}
    assert send(server, "GET", "/system/health")["status"] == "degraded"
    told = finished_of(server, send(server, "POST", "/system/tasks/tell"))["result"]
    assert set(told["plugins"].split(",")) >= {"files", "tasks", "acme.strange"}


def test_the_limit_of_entries_that_the_server_was_told_holds_for_tasks(
    tmp_path: Path, strange: DistributionFactory
) -> None:
    with serving(tmp_path / "x.svcdb", strange, "--max-tree-entries", "8") as server:
        done = finished_of(server, send(server, "POST", "/system/tasks/count", {"to": 4}))
        assert done["status"] == "completed"
        refused = finished_of(server, send(server, "POST", "/system/tasks/count", {"to": 9}))
        assert refused["status"] == "failed"
        assert "8" in refused["error"]


def test_a_schedule_is_stored_as_a_file_and_seen_by_the_routes(server: Server) -> None:
    content = {"schedules": [{"id": "a", "task_type": "babble", "schedule": "0 0 1 1 *"}]}
    send(server, "PUT", "/files/.config/cron.json", content)
    (found,) = send(server, "GET", "/system/cron")["schedules"]
    assert (found["id"], len(found["next_runs"])) == ("a", 3)
    refused = server.request("PUT", "/files/.config/cron.json", body=b'{"schedules": [{}]}', headers=JSON)
    assert refused.status == 400
    assert send(server, "DELETE", "/system/cron/a")["deleted"]
    assert send(server, "GET", "/files/.config/cron.json") == {"schedules": []}
