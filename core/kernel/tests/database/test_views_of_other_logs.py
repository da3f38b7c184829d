"""A view that meets another log than its own, or another program's format, is never wrong."""

from __future__ import annotations

import multiprocessing
import shutil
import struct
import sys
import time
from collections.abc import Generator
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from svc.database import Commit, Database, Version, View, ViewStorage
from svc.database.view_marks import MAP_SIZE, applied_in
from svc.objects.environments import close_environment, open_environment


class Paths(View):
    """Keeps the paths that were changed, in order."""

    name = "test.paths"
    format = 1

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put(commit.sequence.to_bytes(8, "big"), "/".join(change.path).encode())


class Newer(Paths):
    """The same of a later program, which writes in capitals."""

    format = 2

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put(commit.sequence.to_bytes(8, "big"), "/".join(change.path).upper().encode())


class Slow(Paths):
    """Takes each commit in three steps, of which each is longer than a transaction may be."""

    name = "test.slow"

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> Generator[None]:
        for step in range(start, 3):
            path = "/".join(commit.transactions[0].changes[0].path)
            storage.put(b"%d.%d" % (commit.sequence, step), path.encode())
            time.sleep(0.21)
            yield


def put(database: Database, *names: str) -> None:
    for name in names:
        with database.transaction() as transaction:
            transaction.put((name,), name.encode())


def values(storage: ViewStorage) -> list[bytes]:
    return [value for _, value in storage.scan()]


def go_back(path: Path, copy: Path) -> None:
    """Puts a copy of the file back and keeps the views, as one may who knows a little of what lies there."""
    shutil.copy(copy, path)
    state = path.with_name(f"{path.name}.d")
    shutil.rmtree(state / "index")
    for name in ("head", "tail"):
        (state / name).unlink(missing_ok=True)


@pytest.mark.parametrize("later", [["new"], ["new", "newer", "newest"]], ids=["fewer", "more"])
def test_a_log_that_went_back_has_only_its_own_commits_in_a_view(
    path: Path, tmp_path: Path, later: list[str]
) -> None:
    with Database(path) as database:
        put(database, "a")
    shutil.copy(path, tmp_path / "copy")
    with Database(path) as database:
        put(database, "b", "c")
        assert database.register_view(Paths()).read(values) == [b"a", b"b", b"c"]
    go_back(path, tmp_path / "copy")
    with Database(path) as database:
        put(database, *later)
        assert applied_in(database, Paths()) == 0
        assert database.register_view(Paths()).read(values) == [b"a", *(name.encode() for name in later)]
        assert applied_in(database, Paths()) == 1 + len(later)


def test_a_half_applied_commit_of_another_log_is_forgotten(path: Path, tmp_path: Path) -> None:
    with Database(path) as database:
        put(database, "a")
        database.register_view(Slow()).catch_up()
    shutil.copy(path, tmp_path / "copy")
    with Database(path) as database:
        put(database, "b")
        reader = database.register_view(Slow())
        assert reader.catch_up(should_stop=lambda: True) == 1
        reader._apply_some()
        assert values_now(reader) == [b"a"] * 3 + [b"b"]
    go_back(path, tmp_path / "copy")
    with Database(path) as database:
        put(database, "c")
        assert database.register_view(Slow()).read(values) == [b"a"] * 3 + [b"c"] * 3


def values_now(reader: object) -> list[bytes]:
    return reader.read(values, minimum=1)  # type: ignore[attr-defined,no-any-return]


def _follow(path: str, ready: Event, go_on: Event) -> None:
    """An old program in a process of its own: opens its view, and applies commits whenever it is let."""
    with Database(path) as database:
        reader = database.register_view(Paths())
        reader.catch_up()
        for _ in range(3):
            ready.set()
            if not go_on.wait(30):
                sys.exit(2)
            go_on.clear()
            found = reader.read(values)
            if found != [b"a", b"b", b"c"][: len(found)]:
                sys.exit(1)
        ready.set()


def test_programs_with_different_formats_work_side_by_side(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, go_on = context.Event(), context.Event()
    with Database(path) as database:
        put(database, "a")
        old = context.Process(target=_follow, args=(str(path), ready, go_on))
        old.start()
        for name in ("b", "c", None):
            assert ready.wait(30)
            ready.clear()
            reader = database.register_view(Newer())
            reader.catch_up()
            if name is not None:
                put(database, name)
            go_on.set()
        old.join(30)
        assert old.exitcode == 0
        assert database.view("test.paths").read(values) == [b"A", b"B", b"C"]


def test_what_other_formats_left_goes_when_nobody_has_the_database_open(path: Path) -> None:
    views = path.with_name(f"{path.name}.d") / "views"
    with Database(path) as database:
        put(database, "a")
        database.register_view(Paths()).catch_up()
    (views / "test.paths").mkdir()
    (views / "test.paths-more-4.1").mkdir()
    with Database(path), Database(path) as database:
        database.register_view(Newer()).catch_up()
        database.close()
        assert {place.name for place in views.iterdir()} == {
            "test.paths", "test.paths-4.1", "test.paths-4.2", "test.paths-more-4.1"
        }  # fmt: skip
    with Database(path) as database:
        assert database.register_view(Newer()).read(values) == [b"A"]
    assert {place.name for place in views.iterdir()} == {"test.paths-4.2", "test.paths-more-4.1"}


def test_the_mark_is_laid_out_as_the_format_page_says(path: Path) -> None:
    with Database(path) as database:
        put(database, "a", "b")
        reader = database.register_view(Slow())
        reader._apply_some()
        reader._apply_some()
        directory = path.with_name(f"{path.name}.d") / "views" / "test.slow-4.1"
        for applied, steps in ((0, 2), (1, 1)):
            mark = mark_in(directory)
            assert len(mark) == 128
            assert struct.unpack_from("<II", mark) == (4, 1)
            assert mark[8:24] == database.database_id
            assert struct.unpack_from("<Q", mark, 24) == (applied,)
            assert mark[32:64] == (database.commit_identity(applied) if applied else bytes(32))
            assert struct.unpack_from("<Q", mark, 64) == (steps,)
            assert mark[72:104] == database.commit_identity(applied + 1)
            assert struct.unpack_from("<QQII", mark, 104) == (0, 0, 0, 0), "nothing was collected"
            reader._apply_some()
            reader._apply_some()


def mark_in(directory: Path) -> bytes:
    shared = open_environment(directory, MAP_SIZE, (b"data",), read_only=True)
    try:
        with shared.begin() as transaction:
            return bytes(transaction.get(b"mark") or b"")
    finally:
        close_environment(shared)


def test_a_scan_that_is_held_over_a_step_goes_on_behind_it(path: Path) -> None:
    class Scanning(Paths):
        name = "test.scanning"

        def apply(
            self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
        ) -> Generator[None]:
            for number in range(20):
                storage.put(b"a%02d" % number, b"")
            for key, _ in storage.scan(b"a"):
                storage.put(b"b" + key[1:], b"seen")
                storage.delete(b"a%02d" % (int(key[1:]) + 1))
                time.sleep(0.21 if key in (b"a04", b"a08") else 0)
                yield

    with Database(path) as database:
        put(database, "a")
        reader = database.register_view(Scanning())
        even = [b"b%02d" % number for number in range(0, 20, 2)]
        assert reader.read(lambda storage: [key for key, _ in storage.scan(b"b")]) == even


def test_a_commit_goes_on_step_by_step_in_the_same_and_in_another_process(path: Path) -> None:
    with Database(path) as database:
        put(database, "a", "b")
        reader = database.register_view(Slow())
        assert reader.catch_up(should_stop=lambda: True) == 0
        reader._apply_some()
    with Database(path) as database:
        reader = database.register_view(Slow())
        asked: list[None] = []
        assert reader.catch_up(should_stop=lambda: bool(asked.append(None)) or len(asked) > 1) == 0
        assert reader.read(values) == [b"a"] * 3 + [b"b"] * 3
        assert len(asked) == 2
