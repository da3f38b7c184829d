"""Writes that wait are bounded in number and in bytes; who comes too much is told when to come back."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.database import Database
from svc.database import committer as committer_module
from svc.errors import ServiceUnavailable


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


class HeldDisk:
    """A disk whose syncs wait until they are let through."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Event()
        self._passed = threading.Event()
        log = database.objects.log
        sync = log.sync

        def held_sync() -> None:
            self.reached.set()
            assert self._passed.wait(30)
            sync()

        monkeypatch.setattr(log, "sync", held_sync)

    def let_through(self) -> None:
        self._passed.set()


@pytest.fixture
def held(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldDisk]:
    disk = HeldDisk(database, monkeypatch)
    yield disk
    disk.let_through()


def put(database: Database, name: str, size: int = 10) -> None:
    with database.transaction() as transaction:
        transaction.put((name,), os.urandom(size), content_type="application/octet-stream")


def begin(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def waiting(database: Database, count: int) -> None:
    """Waits until so many transactions are in the queue."""
    tick = threading.Event()
    for _ in range(1000):
        if len(database._committer._queue) == count:
            return
        tick.wait(0.01)
    raise AssertionError("they did not come into the queue")


def test_over_the_bound_a_write_is_refused_with_a_time_and_those_before_it_are_done(
    database: Database, held: HeldDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer_module, "_MOST_WAITING", 3)
    threads = [begin(lambda: put(database, "first"))]
    assert held.reached.wait(20)
    for number in range(3):
        threads.append(begin(lambda number=number: put(database, f"waits{number}")))  # type: ignore[misc]
        waiting(database, number + 1)
    with pytest.raises(ServiceUnavailable) as refused:
        put(database, "too-much")
    assert 1 <= refused.value.details["retry_after"] <= 30
    held.let_through()
    for thread in threads:
        thread.join(20)
    assert sorted(name for name, _ in database.at().entries(())) == ["first", "waits0", "waits1", "waits2"]
    put(database, "too-much")
    assert database._committer._queued_bytes == 0


def test_the_bytes_that_wait_are_bounded_too(
    database: Database, held: HeldDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer_module, "_MOST_WAITING_BYTES", 50_000)
    threads = [begin(lambda: put(database, "first", 40_000))]
    assert held.reached.wait(20)
    threads.append(begin(lambda: put(database, "large", 40_000)))
    waiting(database, 1)
    with pytest.raises(ServiceUnavailable):
        put(database, "small", 20_000)
    held.let_through()
    for thread in threads:
        thread.join(20)
    assert database._committer._queued_bytes == 0
    put(database, "small")
    assert [name for name, _ in database.at().entries(())] == ["first", "large", "small"]


def test_what_is_larger_than_the_bound_is_taken_when_nothing_waits(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer_module, "_MOST_WAITING_BYTES", 10)
    put(database, "large", 50_000)
    assert database.at().get(("large",)) is not None


def test_the_time_to_come_back_follows_from_how_long_commits_take(database: Database) -> None:
    committer = database._committer

    def request() -> committer_module.CommitRequest:
        return committer_module.CommitRequest("HEAD", [], committer_module.PendingObjects())

    committer._queue.extend(request() for _ in range(committer_module._MOST_WAITING))
    told = []
    for seconds in (0.001, 1.0, 1000.0):
        committer._batch_seconds = seconds
        with pytest.raises(ServiceUnavailable) as refused:
            committer.submit(request())
        told.append(refused.value.details["retry_after"])
    committer._queue.clear()
    assert told == [1, committer_module._MOST_WAITING // committer_module._LARGEST_BATCH, 30]
