"""The task finds what is damaged, goes on where it was stopped, and health says so until it is repaired."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from svc_task_verify import task as tasks
from svc_task_verify.health import DamageCheck
from svc_task_verify.record import read_found
from svc_task_verify.task import VerifyTask
from svc_tasks.api import TaskStopped

from svc.errors import InvalidInput
from svc.plugin import Database, HealthStatus, collect

NOISE = random.Random(8).randbytes
Run = Callable[..., dict[str, Any]]
Make = Callable[..., Any]


def put(database: Database, **files: bytes) -> None:
    with database.transaction() as transaction:
        for name, content in files.items():
            transaction.put((name,), content)


def damage(database: Database, name: str) -> None:
    place = database.objects.find(database.at().get((name,)).hash)
    flip(database.path, place.offset + 90)


def flip(path: Path, offset: int) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def health(database: Database, check: DamageCheck | None = None) -> Any:
    return (check or DamageCheck()).check(SimpleNamespace(database=database))  # type: ignore[arg-type]


def test_what_is_well_is_said_to_be_well(database: Database, run: Run) -> None:
    put(database, a=NOISE(3000), b=NOISE(70_000))
    before = database.head()
    result = run()
    assert result["bytes"] == database.head().commit_end
    assert (result["damaged"], result["damaged_paths"], result["lost"]) == (0, [], 0)
    assert read_found(database) is None
    assert health(database).status is HealthStatus.HEALTHY
    assert database.head() == before, "nothing was written"


def test_damage_makes_health_degraded_until_it_is_stored_again(database: Database, run: Run) -> None:
    content = NOISE(300)
    put(database, a=content, b=content, c=b"well")
    damage(database, "a")
    result = run()
    assert (result["damaged"], sorted(result["damaged_paths"])) == (2, ["/a", "/b"])
    report = health(database)
    assert report.status is HealthStatus.DEGRADED
    assert sorted(report.details["paths"]) == ["/a", "/b"]
    assert "/a" not in report.message
    put(database, d=content)
    assert health(database).status is HealthStatus.HEALTHY
    assert run()["damaged"] == 0
    assert read_found(database) is None


def test_health_is_degraded_until_the_last_of_many_is_stored_again(database: Database, run: Run) -> None:
    contents = {f"f{number}": NOISE(300) for number in range(20)}
    put(database, **contents)
    hashes = {database.at().get((name,)).hash.hex(): name for name in contents}
    for name in contents:
        damage(database, name)
    assert run()["damaged"] == 20
    *others, last = (hashes[one] for one in sorted(hashes))
    put(database, **{f"again-{name}": contents[name] for name in others})
    assert health(database).status is HealthStatus.DEGRADED
    put(database, **{f"again-{last}": contents[last]})
    assert health(database).status is HealthStatus.HEALTHY


def test_a_damaged_commit_makes_health_degraded_until_it_is_repaired(database: Database, run: Run) -> None:
    for number in range(5):
        put(database, a=NOISE(300 + number))
    offset, length = database.objects.index.commit_places(2, 1)[0][1:]
    saved = database.path.read_bytes()[offset : offset + length]
    flip(database.path, offset + 100)
    result = run()
    assert (result["damaged"], result["damaged_paths"], result["damaged_commits"]) == (1, [], [3])
    report = health(database)
    assert report.status is HealthStatus.DEGRADED
    assert report.details["commits"] == [3]
    assert "database.damaged_commits" in {one.code for one in database.findings()}
    with open(database.path, "r+b") as file:
        file.seek(offset)
        file.write(saved)
    assert health(database).status is HealthStatus.HEALTHY
    assert run()["damaged"] == 0
    assert read_found(database) is None
    assert "database.damaged_commits" not in {one.code for one in database.findings()}


def test_health_looks_again_only_now_and_then(
    database: Database, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = NOISE(300)
    put(database, a=content)
    damage(database, "a")
    check = DamageCheck()
    assert health(database, check).status is HealthStatus.HEALTHY
    run()
    assert health(database, check).status is HealthStatus.DEGRADED
    put(database, b=content)
    assert health(database, check).status is HealthStatus.DEGRADED
    monkeypatch.setattr("svc_task_verify.health._LOOK_AGAIN_SECONDS", 0)
    assert health(database, check).status is HealthStatus.HEALTHY


@pytest.mark.parametrize("at", [1, 2, 3, 9, 20])
def test_a_run_that_is_stopped_goes_on_and_forgets_nothing(
    database: Database, context: Make, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(tasks, "_CHECKPOINT_SECONDS", 0.0)
    for number in range(40):
        put(database, **{f"f{number}": NOISE(40_000)})
    damage(database, "f0")
    monkeypatch.setattr(tasks, "_LARGEST_STEP", 1 << 16)
    first = context(bytes_per_second=1 << 40)

    def stop() -> None:
        if len(first.counts) >= at:
            raise TaskStopped

    first.on_step = stop
    with pytest.raises(TaskStopped):
        VerifyTask().run(first)
    later = context(first.checkpoint, bytes_per_second=1 << 40)
    result = VerifyTask().run(later)
    assert result["damaged_paths"] == ["/f0"]
    assert later.begun[0][1] == (first.checkpoint or {"end": 0})["end"]
    assert sum(later.counts) <= database.head().commit_end - later.begun[0][1] + 40


def test_no_more_is_read_than_the_rate_allows(database: Database, context: Make) -> None:
    put(database, a=NOISE(400_000))
    began = time.monotonic()
    VerifyTask().run(context(bytes_per_second=400_000))
    assert time.monotonic() - began >= 0.9


def test_the_walk_of_the_versions_keeps_to_the_rate_and_can_be_stopped(
    database: Database, context: Make
) -> None:
    with database.transaction() as transaction:
        for number in range(5_000):
            transaction.put((f"directory {number % 50}", f"a file with a long name {number}"), b"")
    size = database.head().commit_end
    whole = context(bytes_per_second=size)
    began = time.monotonic()
    VerifyTask().run(whole)
    # Nearly all of the log are directories: it is read once, and they are once more.
    assert time.monotonic() - began >= 1.7
    walk = time.monotonic() - whole.begun_at[1]
    stopped = context(bytes_per_second=size)

    def stop() -> None:
        if len(stopped.begun) == 2:
            raise TaskStopped

    stopped.check = stop
    with pytest.raises(TaskStopped):
        VerifyTask().run(stopped)
    assert time.monotonic() - stopped.begun_at[1] < walk / 2


def test_a_collection_between_two_steps_is_no_damage(
    database: Database, context: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        put(database, same=NOISE(30_000), other=str(number).encode() * 50)
    monkeypatch.setattr(tasks, "_LARGEST_STEP", 1 << 16)
    made = context(bytes_per_second=1 << 40)

    def disturb() -> None:
        if len(made.counts) in (3, 7):
            put(database, same=NOISE(30_000))
            collect(database, upload_hours=0)

    made.on_step = disturb
    assert VerifyTask().run(made)["damaged"] == 0


@pytest.mark.parametrize("value", [0, -1, 65_535, "fast", 1.5])
def test_a_rate_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        VerifyTask().normalize({"bytes_per_second": value}, None)
