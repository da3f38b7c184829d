"""What brings a tree to what others have: exact conditions, links of the system tree, no checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc import Database
from svc.database.content_checks import PathCheck
from svc.database.operations import same_entry
from svc.errors import Conflict, InvalidInput, PreconditionFailed

A = ("a",)


def entry(database: Database, *path: str):  # type: ignore[no-untyped-def]
    return database.at().get(path)


def test_a_rewrite_of_the_same_bytes_is_another_entry(database: Database) -> None:
    with database.transaction() as changes:
        changes.put(A, b"x", updated_ms=1)
    seen = entry(database, "a")
    with database.transaction() as changes:
        changes.put(A, b"x", updated_ms=2)
    with pytest.raises(PreconditionFailed), database.transaction() as changes:
        changes.put(A, b"y", condition=same_entry(seen))
    with database.transaction() as changes:
        changes.put(A, b"y", condition=same_entry(entry(database, "a")))
    assert database.at().read_all(entry(database, "a")) == b"y"


def test_nothing_and_a_directory_are_states_too(database: Database) -> None:
    with database.transaction() as changes:
        changes.mkdir(A)
    directory = entry(database, "a")
    with pytest.raises(PreconditionFailed), database.transaction() as changes:
        changes.delete(A, condition=same_entry(None))
    with database.transaction() as changes:
        changes.put(("a", "b"), b"x")
        changes.delete(("a", "b"))
        changes.delete(A, condition=same_entry(directory))
    with database.transaction() as changes:
        changes.put(A, b"x", condition=same_entry(None))
    with pytest.raises(PreconditionFailed), database.transaction() as changes:
        changes.delete(A, condition=same_entry(directory))


def test_links_of_the_system_tree(database: Database) -> None:
    with database.transaction() as changes:
        changes.link_system(("places", "one"), "/a/b")
    place = database.system().get(("places", "one"))
    assert place is not None
    assert place.target == "/a/b"
    assert entry(database, "places") is None
    change = database.commit(database.head().sequence).transactions[0].changes[0]
    assert (change.kind, change.path, change.system) == ("link", ("places", "one"), True)
    with database.transaction() as changes:
        changes.link_system(("places", "one"), "/c", condition=same_entry(place))
        changes.put_system(("places", "two"), b"x")
    with pytest.raises(Conflict), database.transaction() as changes:
        changes.link_system(("places", "two"), "/c")
    with pytest.raises(InvalidInput), database.transaction() as changes:
        changes.link_system(("places", "three"), "relative")


def test_contents_that_another_database_has_accepted_are_not_checked(tmp_path: Path) -> None:
    def refuse(path: tuple[str, ...], content: bytes) -> None:
        raise InvalidInput("No.")

    with Database(tmp_path / "x.svcdb") as database:
        database.use_content_checks([PathCheck(("a",), 10, refuse)])
        with pytest.raises(InvalidInput), database.transaction() as changes:
            changes.put(A, b"x")
        with database.transaction(checks_contents=False) as changes:
            changes.put(A, b"x")
        assert entry(database, "a") is not None
