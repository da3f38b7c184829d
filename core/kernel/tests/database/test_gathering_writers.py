"""Who leads a commit lets those come along who were answered with the last one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from svc.database import Database
from svc.executor import Executor


class Gathering(Executor):
    """Lets some writers begin while a leader waits for the loop, and notes how often one did."""

    def __init__(self) -> None:
        self.waits = 0
        self.meanwhile = lambda: None

    def wait_until_idle(self, seconds: float) -> None:
        self.waits += 1
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()


@pytest.fixture
def executor() -> Gathering:
    return Gathering()


@pytest.fixture
def database(tmp_path: Path, executor: Gathering):
    with Database(tmp_path / "gathering.svcdb", executor=executor) as opened:
        yield opened


def put(database: Database, name: str) -> None:
    with database.transaction() as transaction:
        transaction.put((name,), name.encode())


def put_together(database: Database, names: list[str]) -> list[threading.Thread]:
    """Begins puts, and returns when all of them wait for a commit."""
    threads = [threading.Thread(target=put, args=(database, name)) for name in names]
    for thread in threads:
        thread.start()
    committer = database._committer
    while len(committer._queue) < len(names):
        threading.Event().wait(0.001)
    return threads


def commit_together(database: Database, names: list[str]) -> None:
    """Makes one commit of some puts: they wait while somebody else has the lock."""
    with database._state.commit_lock():
        threads = put_together(database, names)
    for thread in threads:
        thread.join(20)


def test_one_writer_never_waits_for_others(database, executor) -> None:
    for number in range(5):
        put(database, str(number))
    assert executor.waits == 0
    assert database.head().sequence == 5


def test_a_leader_waits_for_those_who_were_answered_with_the_last_batch(database, executor) -> None:
    commit_together(database, ["a", "b", "c"])
    before = database.head().sequence
    begun: list[threading.Thread] = []

    def others_come() -> None:
        threads = [threading.Thread(target=put, args=(database, name)) for name in ("e", "f")]
        for thread in threads:
            thread.start()
        while len(database._committer._queue) < 3:
            threading.Event().wait(0.001)
        begun.extend(threads)

    executor.meanwhile = others_come
    put(database, "d")
    for thread in begun:
        thread.join(20)
    assert executor.waits == 1
    assert database.head().sequence == before + 1
    assert database.totals().files == 6


def test_where_nobody_comes_the_next_leader_does_not_wait(database, executor) -> None:
    commit_together(database, ["a", "b", "c"])
    put(database, "d")
    put(database, "e")
    assert executor.waits == 1


def test_where_another_process_commits_nobody_waits_for_the_loop(database, executor) -> None:
    commit_together(database, ["a", "b", "c"])
    with database._state.commit_lock():
        thread = put_together(database, ["d"])[0]
    thread.join(20)
    assert executor.waits == 0
    assert database.totals().files == 4
