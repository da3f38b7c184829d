"""Registers and a real database: edits do what registers say, and then there is nothing to stamp."""

from __future__ import annotations

import random

import pytest
from svc_sync.database_tree import VersionTree, add_edits
from svc_sync.registers import Dot, Register, Version, join, write
from svc_sync.stamping import stamp
from svc_sync.tree import FULL, apply, value_of
from svc_sync.values import Directory

from svc import Database
from svc.plugin import Entry, EntryKind, hash_content

PATHS = [("a",), ("b",), ("a", "a"), ("a", "b"), ("a", "b", "c"), ("b", "c", "a"), ("b", "c", "b")]


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "x.svcdb") as database:
        yield database


def file(number, ms=1_000):
    content = b"%d" % number
    return Entry(EntryKind.FILE, hash_content(content), len(content), ms, ms, "text/plain")


def leaves(database):
    tree = VersionTree(database.at())
    found = {}
    for path, _ in database.at().walk():
        leaf = tree.leaf(path)
        if leaf is not FULL:
            found[path] = leaf
    return found


def bring(database, registers, changed):
    edits = apply(VersionTree(database.at()), changed, registers.get)
    registers.update(edits.restated)
    with database.transaction() as transaction:
        add_edits(transaction, edits)
    return edits


def only(value, vt=5, writer=1):
    return Register({writer: vt}, {Dot(vt, writer): Version(value)})


def put_content(database, *numbers):
    for number in numbers:
        with database.transaction() as transaction:
            transaction.put(("content", str(number)), b"%d" % number)
        with database.transaction() as transaction:
            transaction.delete(("content",), recursive=True)


def by_definition(stable, registers):
    live = {path: value for path, value in stable.items() if path not in registers}
    for path, register in registers.items():
        value = max(register.versions.items(), key=lambda item: item[0])[1].value
        if value is not None:
            live[path] = value
    holders = {path[:depth] for path in live for depth in range(1, len(path))}
    return {path: value for path, value in live.items() if path not in holders}


def test_a_file_gives_way_to_a_directory_and_comes_back(database):
    put_content(database, 1, 2)
    registers = {("a",): only(file(1))}
    bring(database, registers, registers)
    registers[("a", "b", "c")] = only(file(2), 6)
    edits = bring(database, registers, [("a", "b", "c")])
    assert edits.removed == [("a",)]
    assert leaves(database) == {("a", "b", "c"): file(2)}
    registers[("a", "b", "c")] = only(None, 7)
    edits = bring(database, registers, [("a", "b", "c")])
    assert edits.removed == [("a", "b", "c"), ("a", "b"), ("a",)]
    assert leaves(database) == {("a",): file(1)}


def test_a_stable_file_that_gives_way_has_a_register_again(database):
    put_content(database, 1, 2)
    with database.transaction() as transaction:
        transaction.put_entry(("a",), file(1))
    registers = {("a", "b"): only(file(2))}
    edits = bring(database, registers, registers)
    assert set(edits.restated) == {("a",)}
    registers[("a", "b")] = only(None, 9)
    bring(database, registers, [("a", "b")])
    assert leaves(database) == {("a",): file(1)}


def test_an_empty_directory_stays_only_where_somebody_wants_it(database):
    put_content(database, 1)
    registers = {("a",): only(Directory(777)), ("a", "b"): only(file(1)), ("b", "c"): only(file(1))}
    bring(database, registers, registers)
    registers[("a", "b")] = registers[("b", "c")] = only(None, 9)
    bring(database, registers, [("a", "b"), ("b", "c")])
    assert leaves(database) == {("a",): Directory(777)}


def test_a_change_among_many_reads_little():
    class Counting(VersionTree):
        reads = 0

        def leaf(self, path):
            Counting.reads += 1
            return FULL if path == ("d",) else file(1) if len(path) == 2 else None

        def names(self, path):
            for number in range(1_000_000):
                Counting.reads += 1
                yield f"{number:07d}"

    gone = [("d", f"{number:07d}") for number in range(100)]
    registers = {path: only(None) for path in gone}
    edits = apply(Counting(None), gone, registers.get)
    assert sorted(edits.removed) == gone
    assert Counting.reads < 10 * len(gone)


def test_random_changes_do_what_the_definition_says_and_leave_nothing_to_stamp(database):
    chance = random.Random(5)
    put_content(database, *range(6))
    registers = {}
    for vt in range(1, 60):
        changed = chance.sample(PATHS, chance.randint(1, 4))
        stable = leaves(database)
        for path in changed:
            value = chance.choice([None, Directory(vt), file(chance.randrange(6)), file(chance.randrange(6))])
            registers[path] = only(value, vt)
        before = database.at()
        bring(database, registers, changed)
        now = database.at()
        assert leaves(database) == by_definition(stable, registers)
        told = VersionTree(now)
        for change in before.diff(now):
            leaf = told.leaf(change.path)
            assert stamp(registers.get(change.path), Dot(vt + 1, 9), leaf, leaf) is None


def test_what_a_caller_committed_becomes_writes(database):
    put_content(database, 1, 2)
    with database.transaction() as transaction:
        transaction.put_entry(("a", "b"), file(1))
    before = database.at()
    with database.transaction() as transaction:
        transaction.delete(("a",), recursive=True)
        transaction.put_entry(("a",), file(2))
    old, new = VersionTree(before), VersionTree(database.at())
    registers = {}
    for change in before.diff(database.at()):
        made = stamp(None, Dot(5, 1), old.leaf(change.path), new.leaf(change.path))
        if made is not None:
            registers[change.path] = made
    assert {path: [one.value for one in r.versions.values()] for path, r in registers.items()} == {
        ("a",): [file(2)],
        ("a", "b"): [None],
    }


def test_a_directory_in_place_of_a_file_is_a_deletion_and_only_then():
    one = write(None, Dot(1, 1), file(1), None)
    made = stamp(one, Dot(2, 1), file(1), FULL)
    assert [version.value for version in made.versions.values()] == [None]
    assert stamp(None, Dot(2, 1), FULL, FULL) is None
    assert stamp(None, Dot(2, 1), Directory(1), FULL) is None
    assert stamp(None, Dot(2, 1), FULL, None) is None
    displaced = stamp(one, Dot(2, 1), FULL, None)
    assert displaced.versions[Dot(1, 1)].parked
    assert value_of(FULL) is None
    assert join(made, one, {}) == made
