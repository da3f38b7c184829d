"""The commit feed tells what was done, and a view that follows it can always be made again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from svc.database import Commit, Database, Version, View, ViewStorage
from svc.errors import NotFound


class PathLog(View):
    """Keeps the sequence number at which each path was last changed."""

    name = "test.paths"
    format = 1

    def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put("/".join(change.path).encode(), str(commit.sequence).encode())


def fill(database: Database, count: int) -> None:
    for number in range(count):
        with database.transaction(actor="someone", message=f"number {number}") as transaction:
            transaction.put((f"f{number % 5}",), str(number).encode())


def contents(database: Database) -> dict[bytes, bytes]:
    return database.view("test.paths").read(lambda storage: dict(storage.scan()))


def test_the_feed_holds_every_commit_in_order(database: Database) -> None:
    fill(database, 12)
    commits = list(database.commits())
    assert [commit.sequence for commit in commits] == list(range(1, 13))
    assert [commit.transactions[0].message for commit in commits] == [
        f"number {number}" for number in range(12)
    ]
    assert all(later.parent_root == earlier.root for earlier, later in pairwise(commits))
    assert [commit.sequence for commit in database.commits(after=10)] == [11, 12]
    assert commits[-1].root == database.head().root
    assert commits[0].transactions[0].actor == "someone"
    with pytest.raises(NotFound):
        database.commit(13)


def test_waiting_for_a_commit_ends_when_it_is_there_or_time_is_up(database: Database) -> None:
    assert not database.wait_for_commit(0, timeout=0.01)
    fill(database, 1)
    assert database.wait_for_commit(0, timeout=0)


def test_a_view_sees_what_was_acknowledged_before_it_was_asked(database: Database) -> None:
    database.register_view(PathLog())
    fill(database, 7)
    assert contents(database) == {b"f0": b"6", b"f1": b"7", b"f2": b"3", b"f3": b"4", b"f4": b"5"}
    fill(database, 1)
    assert contents(database)[b"f0"] == b"8"


def test_a_view_goes_on_after_a_restart_and_equals_one_made_anew(path: Path) -> None:
    with Database(path) as database:
        database.register_view(PathLog())
        fill(database, 9)
        first = contents(database)
        fill(database, 3)
    with Database(path) as database:
        reader = database.register_view(PathLog())
        assert reader.applied == 9
        incremental = contents(database)
        assert incremental != first
        reader.rebuild()
        assert contents(database) == incremental


def test_a_view_of_another_format_is_made_anew(path: Path) -> None:
    class Newer(PathLog):
        format = 2

        def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
            storage.put(str(commit.sequence).encode(), b"")

    with Database(path) as database:
        database.register_view(PathLog())
        fill(database, 2)
        assert set(contents(database)) == {b"f0", b"f1"}
    with Database(path) as database:
        database.register_view(Newer())
        assert set(contents(database)) == {b"1", b"2"}


def test_a_view_that_fails_keeps_its_mark(database: Database) -> None:
    class Failing(PathLog):
        def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
            storage.put(b"half", b"done")
            raise RuntimeError("broken")

    reader = database.register_view(Failing())
    fill(database, 1)
    with pytest.raises(RuntimeError):
        reader.read(lambda storage: storage.get(b"half"))
    assert reader.applied == 0
    assert reader.read(lambda storage: storage.get(b"half"), minimum=0) is None


def test_long_keys_and_prefixes_and_positions(database: Database) -> None:
    keys = [b"a", b"a/" + b"x" * 600, b"a/" + b"x" * 600 + b"y", b"a/b", b"b"]

    class Keys(PathLog):
        def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
            for key in keys:
                storage.put(key, key[::-1])
            assert storage.delete(b"none") is False

    reader = database.register_view(Keys())
    fill(database, 1)

    def check(storage: ViewStorage) -> None:
        assert dict(storage.scan()) == {key: key[::-1] for key in keys}
        assert {key for key, _ in storage.scan(b"a/")} == set(keys[1:4])
        assert {key for key, _ in storage.scan(b"a/" + b"x" * 500)} == set(keys[1:3])
        assert [key for key, _ in storage.scan(after=b"a/b")] == [
            *sorted(keys[1:3], key=lambda k: list(dict(storage.scan())).index(k)),
            b"b",
        ]
        assert storage.get(keys[1]) == keys[1][::-1]
        assert storage.get(b"a/" + b"x" * 601) is None

    reader.read(check)
