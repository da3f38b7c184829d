"""Forks: written without touching HEAD, promoted as a whole, abandoned without losing anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.errors import AlreadyExists, Conflict, NotFound
from svc.plugin import Database
from svc_versions.forks import abandon_fork, create_fork, find_fork, list_abandoned, list_forks, promote_fork
from svc_versions.snapshots import create_snapshot

from .conftest import contents, in_parallel, write  # noqa: TID252


def test_a_fork_begins_from_head_and_goes_its_own_way(database: Database) -> None:
    write(database, {"/a": "1", "/b": "1"})
    head = database.head().root
    made = create_fork(database, "draft", actor="ann")
    assert (made.root, made.base, made.created_by) == (head, head, "ann")
    write(database, {"/a": "2", "/b": None}, "draft")
    assert contents(database) == {"/a": "1", "/b": "1"}
    assert contents(database, "draft") == {"/a": "2"}
    assert database.head().root == head
    assert find_fork(database, "draft").base == head
    write(database, {"/a": "3"})
    assert contents(database, "draft") == {"/a": "2"}


def test_a_fork_begins_from_a_snapshot_or_any_version(database: Database) -> None:
    write(database, {"/a": "1"})
    create_snapshot(database, "one")
    first = database.head().root
    write(database, {"/a": "2"})
    assert create_fork(database, "f1", base="one").root == first
    assert create_fork(database, "f2", base=first.hex()).root == first
    write(database, {"/a": "f"}, "f1")
    assert create_fork(database, "f3", base="forks/f1").root == find_fork(database, "f1").root
    with pytest.raises(NotFound):
        create_fork(database, "f4", base="none")
    assert [one.name for one in list_forks(database)] == ["f3", "f2", "f1"]


def test_a_name_is_taken_only_while_its_fork_is_active(database: Database) -> None:
    create_fork(database, "draft")
    with pytest.raises(AlreadyExists):
        create_fork(database, "draft")
    write(database, {"/a": "1"}, "draft")
    state = find_fork(database, "draft").root
    abandon_fork(database, "draft")
    assert list_forks(database) == []
    for use in (find_fork, abandon_fork, promote_fork):
        with pytest.raises(NotFound):
            use(database, "draft")
    with pytest.raises(NotFound):
        write(database, {"/a": "2"}, "draft")
    assert contents(database) == {}
    # The state is reachable until it is collected.
    assert database.at(state).get(("a",)) is not None
    ((name, root),) = database.refs("abandoned")
    assert name.startswith("abandoned/draft@")
    assert root == state
    (left,) = list_abandoned(database)
    assert (left.name, left.root) == ("draft", state)
    assert create_fork(database, "draft").root == database.head().root
    assert create_fork(database, "back", base=left.root.hex()).root == state


def test_a_fork_of_the_longest_name_can_be_abandoned(database: Database) -> None:
    name = "日" * 200
    create_fork(database, name)
    abandon_fork(database, name)
    assert list_forks(database) == []
    assert name.startswith(list_abandoned(database)[0].name)


def test_a_promoted_fork_is_head_and_stays(database: Database) -> None:
    write(database, {"/a": "1"})
    create_fork(database, "draft")
    write(database, {"/a": "2"}, "draft")
    before = database.head().root
    done = promote_fork(database, "draft", actor="ann")
    assert done.previous == before
    assert done.version == database.head().root == find_fork(database, "draft").root
    assert find_fork(database, "draft").base == done.version
    write(database, {"/b": "1"}, "draft")
    assert contents(database) == {"/a": "2"}
    assert promote_fork(database, "draft").previous == done.version
    assert contents(database) == {"/a": "2", "/b": "1"}
    sequence = database.head().sequence
    assert promote_fork(database, "draft").version == database.head().root
    assert database.commit(sequence).root == database.head().root


def test_promoting_over_changes_of_head_needs_force(database: Database) -> None:
    write(database, {"/a": "1"})
    create_fork(database, "draft")
    write(database, {"/a": "fork"}, "draft")
    write(database, {"/b": "head"})
    with pytest.raises(Conflict) as refused:
        promote_fork(database, "draft")
    assert refused.value.details["head"] == database.head().root.hex()
    assert contents(database) == {"/a": "1", "/b": "head"}
    promote_fork(database, "draft", force=True)
    assert contents(database) == {"/a": "fork"}
    assert find_fork(database, "draft").base == database.head().root


def test_two_spellings_of_a_name_are_one_fork_at_the_same_time_too(database: Database) -> None:
    spellings = ["caf\u00e9", "cafe\u0301"]
    create_fork(database, spellings[1])

    def work(number: int) -> None:
        for round_ in range(10):
            write(database, {f"/{number}/{round_}": "x"}, spellings[number % 2])

    in_parallel(6, work)
    assert [one.name for one in list_forks(database)] == spellings[:1]
    assert len(contents(database, spellings[1])) == 60
    promote_fork(database, spellings[1])
    abandon_fork(database, spellings[0])
    assert len(contents(database)) == 60


def test_a_fork_that_another_program_made_is_one(database: Database) -> None:
    write(database, {"/a": "1"})
    with database.transaction() as transaction:
        transaction.set_ref("forks/foreign", database.head().root)
    (fork,) = list_forks(database)
    assert (fork.name, fork.base, fork.created_ms) == ("foreign", None, database.at().totals().updated_ms)
    write(database, {"/a": "2"}, "foreign")
    with pytest.raises(Conflict):
        promote_fork(database, "foreign")
    promote_fork(database, "foreign", force=True)
    assert contents(database) == {"/a": "2"}
    abandon_fork(database, "foreign")
    assert list_forks(database) == []


def test_writes_on_forks_never_move_head_under_load(database: Database) -> None:
    write(database, {"/head": "0"})
    for number in range(4):
        create_fork(database, f"f{number}")
    head = database.head().root
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for round_ in range(20):
                write(database, {f"/{number}/{round_}": "x"}, f"f{number % 4}")
                if database.head().root != head:
                    errors.append(AssertionError("HEAD has moved"))
        except Exception as error:
            errors.append(error)

    in_parallel(8, work)
    assert errors == []
    for number in range(4):
        assert len(contents(database, f"f{number}")) == 41


def test_promotions_and_writes_at_the_same_time_lose_nothing_of_the_fork(database: Database) -> None:
    create_fork(database, "f")

    def work(number: int) -> None:
        for round_ in range(10):
            if number == 0:
                promote_fork(database, "f")
            else:
                write(database, {f"/{number}/{round_}": "x"}, "f")

    in_parallel(4, work)
    assert len(contents(database, "f")) == 30
    promote_fork(database, "f")
    assert contents(database) == contents(database, "f")


def test_of_many_that_want_one_name_one_gets_it(database: Database) -> None:
    made: list[bool] = []

    def work(_number: int) -> None:
        try:
            create_fork(database, "wanted")
            made.append(True)
        except AlreadyExists:
            made.append(False)

    in_parallel(12, work)
    assert sorted(made) == [False] * 11 + [True]


def test_a_fork_outlives_a_restart_and_is_the_same_in_every_process(
    database: Database, database_path: Path
) -> None:
    write(database, {"/a": "1"})
    create_fork(database, "draft")
    with Database(database_path) as again:
        write(again, {"/a": "2"}, "draft")
        assert list_forks(again)[0] == find_fork(database, "draft")
    assert contents(database, "draft") == {"/a": "2"}


def test_a_fork_costs_the_same_whatever_the_database_holds(database: Database) -> None:
    def cost(name: str) -> int:
        before = database.head().commit_end
        create_fork(database, name)
        return database.head().commit_end - before

    small = cost("a")
    write(database, {f"/d{number % 50}/{number}": "x" for number in range(5000)})
    assert cost("b") <= small + 512
