"""A transaction that fails within a shared commit takes no other one with it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Database
from svc.database.committer import CommitRequest
from svc.database.operations import OperationResult, Put
from svc.database.state import SharedState
from svc.errors import (
    CorruptRecord,
    DatabaseLatched,
    InsufficientStorage,
    ServiceUnavailable,
)
from svc.log import Log
from svc.tree import WorkingTree

RequestFor = Callable[[Database, str, bytes], CommitRequest]


def commit_together(database: Database, *requests: CommitRequest) -> None:
    committer = database._committer
    for request in requests:
        committer._admit(request)
    committer._lead()


def test_a_commit_that_cannot_be_closed_fails_its_own_transaction_and_not_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch, request_for: RequestFor
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
    commit_together(database, first, second)
    assert [(request.error, request.sequence) for request in (first, second)] == [(None, 1), (None, 2)]
    assert database.commit(1).root == first.version
    assert database.commit(2).root == second.version


def test_damage_fails_only_the_transactions_that_meet_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, request_for: RequestFor
) -> None:
    write = WorkingTree.write

    def fail(self: WorkingTree, now_ms: int) -> bytes:
        if self.get(("damaged",)) is not None:
            raise CorruptRecord("A node is damaged.")
        return write(self, now_ms)

    monkeypatch.setattr(WorkingTree, "write", fail)
    bad, good = request_for(database, "damaged", b"one"), request_for(database, "good", b"two")
    commit_together(database, bad, good)
    assert isinstance(bad.error, CorruptRecord)
    assert good.error is None
    assert [name for name, _ in database.at().entries(())] == ["good"]


def test_an_operation_that_raises_what_nobody_expects_fails_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch, request_for: RequestFor
) -> None:
    apply = Put.apply

    def fail(self: Put, tree: WorkingTree, now_ms: int) -> OperationResult:
        result = apply(self, tree, now_ms)
        if self.path == ("bad",):
            raise RuntimeError("A mistake of ours.")
        return result

    monkeypatch.setattr(Put, "apply", fail)
    bad, good = request_for(database, "bad", b"one"), request_for(database, "good", b"two")
    commit_together(database, bad, good)
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
