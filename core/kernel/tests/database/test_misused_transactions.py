"""What a transaction or a version refuses, and a second commit that does nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import (
    DatabaseClosed,
    InvalidInput,
)


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


def test_a_transaction_that_was_committed_inside_its_block_is_not_committed_again(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("f",), b"x")
        transaction.commit()
    assert database.head().sequence == 1


@pytest.mark.parametrize("target", ["/\udcff", "/" + "x" * 4096, "/a\0b", "relative"])
def test_a_link_target_that_cannot_be_stored_is_refused_at_once(database: Database, target: str) -> None:
    with pytest.raises(InvalidInput):
        database.transaction().link(("l",), target)
