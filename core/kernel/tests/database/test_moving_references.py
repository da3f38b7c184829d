"""Refs that are copied in the moment of a commit, documents under conditions, and one spelling of a name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.database import Condition, Database, reference_name, reference_path
from svc.errors import AlreadyExists, InvalidInput, NotFound, PreconditionFailed

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "refs.svcdb") as opened:
        with opened.transaction() as transaction:
            transaction.put(("f",), b"1")
        yield opened


def test_a_copy_holds_the_state_before_its_own_transaction(database: Database) -> None:
    before = database.head().root
    with database.transaction() as transaction:
        handle = transaction.copy_ref("HEAD", "snapshots/safety")
        transaction.put(("f",), b"2")
    assert dict(database.refs()) == {"snapshots/safety": before}
    assert handle.result.after is not None
    assert handle.result.after.hash == before
    assert database.head().root != before


def test_a_copy_and_a_move_of_head_are_one_commit(database: Database) -> None:
    first = database.head().root
    with database.transaction() as transaction:
        transaction.put(("f",), b"2")
    second = database.head().root
    with database.transaction() as transaction:
        transaction.copy_ref("HEAD", "snapshots/safety")
        transaction.set_ref("HEAD", first)
    assert (database.head().root, dict(database.refs())) == (first, {"snapshots/safety": second})


def test_a_named_ref_is_copied_too(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.set_ref("forks/a", database.head().root)
    with database.transaction(ref="forks/a") as transaction:
        transaction.put(("g",), b"1")
    with database.transaction() as transaction:
        transaction.copy_ref("forks/a", "forks/b")
    refs = dict(database.refs())
    assert refs["forks/a"] == refs["forks/b"] != database.head().root


def test_a_copy_is_refused_where_it_cannot_mean_what_it_says(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.copy_ref("HEAD", "snapshots/s")
    with pytest.raises(AlreadyExists), database.transaction() as transaction:
        transaction.copy_ref("HEAD", "snapshots/s")
    with pytest.raises(NotFound), database.transaction() as transaction:
        transaction.copy_ref("forks/none", "forks/b")
    with pytest.raises(InvalidInput), database.transaction() as transaction:
        transaction.copy_ref("HEAD", "snapshots/")
    late = database.transaction()
    late.put(("f",), b"3")
    with pytest.raises(InvalidInput):
        late.copy_ref("HEAD", "snapshots/t")


def test_nothing_comes_between_a_copy_and_what_follows_it(database: Database) -> None:
    def work(number: int) -> None:
        for round_ in range(10):
            with database.transaction() as transaction:
                transaction.copy_ref("HEAD", f"snapshots/{number}-{round_}")
                transaction.put((str(number), str(round_)), b"x")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = sorted(database.at(root).totals().files for _, root in database.refs("snapshots"))
    assert counts == list(range(1, 41))


def test_a_document_of_the_system_tree_is_compared_and_swapped(database: Database) -> None:
    path = ("plugin", "document")
    absent = Condition(if_none_match=("*",))
    with database.transaction() as transaction:
        transaction.put_system(path, b"1", condition=absent)
    with pytest.raises(PreconditionFailed), database.transaction() as transaction:
        transaction.put_system(path, b"2", condition=absent)
    entry = database.system().get(path)
    assert entry is not None
    same = Condition(if_match=(entry.hash.hex(),))
    with database.transaction() as transaction:
        transaction.put_system(path, b"2", condition=same)
    with pytest.raises(PreconditionFailed), database.transaction() as transaction:
        transaction.put_system(path, b"3", condition=same)


def test_two_spellings_of_a_name_are_one_ref(database: Database) -> None:
    assert reference_path(f"forks/{COMPOSED}") == reference_path(f"forks/{DECOMPOSED}")
    assert reference_name(reference_path(f"forks/{DECOMPOSED}")) == f"forks/{COMPOSED}"
    with database.transaction() as transaction:
        transaction.set_ref(f"forks/{DECOMPOSED}", database.head().root)
    first, second = (database.transaction(ref=f"forks/{name}") for name in (COMPOSED, DECOMPOSED))
    first.put(("a",), b"1")
    second.put(("b",), b"1")
    first.commit()
    second.commit()
    fork = database.at(database.resolve_version(fork=DECOMPOSED))
    assert {path for path, _ in fork.walk()} == {("a",), ("b",), ("f",)}


def test_refs_can_be_read_as_they_were(database: Database) -> None:
    system = database.system()
    with database.transaction() as transaction:
        transaction.set_ref("forks/a", database.head().root)
    assert list(database.refs(system=system)) == []
    assert [name for name, _ in database.refs("forks")] == ["forks/a"]
