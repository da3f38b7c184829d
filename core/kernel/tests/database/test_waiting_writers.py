"""Writers that wait for a shared commit: killed, interrupted, in threads and greenlets, in many batches."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Database
from svc.database.committer import CommitRequest, Committer
from svc.database.state import SharedState
from svc.errors import DatabaseClosed

KILLED_WAITER = """
from gevent import monkey
monkey.patch_all()
from svc.executor import use_executor
from svc_server.gevent_executor import GeventExecutor
use_executor(GeventExecutor())
import sys, time, gevent
from svc.log import Log
from svc.database import Database

sync = Log.sync
def slow(self):
    time.sleep(0.1)
    sync(self)

def put(database, name):
    with database.transaction() as transaction:
        transaction.put((name,), b"x")

with Database(sys.argv[1]) as database:
    put(database, "first")
    Log.sync = slow
    leader = gevent.spawn(put, database, "leader")
    gevent.sleep(0.02)
    waiters = [gevent.spawn(put, database, f"waiter{n}") for n in range(3)]
    gevent.sleep(0.02)
    gevent.sleep({later})
    waiters[0].kill()
    with gevent.Timeout(10):
        for job in (leader, *waiters):
            job.get()
        put(database, "last")
    names = [name for name, _ in database.at().entries(())]
    print(",".join(names))
"""


def run(script: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script of greenlets with the path of a database."""
    return subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=False
    )


def run_greenlets(path: Path, later: float) -> list[str]:
    code = KILLED_WAITER.replace("{later}", str(later))
    result = run(code, path)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip().split(",")


def test_a_greenlet_that_is_killed_while_it_waits_stops_nobody_behind_it(path: Path) -> None:
    names = run_greenlets(path, 0)
    assert set(names) == {"first", "leader", "waiter1", "waiter2", "last"}


def test_a_leader_that_is_killed_does_not_take_its_batch_with_it(path: Path) -> None:
    # The sync takes 100 ms: by now the first waiter leads the other two.
    names = run_greenlets(path, 0.12)
    assert set(names) == {"first", "leader", "waiter0", "waiter1", "waiter2", "last"}


LOCK_WAITER = """
from gevent import monkey
monkey.patch_all()
from svc.executor import use_executor
from svc_server.gevent_executor import GeventExecutor
use_executor(GeventExecutor())
import sys, gevent
from svc.database import Database

def put(database, name):
    with database.transaction() as transaction:
        transaction.put((name,), b"x")

with Database(sys.argv[1]) as holder, Database(sys.argv[1]) as database:
    put(database, "first")
    with holder._state.commit_lock():
        waiter = gevent.spawn(put, database, "waiter")
        gevent.sleep(0.05)
        waiter.kill()
    with gevent.Timeout(10):
        put(holder, "holder")
        put(database, "last")
print("done")
"""


def test_a_greenlet_that_is_killed_while_it_waits_for_another_process_leaves_no_lock(path: Path) -> None:
    result = run(LOCK_WAITER, path)
    assert result.stdout == "done\n", result.stderr


TWO_LEADERS = """
from gevent import monkey
monkey.patch_all()
from svc.executor import use_executor
from svc_server.gevent_executor import GeventExecutor
use_executor(GeventExecutor())
import sys, gevent
from svc.database import Database
from svc.database.committer import Committer
from svc.errors import SvcError, ServiceUnavailable

commit, one_by_one = Committer._commit, Committer._commit_one_by_one
answered, batches = {}, []

def put(database, name):
    try:
        with database.transaction() as transaction:
            transaction.put((name,), b"x")
    except SvcError as error:
        answered[name] = error.code
    else:
        answered[name] = "stored"

def fail_as_a_whole(self, batch):
    batches.append(len(batch))
    if len(batch) > 1:
        return False
    raise ServiceUnavailable("No.")

def one_by_one_later(self, batch):
    gevent.sleep(0.1)  # meanwhile the other leader has the lock
    one_by_one(self, batch)

with Database(sys.argv[1]) as database:
    put(database, "first")
    Committer._commit = fail_as_a_whole
    Committer._commit_one_by_one = one_by_one_later
    with database._state.commit_lock():
        leader = gevent.spawn(put, database, "leader")
        gevent.sleep(0.01)
        others = [gevent.spawn(put, database, f"other{n}") for n in range(3)]
        gevent.sleep(0.01)
        leader.kill(block=False)
        gevent.sleep(0.01)
    with gevent.Timeout(10):
        gevent.joinall(others)
    print(batches[0] > 1, *(answered[f"other{n}"] for n in range(3)))
    Committer._commit = commit
    with gevent.Timeout(10):
        put(database, "last")
    print(answered["last"], *(name for name, _ in database.at().entries(())))
"""


def test_nobody_is_answered_before_its_own_commit_though_a_killed_leader_has_another_behind_it(
    path: Path,
) -> None:
    result = run(TWO_LEADERS, path)
    assert result.stdout.splitlines() == [
        "True" + 3 * " SERVICE_UNAVAILABLE",
        "stored first last",
    ], result.stderr


POOL_WRITERS = """
from gevent import monkey
monkey.patch_all()
from svc.executor import use_executor
from svc_server.gevent_executor import GeventExecutor
use_executor(GeventExecutor())
import sys, gevent
from svc.database import Database, run_blocking

with Database(sys.argv[1]) as database:
    def put(name):
        with database.transaction() as transaction:
            transaction.put((name,), b"x")
    jobs = []
    for number in range(30):
        jobs.append(gevent.spawn(put, f"loop{number}"))
        jobs.append(gevent.spawn(run_blocking, put, f"pool{number}"))
    with gevent.Timeout(20):
        gevent.joinall(jobs, raise_error=True)
    print(database.totals().files)
"""


def test_greenlets_and_threads_of_the_pool_commit_together(path: Path) -> None:
    result = run(POOL_WRITERS, path)
    assert result.stdout == "60\n", result.stderr


RequestFor = Callable[[Database, str, bytes], CommitRequest]


def test_an_interrupted_wait_is_taken_out_of_the_queue(
    database: Database, monkeypatch: pytest.MonkeyPatch, request_for: RequestFor
) -> None:
    """A thread whose wait is interrupted (Ctrl-C): what it wanted is not done behind its back."""
    entered, go_on = threading.Event(), threading.Event()
    append_and_sync = SharedState.append_and_sync

    def slow(self: SharedState, records: list[bytes]) -> int:
        entered.set()
        assert go_on.wait(10)
        return append_and_sync(self, records)

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    monkeypatch.setattr(SharedState, "append_and_sync", slow)
    leading = threading.Thread(target=database._committer.submit, args=(request_for(database, "a", b"1"),))
    leading.start()
    assert entered.wait(10)
    waiting = request_for(database, "b", b"2")
    waiting.wake = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        database._committer.submit(waiting)
    go_on.set()
    leading.join()
    database._committer.submit(request_for(database, "c", b"3"))
    assert [name for name, _ in database.at().entries(())] == ["a", "c"]


def test_what_comes_while_the_leader_waits_for_the_lock_goes_along(
    database: Database, path: Path, request_for: RequestFor
) -> None:
    """Another process commits: whoever asks meanwhile shares one commit, and who gives up is not in it."""

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    committer = database._committer
    requests = [request_for(database, name, name.encode()) for name in "abc"]
    interrupted = request_for(database, "d", b"d")
    interrupted.wake = Interrupted()
    threads = [threading.Thread(target=committer.submit, args=(one,)) for one in requests]
    with Database(path) as other:
        other._state.log.acquire_commit_lock()
        try:
            for count, thread in enumerate(threads, 1):
                thread.start()
                deadline = time.monotonic() + 10
                while len(committer._queue) < count:
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
            with pytest.raises(KeyboardInterrupt):
                committer.submit(interrupted)
        finally:
            other._state.log.release_commit_lock()
        for thread in threads:
            thread.join(10)
    assert [(one.error, one.sequence) for one in requests] == [(None, 1)] * 3
    assert [name for name, _ in database.at().entries(())] == ["a", "b", "c"]


def test_a_leader_that_gets_no_lock_fails_with_those_behind_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, request_for: RequestFor
) -> None:
    def refuse(self: SharedState) -> None:
        raise DatabaseClosed("The database is closed.")

    monkeypatch.setattr(SharedState, "commit_lock", refuse)
    waiting = request_for(database, "b", b"2")
    database._committer._admit(waiting)
    with pytest.raises(DatabaseClosed):
        database._committer.submit(request_for(database, "a", b"1"))
    assert isinstance(waiting.error, DatabaseClosed)
    assert not database._committer._queue
    assert not database._committer._has_leader
    monkeypatch.undo()
    database._committer.submit(request_for(database, "c", b"3"))
    assert [name for name, _ in database.at().entries(())] == ["c"]


def test_a_batch_is_bounded_in_bytes(
    database: Database, monkeypatch: pytest.MonkeyPatch, request_for: RequestFor
) -> None:
    monkeypatch.setattr("svc.database.committer._LARGEST_BATCH_BYTES", 100_000)
    batches: list[int] = []
    commit = Committer._commit

    def counted(self: Committer, batch: list[CommitRequest]) -> bool:
        batches.append(len(batch))
        return commit(self, batch)

    monkeypatch.setattr(Committer, "_commit", counted)
    requests = [request_for(database, str(number), os.urandom(50_000)) for number in range(6)]
    committer = database._committer
    committer._queue.extend(requests[1:])
    threads = [threading.Thread(target=_await, args=(committer, one)) for one in requests[1:]]
    for thread in threads:
        thread.start()
    committer._queue.appendleft(requests[0])
    committer._lead()
    for thread in threads:
        thread.join(10)
    assert batches == [2, 2, 2]
    assert database.totals().files == 6


def _await(committer: Committer, request: CommitRequest) -> None:
    """What a submitter does behind the queue."""
    request.wake.wait(10)
    if request.leads:
        committer._lead()
