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

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
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

        def apply(
            self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
        ) -> None:
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
        def apply(
            self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
        ) -> None:
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
        def apply(
            self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
        ) -> None:
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


def test_a_commit_is_decoded_once_for_all_views(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    class OtherLog(PathLog):
        name = "test.others"

    readers = [database.register_view(view) for view in (PathLog(), OtherLog())]
    fill(database, 100)
    decoded: list[int] = []
    decode = Commit.decode

    def note(payload: bytes) -> Commit:
        commit = decode(payload)
        decoded.append(commit.sequence)
        return commit

    monkeypatch.setattr(Commit, "decode", note)
    assert [reader.catch_up() for reader in readers] == [100, 100]
    assert sorted(decoded) == list(range(1, 101))


def test_commits_that_were_kept_make_room_for_later_ones(database: Database) -> None:
    database.register_view(PathLog())
    fill(database, 600)
    assert [commit.sequence for commit in database.commits()] == list(range(1, 601))
    assert [commit.sequence for commit in database.commits()] == list(range(1, 601))


def test_what_differs_is_found_once_for_all_who_compare(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database, 1)
    before = database.at()
    fill(database, 3)
    after = database.at()
    found = list(before.differences(after))
    # "f0" is written again: it differs where a millisecond has passed.
    assert [name for name, _, _ in found][-2:] == ["f1", "f2"]

    def refuse(*_: object) -> None:
        raise AssertionError("a node is read again")

    monkeypatch.setattr(type(database.objects), "read_node", refuse)
    assert list(before.differences(after)) == found


def test_what_differs_in_many_names_or_was_not_read_to_the_end_is_found_anew(database: Database) -> None:
    before = database.at()
    with database.transaction() as transaction:
        for number in range(100):
            transaction.put((f"{number:03}",), b"x")
    after = database.at()
    next(before.differences(after))
    for _ in range(2):
        assert [name for name, _, _ in before.differences(after)] == [f"{number:03}" for number in range(100)]
    assert not database.objects.cache.differences
