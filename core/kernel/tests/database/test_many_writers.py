"""Threads, greenlets and processes write to one database at once, and nobody loses anything."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from svc.database import Condition, Database
from svc.errors import DatabaseClosed, PreconditionFailed


def count_up(database: Database, times: int) -> None:
    """Raises a counter file by compare-and-swap."""
    for _ in range(times):
        while True:
            version = database.at()
            entry = version.get(("counter",))
            assert entry is not None
            value = int(version.read_all(entry))
            try:
                with database.transaction() as transaction:
                    condition = Condition(if_match=(entry.hash.hex(),))
                    transaction.put(("counter",), str(value + 1).encode(), condition=condition)
                break
            except PreconditionFailed:
                continue


def counter(database: Database) -> int:
    entry = database.at().get(("counter",))
    assert entry is not None
    return int(database.at().read_all(entry))


def start_counter(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("counter",), b"0")


WRITER = """
import sys
from svc.database import Condition, Database
from svc.errors import PreconditionFailed

path, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Database(path) as database:
    for number in range(times):
        with database.transaction() as transaction:
            transaction.put((name, str(number)), f"{name} {number}".encode())
        while True:
            entry = database.at().get(("counter",))
            value = int(database.at().read_all(entry))
            try:
                with database.transaction() as transaction:
                    condition = Condition(if_match=(entry.hash.hex(),))
                    transaction.put(("counter",), str(value + 1).encode(), condition=condition)
                break
            except PreconditionFailed:
                continue
"""


def test_threads_share_syncs_and_lose_nothing(database: Database) -> None:
    start_counter(database)
    threads = [threading.Thread(target=count_up, args=(database, 10)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter(database) == 80
    # Every acknowledged state of the counter is a version of its own.
    values = set()
    for commit in database.commits():
        entry = database.at(commit.root).get(("counter",))
        assert entry is not None
        values.add(int(database.at().read_all(entry)))
    assert values == set(range(81))


def test_writers_that_do_not_meet_share_commits(database: Database) -> None:
    barrier = threading.Barrier(16)

    def write(name: str) -> None:
        barrier.wait()
        for number in range(20):
            with database.transaction() as transaction:
                transaction.put((name, str(number)), b"x")

    threads = [threading.Thread(target=write, args=(f"t{number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.totals().files == 320
    assert database.head().sequence < 320


def test_processes_write_at_once(path: Path) -> None:
    with Database(path) as database:
        start_counter(database)
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, "25"])
            for name in ("p0", "p1", "p2")
        ]
        count_up(database, 25)
        assert [writer.wait(60) for writer in writers] == [0, 0, 0]
        assert counter(database) == 100
        version = database.at()
        for name in ("p0", "p1", "p2"):
            assert version.entry_count((name,)) == 25
            entry = version.get((name, "24"))
            assert entry is not None and version.read_all(entry) == f"{name} 24".encode()


def test_two_openings_in_one_process_agree(path: Path) -> None:
    with Database(path) as first, Database(path) as second:
        start_counter(first)
        count_up(second, 3)
        count_up(first, 2)
        assert counter(second) == 5


def test_a_database_does_not_cross_a_fork(path: Path) -> None:
    with Database(path) as database:
        start_counter(database)
        child = os.fork()
        if child == 0:
            try:
                database.transaction()
            except DatabaseClosed:
                os._exit(17)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
        count_up(database, 1)


def test_a_closed_database_says_so(path: Path) -> None:
    database = Database(path)
    database.close()
    database.close()
    with pytest.raises(DatabaseClosed):
        database.head()


GREENLETS = """
from gevent import monkey
monkey.patch_all()
from svc.executor import use_executor
from svc_server.gevent_executor import GeventExecutor
use_executor(GeventExecutor())
import sys, gevent, time
from svc.database import Database

ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        gevent.sleep(0.0005)

with Database(sys.argv[1]) as database:
    ticker = gevent.spawn(tick)
    def write(name):
        for number in range(30):
            with database.transaction() as transaction:
                transaction.put((name, str(number)), b"x" * 100)
    jobs = [gevent.spawn(write, f"g{n}") for n in range(20)]
    gevent.joinall(jobs, raise_error=True)
    ticker.kill()
    assert database.totals().files == 600
    assert database.head().sequence < 600, database.head().sequence
    assert ticks > 10, ticks
print("done")
"""


def test_greenlets_write_at_once_and_the_loop_goes_on(path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", GREENLETS, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stdout == "done\n", result.stderr
