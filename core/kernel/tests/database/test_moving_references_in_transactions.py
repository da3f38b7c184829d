"""HEAD moves in one transaction with other changes, or beside other transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svc.database import Database
from svc.database.committer import CommitRequest
from svc.errors import (
    InvalidInput,
)

RequestFor = Callable[[Database, str, bytes], CommitRequest]


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


def test_a_transaction_of_a_fork_that_fails_leaves_head_where_it_was(
    database: Database, request_for: RequestFor
) -> None:
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


def test_the_version_that_a_moved_head_answers_is_the_one_it_was_moved_to(
    database: Database, request_for: RequestFor
) -> None:
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
