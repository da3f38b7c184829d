"""One writer's misfortune is no other writer's: failures and kills within a shared commit."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from svc.database import Database
from svc.database.committer import CommitRequest, Committer
from svc.database.fold import Fold
from svc.database.operations import OperationResult, Put
from svc.database.state import SharedState
from svc.errors import (
    CorruptRecord,
    DatabaseClosed,
    DatabaseLatched,
    InsufficientStorage,
    InvalidInput,
    ServiceUnavailable,
)
from svc.log import Log
from svc.objects.chunking import WHOLE_LIMIT
from svc.tree import WorkingTree

KILLED_WAITER = """
from gevent import monkey
monkey.patch_all()
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


def run_greenlets(path: Path, later: float) -> list[str]:
    code = KILLED_WAITER.replace("{later}", str(later))
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
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
    result = subprocess.run(
        [sys.executable, "-c", LOCK_WAITER, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout == "done\n", result.stderr


POOL_WRITERS = """
from gevent import monkey
monkey.patch_all()
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
    result = subprocess.run(
        [sys.executable, "-c", POOL_WRITERS, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout == "60\n", result.stderr


def request_for(database: Database, name: str, content: bytes) -> CommitRequest:
    stored = database.store_bytes(content)
    return CommitRequest("HEAD", [Put((name,), stored, None)], stored.pending)


def test_a_commit_that_cannot_be_closed_fails_its_own_transaction_and_not_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two transactions on one path: the first one's commit is closed while the second one is added."""
    write = WorkingTree.write
    broken: list[bool] = [True]

    def fail_once(self: WorkingTree, now_ms: int) -> bytes:
        if broken and self.get(("f",)) is not None:
            broken.clear()
            raise CorruptRecord("A node is damaged.")
        return write(self, now_ms)

    monkeypatch.setattr(WorkingTree, "write", fail_once)
    first, second = request_for(database, "f", b"one"), request_for(database, "f", b"two")
    database._committer._commit([first, second])
    assert [(request.error, request.sequence) for request in (first, second)] == [(None, 1), (None, 2)]
    assert database.commit(1).root == first.version
    assert database.commit(2).root == second.version


def test_damage_fails_only_the_transactions_that_meet_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = WorkingTree.write

    def fail(self: WorkingTree, now_ms: int) -> bytes:
        if self.get(("damaged",)) is not None:
            raise CorruptRecord("A node is damaged.")
        return write(self, now_ms)

    monkeypatch.setattr(WorkingTree, "write", fail)
    bad, good = request_for(database, "damaged", b"one"), request_for(database, "good", b"two")
    database._committer._commit([bad, good])
    assert isinstance(bad.error, CorruptRecord)
    assert good.error is None
    assert [name for name, _ in database.at().entries(())] == ["good"]


def test_an_operation_that_raises_what_nobody_expects_fails_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Put.apply

    def fail(self: Put, tree: WorkingTree, now_ms: int) -> OperationResult:
        result = apply(self, tree, now_ms)
        if self.path == ("bad",):
            raise RuntimeError("A mistake of ours.")
        return result

    monkeypatch.setattr(Put, "apply", fail)
    bad, good = request_for(database, "bad", b"one"), request_for(database, "good", b"two")
    database._committer._commit([bad, good])
    assert isinstance(bad.error, RuntimeError)
    assert good.error is None
    assert [name for name, _ in database.at().entries(())] == ["good"]


def test_a_full_disk_behind_the_sync_does_not_claim_that_nothing_was_applied(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, places: object, commits: object) -> None:
        raise InsufficientStorage("The key index could not be written.")

    with monkeypatch.context() as patched:
        patched.setattr(SharedState, "index_and_publish", fail)
        with pytest.raises(ServiceUnavailable), database.transaction() as transaction:
            transaction.put(("f",), b"x")
    with database.transaction() as transaction:
        transaction.put(("g",), b"x")
    assert [name for name, _ in database.at().entries(())] == ["f", "g"]


class _Stream:
    def __init__(self, content: bytes) -> None:
        self._rest = content

    def read(self, size: int = -1, /) -> bytes:
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def test_a_failed_sync_of_an_upload_latches_for_the_system_reports_it_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(path) as database:

        def fail(self: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patched:
            patched.setattr(Log, "sync", fail)
            with pytest.raises(DatabaseLatched):
                database.store(_Stream(os.urandom(3 * 1024 * 1024)))
        with pytest.raises(DatabaseLatched), database.transaction() as transaction:
            transaction.put(("more",), b"x")


def test_a_failed_sync_while_a_dead_process_is_cleaned_up_after_latches(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(path) as database:
        state = database._state
        with database.transaction() as transaction:
            transaction.put(("f",), b"x")
        head = state.head()
        with state.commit_lock():
            state.roll_forward(head)

            def fail(self: object) -> None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            with monkeypatch.context() as patched:
                patched.setattr(Log, "sync", fail)
                with pytest.raises(DatabaseLatched):
                    state.roll_forward(head)
        with pytest.raises(DatabaseLatched), database.transaction() as transaction:
            transaction.put(("more",), b"x")


def test_a_chunk_that_is_brought_twice_by_one_commit_counts_once(database: Database) -> None:
    content = os.urandom(WHOLE_LIMIT + 1)
    ahead = database.store_bytes(content)
    chunk_hash, place = next((h, p) for h, p in ahead.pending.placed.items() if p.kind == 1)
    chunk = database.objects.read_at(chunk_hash, place)
    small = database.store_bytes(chunk)
    head = database.head()
    fold = Fold(database.objects, head, None)
    for name, stored in (("small", small), ("large", ahead)):
        fold.add(CommitRequest("HEAD", [Put((name,), stored, None)], stored.pending))
    fold.finish()
    chunks = sum(place.kind == 1 for place in ahead.pending.placed.values())
    assert fold.commits[0].commit.totals.chunks == chunks


def test_chunks_of_an_upload_that_waits_are_counted_with_their_own_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process died behind its sync; its commit is finished while an upload lies behind it."""

    def fail(self: object, places: object, commits: object) -> None:
        raise InsufficientStorage("The key index could not be written.")

    with monkeypatch.context() as patched:
        patched.setattr(SharedState, "index_and_publish", fail)
        with pytest.raises(ServiceUnavailable), database.transaction() as transaction:
            transaction.put(("f",), b"x")
    stored = database.store_bytes(os.urandom(WHOLE_LIMIT * 4))
    chunks = sum(place.kind == 1 for place in stored.pending.placed.values())
    with database.transaction() as transaction:
        transaction.put(("g",), stored)
    assert database.totals().chunks == chunks + 1


def test_an_entry_of_another_database_is_refused(database: Database, tmp_path: Path) -> None:
    with Database(tmp_path / "other.svcdb") as other:
        with other.transaction() as transaction:
            transaction.put(("d", "f"), b"x")
        file, directory = other.at().get(("d", "f")), other.at().get(("d",))
    assert file is not None and directory is not None
    for entry in (file, directory):
        with pytest.raises(InvalidInput):
            database.transaction().put_entry(("e",), entry)


def test_a_version_of_a_closed_database_says_that_it_is_closed(path: Path) -> None:
    with Database(path) as database, database.transaction() as transaction:
        transaction.put(("d", "f"), b"x")
    with Database(path) as database:
        version = database.at()
    with pytest.raises(DatabaseClosed):
        version.get(("d", "f"))


def test_a_batch_is_bounded_in_bytes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.database.committer._LARGEST_BATCH_BYTES", 100_000)
    batches: list[int] = []
    commit = Committer._commit

    def counted(self: Committer, batch: list[CommitRequest]) -> None:
        batches.append(len(batch))
        commit(self, batch)

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


def test_a_content_that_is_used_again_does_not_send_recovery_back_to_where_it_lies(
    database: Database,
) -> None:
    stored = database.store_bytes(os.urandom(WHOLE_LIMIT + 1))
    for name in ("a", "b"):
        with database.transaction() as transaction:
            transaction.put((name,), stored)
    assert database.commit(1).first_offset > 0
    assert database.commit(2).first_offset == 0


def test_a_transaction_that_was_committed_inside_its_block_is_not_committed_again(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("f",), b"x")
        transaction.commit()
    assert database.head().sequence == 1


def test_moving_head_and_changing_it_in_one_transaction_loses_nothing(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("old",), b"x")
    old = database.head().root
    with database.transaction() as transaction:
        transaction.put(("new",), b"x")
    with database.transaction() as transaction:
        transaction.set_ref("HEAD", old)
        transaction.put(("note",), b"restored")
    assert [name for name, _ in database.at().entries(())] == ["note", "old"]
    with database.transaction() as transaction:
        transaction.put(("lost",), b"x")
        with pytest.raises(InvalidInput):
            transaction.set_ref("HEAD", old)


def test_a_transaction_of_a_fork_that_fails_leaves_head_where_it_was(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("old",), b"x")
    old = database.head().root
    with database.transaction() as transaction:
        transaction.put(("new",), b"x")
        transaction.set_ref("forks/f", old, expected=b"")
    failing = database.transaction(ref="forks/f")
    failing.set_ref("HEAD", old)
    failing.delete(("missing",))
    request = CommitRequest("forks/f", failing._operations, failing._pending)
    good = request_for(database, "good", b"two")
    database._committer._commit([request, good])
    assert request.error is not None
    assert [name for name, _ in database.at().entries(())] == ["good", "new", "old"]


def test_the_version_that_a_moved_head_answers_is_the_one_it_was_moved_to(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("old",), b"x")
    old = database.head().root
    with database.transaction() as transaction:
        transaction.put(("new",), b"x")
    moving = database.transaction()
    moving.set_ref("HEAD", old)
    request = CommitRequest("HEAD", moving._operations, moving._pending)
    database._committer._commit([request, request_for(database, "other", b"two")])
    assert request.version == old


@pytest.mark.parametrize("target", ["/\udcff", "/" + "x" * 4096, "/a\0b", "relative"])
def test_a_link_target_that_cannot_be_stored_is_refused_at_once(database: Database, target: str) -> None:
    with pytest.raises(InvalidInput):
        database.transaction().link(("l",), target)


def test_an_interrupted_wait_is_taken_out_of_the_queue(
    database: Database, monkeypatch: pytest.MonkeyPatch
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
