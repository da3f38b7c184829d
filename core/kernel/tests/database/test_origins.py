"""A transaction that merges is one commit whose record tells apart where each change was made."""

from __future__ import annotations

import pytest

from svc.database import Database
from svc.errors import InvalidInput
from svc.plugin import Origin

FAR = Origin(7, "user", 1_790_000_000_000)


def test_what_was_made_here_stands_first_and_each_origin_by_itself(database: Database) -> None:
    with database.transaction(actor="me", message="merge") as changes:
        with changes.merging(FAR):
            changes.put(("a",), b"1")
            changes.put(("b",), b"2")
        with changes.merging(Origin(8)):
            changes.put(("c",), b"3")
        changes.put(("d",), b"4")
        with changes.merging(FAR):
            changes.put(("e",), b"5")
    commit = database.commit(database.head().sequence)
    assert [[change.path for change in one.changes] for one in commit.transactions] == [
        [("d",)],
        [("a",), ("b",)],
        [("c",)],
        [("e",)],
    ]
    assert [one.origin for one in commit.transactions] == [None, FAR, Origin(8), FAR]
    assert [one.actor for one in commit.transactions] == ["me", "user", None, "user"]
    assert commit.transactions[1].message == "merged from node 7, written at 1790000000000"


def test_no_message_says_what_only_a_merge_says(database: Database) -> None:
    for message in ("merged from node 7", FAR.message):
        with pytest.raises(InvalidInput):
            database.transaction(message=message)
    with database.transaction(message="merged from node 7 by hand") as changes:
        changes.put(("a",), b"1")
    assert database.commit(database.head().sequence).transactions[0].origin is None
