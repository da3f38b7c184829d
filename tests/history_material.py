"""A database with a history, and what it says of it."""

from __future__ import annotations

import random

from svc.database import Database
from svc.database.commit import Commit
from svc.database.packed_commits import RANGE
from svc.hashing import Hash, ObjectKind
from svc.log import FIRST

HISTORY = 2 * RANGE + 70
Told = list[tuple[Commit, Hash]]


def commit(database: Database, number: int, content: bytes | None = None) -> None:
    with database.transaction(actor="somebody", message=f"number {number}") as transaction:
        stored = database.store_bytes(content or random.Random(number).randbytes(5000))
        transaction.put((f"f{number % 7}",), stored)


def told(database: Database, until: int = HISTORY) -> Told:
    """What a database says of its commits, in every way; all ways must agree."""
    found = [database.read_commit(sequence) for sequence in range(1, until + 1)]
    fed = database.feed(0)
    assert [next(fed) for _ in range(until)] == found
    fed = database.feed(RANGE + 3)
    assert next(fed) == found[RANGE + 3]
    for commit, identity in found:
        assert database.commit_identity(commit.sequence) == identity
        assert database.commit_state(commit.sequence) == (commit.time_ms, commit.root)
        if commit.sequence < HISTORY:  # collections have commits of their own, which leave HEAD as it is
            assert database.last_commit_of(commit.root) == commit.sequence
        if commit.sequence <= HISTORY:
            assert database.commit_of(commit.root) == commit.sequence
    return found


def packs(database: Database) -> int:
    return len(database._state.packs.ranges(database.head().system_root))


def records(database: Database, kind: ObjectKind) -> list[int]:
    """Offsets of the log's records of a kind."""
    return [record.offset for record in database.objects.log.scan(FIRST) if record.kind is kind]
