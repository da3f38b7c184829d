"""What a commit counts and points to when contents are shared or were brought before."""

from __future__ import annotations

import os

import pytest

from svc.database import Database
from svc.database.committer import CommitRequest
from svc.database.fold import Fold
from svc.database.operations import Put
from svc.database.state import SharedState
from svc.errors import (
    InsufficientStorage,
    ServiceUnavailable,
)
from svc.objects.chunking import WHOLE_LIMIT
from svc.objects.key_index import unpack_place


def test_a_chunk_that_is_brought_twice_by_one_commit_counts_once(database: Database) -> None:
    content = os.urandom(WHOLE_LIMIT + 1)
    ahead = database.store_bytes(content)
    places = {h: unpack_place(p) for h, p in ahead.pending.placed.items()}
    chunk_hash, place = next((h, p) for h, p in places.items() if p.kind == 1)
    chunk = database.objects.read_at(chunk_hash, place)
    small = database.store_bytes(chunk)
    head = database.head()
    fold = Fold(database.objects, head, None)
    for name, stored in (("small", small), ("large", ahead)):
        fold.add(CommitRequest("HEAD", [Put((name,), stored, None)], stored.pending))
    fold.finish()
    chunks = sum(place.kind == 1 for place in places.values())
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
    chunks = sum(unpack_place(place).kind == 1 for place in stored.pending.placed.values())
    with database.transaction() as transaction:
        transaction.put(("g",), stored)
    assert database.totals().chunks == chunks + 1


def test_a_content_that_is_used_again_does_not_send_recovery_back_to_where_it_lies(
    database: Database,
) -> None:
    stored = database.store_bytes(os.urandom(WHOLE_LIMIT + 1))
    for name in ("a", "b"):
        with database.transaction() as transaction:
            transaction.put((name,), stored)
    assert database.commit(1).first_offset > 0
    assert database.commit(2).first_offset == 0
