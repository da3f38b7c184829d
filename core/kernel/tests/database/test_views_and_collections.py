"""Views behind a collection: what they are given, who waits for them, and what a crash leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.database import Database, View, ViewReader, ViewStorage, views
from svc.errors import VersionCollected
from svc_testing import simulate_collection


class Files(View):
    """The paths and hashes of all files at HEAD; begins with the state at the horizon."""

    name = "test.files"
    format = 1

    def __init__(self) -> None:
        self.seen: list[tuple[int, bool]] = []

    def apply(self, commit, before, after, storage, start=0):
        if not start:
            self.seen.append((commit.sequence, any(change.kind == "ref" for change in changes_of(commit))))
        for number, change in enumerate(before.diff(after)):
            if number < start:
                continue
            key = "/".join(change.path).encode()
            if change.after is None:
                storage.delete(key)
            elif change.after.totals is None:
                storage.put(key, commit.sequence.to_bytes(4, "big") + change.after.hash)
            yield


class Records(View):
    """The paths that each commit names; needs no trees."""

    name = "test.records"
    format = 1
    takes_collected = True

    def __init__(self) -> None:
        self.collected: list[int] = []

    def apply(self, commit, before, after, storage, start=0):
        if after.is_collected:
            self.collected.append(commit.sequence)
            with pytest.raises(VersionCollected):
                after.get(("a",))
            with pytest.raises(VersionCollected):
                next(before.sibling(before.root).walk())
        for change in changes_of(commit):
            storage.put(commit.sequence.to_bytes(4, "big"), "/".join(change.path).encode())


class Batches(View):
    """How many commits came at once, and whether they had trees."""

    name = "test.batches"
    format = 1
    keeps_files = False
    takes_collected = True

    def __init__(self) -> None:
        self.runs: list[list[tuple[int, bool]]] = []

    def begin(self, storage):
        return self

    def apply(self, commits, start):
        self.runs.append([(step.commit.sequence, step.is_collected) for step in commits])

    def end(self):
        pass

    def close(self):
        pass


def changes_of(commit):
    return [change for record in commit.transactions for change in record.changes if not change.system]


def commit(database: Database, *names: str) -> None:
    for name in names:
        with database.transaction() as transaction:
            transaction.put((name,), name.encode() * 600)


def rows(storage: ViewStorage) -> list[tuple[bytes, bytes]]:
    return list(storage.scan())


def finish(reader: ViewReader) -> list[tuple[bytes, bytes]]:
    reader.catch_up()
    while reader.work():
        pass
    return reader.read(rows)


@pytest.fixture
def one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction ends behind each step."""
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0.0)


def test_a_new_view_begins_with_the_state_at_the_horizon(database: Database) -> None:
    commit(database, "a", "b", "c", "d")
    simulate_collection(database, 3)
    view = Files()
    reader = database.register_view(view)
    assert [(key, int.from_bytes(value[:4], "big")) for key, value in reader.read(rows)] == [
        (b"a", 3),
        (b"b", 3),
        (b"c", 3),
        (b"d", 4),
    ]
    assert view.seen == [(3, True), (4, False), (5, False)]


@pytest.mark.usefixtures("one_step")
def test_nobody_waits_while_the_data_are_made_anew(database: Database) -> None:
    view = Files()
    reader = database.register_view(view)
    commit(database, *"abcdef")
    kept = reader.read(rows)
    simulate_collection(database, 5)
    reader.catch_up()
    turns = 0
    while reader.work():
        view.seen.clear()
        found = reader.read(rows)
        turns += 1
        assert found == kept or [key for key, _ in found] == [key for key, _ in kept]
        assert view.seen == [], "reading applied nothing"
    assert turns > 3
    assert [int.from_bytes(value[:4], "big") for _, value in reader.read(rows)] == [5, 5, 5, 5, 5, 6]


@pytest.mark.usefixtures("one_step")
def test_commits_that_come_while_the_data_are_made_anew_are_seen_at_once(database: Database) -> None:
    reader = database.register_view(Files())
    commit(database, *"abcd")
    reader.catch_up()
    simulate_collection(database, 4)
    for name in "efgh":
        reader.work()
        commit(database, name)
        assert [key.decode() for key, _ in reader.read(rows)][-1] == name
    kept = finish(reader)
    reader.rebuild()
    assert finish(reader) == kept


@pytest.mark.usefixtures("one_step")
def test_another_opening_goes_on_with_data_that_are_half_made(path: Path) -> None:
    with Database(path) as database, Database(path) as other:
        readers = [opened.register_view(Files()) for opened in (database, other)]
        commit(database, *"abcdef")
        readers[0].catch_up()
        simulate_collection(database, 6)
        for turn in range(50):
            if not readers[turn % 2].work():
                break
        else:
            pytest.fail("the data are never made")
        kept = readers[1].read(rows)
        assert {int.from_bytes(value[:4], "big") for _, value in kept} == {6}
        readers[0].rebuild()
        assert finish(readers[1]) == kept


@pytest.mark.usefixtures("one_step")
def test_a_horizon_that_moves_again_begins_again(database: Database) -> None:
    reader = database.register_view(Files())
    commit(database, *"abcd")
    reader.catch_up()
    simulate_collection(database, 4)
    reader.work()
    commit(database, *"ef")
    simulate_collection(database)
    kept = finish(reader)
    reader.rebuild()
    assert finish(reader) == kept
    assert {int.from_bytes(value[:4], "big") for _, value in kept} == {database.horizon()}


def test_a_view_that_lags_behind_the_horizon_begins_anew(database: Database) -> None:
    view = Files()
    reader = database.register_view(view)
    commit(database, *"ab")
    reader.catch_up()
    commit(database, *"cd")
    simulate_collection(database, 4)
    view.seen.clear()
    assert [key for key, _ in reader.read(rows)] == [b"a", b"b", b"c", b"d"]
    assert view.seen == [(4, True), (5, False)]


def test_a_view_of_records_gets_every_commit(database: Database) -> None:
    commit(database, *"abcd")
    simulate_collection(database, 3)
    view = Records()
    reader = database.register_view(view)
    assert [value for _, value in reader.read(rows)] == [b"a", b"b", b"c", b"d"]
    assert view.collected == [1, 2, 3]
    assert finish(reader) == reader.read(rows)


def test_commits_with_trees_and_without_never_come_together(database: Database) -> None:
    commit(database, *"abcd")
    simulate_collection(database, 2)
    view = Batches()
    database.register_view(view).catch_up()
    assert view.runs == [[(1, True), (2, True)], [(3, False), (4, False), (5, False)]]


def test_a_view_without_work_of_its_own_has_some_behind_a_collection(database: Database) -> None:
    reader = database.register_view(Files())
    commit(database, *"ab")
    finish(reader)
    assert not reader.has_work
    simulate_collection(database)
    reader.catch_up()
    assert reader.has_work
    finish(reader)
    assert not reader.has_work


def test_a_hold_of_a_version_asks_whether_it_is_there(database: Database) -> None:
    commit(database, *"ab")
    old, new = database.commit(1).root, database.head().root
    with database.hold_version(old, new):
        assert database.holds.is_held_before(database.holds.state()[0] + 1)
    assert not database.holds.is_held_before(database.holds.state()[0] + 1)
    simulate_collection(database)
    with pytest.raises(VersionCollected):
        database.hold_version(new, old)
    assert not database.holds.is_held_before(database.holds.state()[0] + 1)


def test_a_view_holds_what_it_applies(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []

    class Asking(View):
        name = "test.asking"
        format = 1

        def apply(self, commit, before, after, storage, start=0):
            held.append(database.holds.is_held_before(database.holds.state()[0] + 1))

    commit(database, "a")
    database.register_view(Asking()).catch_up()
    assert held == [True]
