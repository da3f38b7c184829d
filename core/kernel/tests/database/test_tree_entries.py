"""A tree has a largest number of entries, whichever way more would come into it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.database import Database, Transaction
from svc.errors import PayloadTooLarge, SvcError
from svc.tree import Entry, EntryKind, WorkingTree
from svc.tree.edit import build
from svc_testing.memory_nodes import MemoryNodeStore

LIMIT = 20


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with Database(path, max_tree_entries=LIMIT) as opened:
        yield opened


def entries(database: Database) -> int:
    below = database.at().totals()
    return below.files + below.directories + below.symlinks


def fill(database: Database, count: int, directory: str = "d", ref: str = "HEAD") -> None:
    with database.transaction(ref=ref) as transaction:
        for number in range(count - 1):
            transaction.put((directory, str(number)), b"x")


def test_exactly_the_limit_is_taken_and_one_more_is_not(database: Database) -> None:
    fill(database, LIMIT)
    assert entries(database) == LIMIT
    root = database.head().root
    with pytest.raises(PayloadTooLarge) as caught, database.transaction() as transaction:
        transaction.put(("d", "one more"), b"x")
    assert caught.value.details["limit"] == LIMIT
    assert "20 entries; this would make 21" in caught.value.message
    assert database.head().root == root


@pytest.mark.parametrize(
    "more",
    [
        lambda one: one.copy(("d",), ("e",)),
        lambda one: one.put(("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"), b"x"),
        lambda one: one.mkdir(("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k")),
        lambda one: one.link(("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"), "/d"),
        lambda one: one.put_entry(("e",), one._database.at().get(("d",))),
    ],
    ids=["copy", "put", "mkdir", "link", "put_entry"],
)
def test_no_operation_makes_more(database: Database, more: Callable[[Transaction], object]) -> None:
    fill(database, 11)
    root = database.head().root
    transaction = database.transaction()
    transaction.put(("d", "0"), b"y")
    more(transaction)
    with pytest.raises(PayloadTooLarge) as caught:
        transaction.commit()
    assert caught.value.details["operation"] == 1
    assert database.head().root == root


def test_what_makes_no_more_is_taken(database: Database) -> None:
    fill(database, LIMIT)
    with database.transaction() as transaction:
        transaction.put(("d", "0"), b"again")
        transaction.move(("d", "1"), ("d", "moved"))
    with database.transaction() as transaction:
        transaction.delete(("d", "2"))
        transaction.put(("d", "new"), b"x")
    assert entries(database) == LIMIT


def test_a_tree_that_is_too_large_already_gets_smaller(path: Path) -> None:
    with Database(path) as database:
        fill(database, LIMIT + 5)
    with Database(path, max_tree_entries=LIMIT) as database:
        with database.transaction() as transaction:
            transaction.move(("d", "1"), ("d", "moved"))
            transaction.delete(("d", "2"))
        with pytest.raises(PayloadTooLarge), database.transaction() as transaction:
            transaction.put(("d", "new"), b"x")


def test_a_ref_that_moves_to_a_larger_tree_is_refused(path: Path) -> None:
    with Database(path) as database:
        fill(database, LIMIT + 5)
        large = database.head().root
        with database.transaction() as transaction:
            transaction.delete(("d",), recursive=True)
    with Database(path, max_tree_entries=LIMIT) as database:
        for name in ("HEAD", "forks/f"):
            with pytest.raises(PayloadTooLarge), database.transaction() as transaction:
                transaction.set_ref(name, large)
        fill(database, 3)


def test_a_fork_has_the_same_limit(database: Database) -> None:
    fill(database, 10)
    with database.transaction() as transaction:
        transaction.copy_ref("HEAD", "forks/f")
    fill(database, 10, "e", "forks/f")
    with pytest.raises(PayloadTooLarge):
        fill(database, 2, "f", "forks/f")
    fill(database, 10, "f")


def test_others_of_the_same_group_go_on(database: Database) -> None:
    fill(database, 10)
    errors: list[SvcError] = []

    def work(number: int) -> None:
        try:
            with database.transaction() as transaction:
                if number % 2:
                    transaction.copy(("d",), (f"copy{number}", "of", "d"))
                else:
                    transaction.put(("d", str(number)), b"y")
        except SvcError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [PayloadTooLarge] * 4
    assert entries(database) == 10


def test_a_batch_that_doubles_again_and_again_is_refused_at_once(path: Path) -> None:
    with Database(path) as database:
        transaction = database.transaction()
        transaction.put(("bomb", "a", "f"), b"x")
        for number in range(40):
            transaction.copy(("bomb", "a"), ("bomb", "b"))
            transaction.move(("bomb", "b"), ("bomb", "a", f"b{number}"))
        with pytest.raises(PayloadTooLarge) as caught:
            transaction.commit()
        assert caught.value.details["limit"] == 1_000_000_000
        assert database.head().sequence == 0


_names = st.sampled_from("abc")
_paths = st.lists(_names, min_size=1, max_size=3).map(tuple)
_edits = st.tuples(
    st.sampled_from(["put", "remove", "move", "copy", "write", "save", "back"]), _paths, _paths
)


@settings(max_examples=300)
@given(st.lists(_edits, max_size=40))
def test_the_count_of_a_working_tree_is_that_of_a_walk(
    edits: list[tuple[str, tuple[str], tuple[str]]],
) -> None:
    store = MemoryNodeStore()
    tree = WorkingTree(store, build(store, []))
    saved = tree.savepoint()
    for kind, path, other in edits:
        try:
            if kind == "put":
                tree.put(path, Entry(EntryKind.FILE, bytes(32), 1, 1, 1))
            elif kind == "remove":
                tree.remove(path)
            elif kind == "move":
                tree.move(path, other)
            elif kind == "copy":
                tree.copy(path, other)
            elif kind == "save":
                saved = tree.savepoint()
            elif kind == "write":
                tree.write(1)
                saved = tree.savepoint()
            else:
                tree.rollback(saved)
        except (SvcError, ValueError):
            saved = tree.savepoint() if kind == "back" else saved
        assert tree.count() == sum(1 for _ in tree.walk())
        assert tree.count(path) == sum(1 for _ in tree.walk(path)) + (tree.get(path) is not None)
