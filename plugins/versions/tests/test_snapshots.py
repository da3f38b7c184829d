"""Snapshots name versions: one commit each, no two for one version, whoever asks at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.errors import AlreadyExists, Conflict, CorruptRecord, InvalidInput, NotFound
from svc.plugin import Database
from svc_maintenance.repair import repair
from svc_versions.lifecycle import change_lifecycle
from svc_versions.models import LifecycleChange
from svc_versions.restoring import restore_snapshot
from svc_versions.roots import snapshot_names
from svc_versions.snapshots import (
    create_snapshot,
    delete_snapshot,
    find_snapshot,
    list_snapshots,
    rename_snapshot,
)

from .conftest import contents, in_parallel, write  # noqa: TID252


def test_a_snapshot_keeps_what_head_was(database: Database) -> None:
    write(database, {"/a": "1"})
    made, is_new = create_snapshot(database, "one", {"why": ["tests"]}, actor="ann")
    write(database, {"/a": "2"})
    assert is_new
    assert (made.metadata, made.created_by, made.kind) == ({"why": ["tests"]}, "ann", "manual")
    assert find_snapshot(database, "one") == made
    assert contents(database, snapshot="one") == {"/a": "1"}


def test_an_empty_database_can_be_snapshot(database: Database) -> None:
    made, _ = create_snapshot(database, "nothing")
    assert contents(database, snapshot="nothing") == {}
    write(database, {"/a": "1"})
    assert restore_snapshot(database, "nothing").version == made.root


def test_a_second_snapshot_of_one_version_is_the_first(database: Database) -> None:
    write(database, {"/a": "1"})
    first, _ = create_snapshot(database, "one")
    sequence = database.head().sequence
    assert create_snapshot(database, "two") == (first, False)
    assert database.head().sequence == sequence
    with pytest.raises(NotFound):
        find_snapshot(database, "two")


def test_a_name_that_is_taken_is_refused_before_versions_are_compared(database: Database) -> None:
    create_snapshot(database, "one")
    with pytest.raises(AlreadyExists):
        create_snapshot(database, "one")
    write(database, {"/a": "1"})
    with pytest.raises(AlreadyExists) as refused:
        create_snapshot(database, "one")
    assert refused.value.details == {"name": "one"}


def test_the_newest_comes_first_also_within_a_millisecond(database: Database) -> None:
    names = [f"s{number}" for number in (3, 1, 4, 5, 9, 2, 6)]
    for name in names:
        write(database, {"/a": name})
        create_snapshot(database, name)
    assert [one.name for one in list_snapshots(database)] == names[::-1]


def test_a_deleted_snapshot_frees_its_name_and_its_version(database: Database) -> None:
    write(database, {"/a": "1"})
    create_snapshot(database, "one", {"x": 1})
    delete_snapshot(database, "one")
    assert list_snapshots(database) == []
    with pytest.raises(NotFound):
        delete_snapshot(database, "one")
    made, is_new = create_snapshot(database, "one")
    assert is_new
    assert made.metadata == {}
    system = database.system()
    assert [path for path, _ in system.walk(("versions", "snapshots"), files_only=True)] == [
        ("versions", "snapshots", "one")
    ]


def test_deleting_what_is_another_by_now_deletes_nothing(database: Database) -> None:
    old, _ = create_snapshot(database, "daily")
    delete_snapshot(database, "daily")
    write(database, {"/a": "1"})
    create_snapshot(database, "daily")
    with pytest.raises(NotFound):
        delete_snapshot(database, "daily", expected=old)
    assert find_snapshot(database, "daily").root == database.head().root


def test_a_renamed_snapshot_keeps_everything_but_its_name(database: Database) -> None:
    made, _ = create_snapshot(database, "one", {"x": 1}, actor="ann")
    write(database, {"/a": "1"})
    create_snapshot(database, "two")
    renamed = rename_snapshot(database, "one", "long " * 40)
    assert (renamed.root, renamed.created_ms, renamed.metadata) == (made.root, made.created_ms, {"x": 1})
    assert [one.name for one in list_snapshots(database)] == ["two", "long " * 40]
    assert rename_snapshot(database, "two", "two").name == "two"
    with pytest.raises(AlreadyExists):
        rename_snapshot(database, "two", "long " * 40)
    with pytest.raises(NotFound):
        rename_snapshot(database, "one", "three")
    with pytest.raises(InvalidInput):
        rename_snapshot(database, "two", "_svc_three")


def test_a_snapshot_that_another_program_made_is_one(database: Database) -> None:
    write(database, {"/a": "1"})
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/foreign/one", database.head().root)
        transaction.set_ref("snapshots/_svc_pre_gc_5", database.head().root)
        transaction.put_system(("versions", "snapshots", "_svc_pre_gc_5"), b"no json")
    found = {one.name: one for one in list_snapshots(database)}
    assert found["foreign/one"].metadata == {}
    assert found["foreign/one"].kind == "manual"
    assert found["foreign/one"].created_ms == database.at().totals().updated_ms
    assert found["_svc_pre_gc_5"].kind == "automatic"
    # What somebody named comes before what svc made by itself.
    assert create_snapshot(database, "mine")[0].name == "foreign/one"
    delete_snapshot(database, "foreign/one")
    delete_snapshot(database, "_svc_pre_gc_5")
    assert create_snapshot(database, "mine")[1]


def test_an_automatic_snapshot_that_somebody_asks_for_is_kept(database: Database) -> None:
    write(database, {"/a": "1"})
    create_snapshot(database, "one")
    write(database, {"/a": "2"})
    auto = restore_snapshot(database, "one").auto_snapshot
    assert auto is not None
    delete_snapshot(database, "one")
    restore_snapshot(database, auto)
    found, is_new = create_snapshot(database, "two")
    assert (found.name, is_new, found.kept) == (auto, False, True)
    assert find_snapshot(database, auto).kept
    assert rename_snapshot(database, auto, "two").kind == "manual"


def test_where_snapshots_are_switched_off_none_is_made(database: Database) -> None:
    create_snapshot(database, "one")
    write(database, {"/a": "1"})
    change_lifecycle(database, LifecycleChange(snapshot_writes_enabled=False))
    for refused in (lambda: create_snapshot(database, "two"), lambda: restore_snapshot(database, "one")):
        with pytest.raises(Conflict) as error:
            refused()
        assert error.value.details["setting"] == "snapshot_writes_enabled"
    assert contents(database) == {"/a": "1"}
    change_lifecycle(database, LifecycleChange(snapshot_writes_enabled=True))
    assert create_snapshot(database, "two")[1]


def test_of_many_that_want_one_name_one_gets_it(database: Database) -> None:
    outcomes: list[object] = []

    def make(number: int) -> None:
        write(database, {f"/{number}": "x"})
        try:
            outcomes.append(create_snapshot(database, "wanted")[1])
        except AlreadyExists:
            outcomes.append(None)

    in_parallel(16, make)
    assert sorted(map(str, outcomes)) == ["None"] * 15 + ["True"]


def test_of_many_that_name_one_version_at_the_same_time_one_makes_a_snapshot(database: Database) -> None:
    write(database, {"/a": "1"})
    names: list[str] = []
    in_parallel(16, lambda number: names.append(create_snapshot(database, f"s{number}")[0].name))
    assert len(set(names)) == 1
    assert [one.name for one in list_snapshots(database)] == names[:1]


def test_what_memory_knows_of_roots_follows_every_change(database: Database) -> None:
    def known() -> tuple[str, ...]:
        return tuple(sorted(snapshot_names(database, database.system(), database.head().root)))

    assert known() == ()
    long = "long " * 40
    create_snapshot(database, long)
    assert known() == (long,)
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/other", database.head().root)
    assert known() == (long, "other")
    rename_snapshot(database, long, "short")
    assert known() == ("other", "short")
    write(database, {"/a": "1"})
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/other", database.head().root)
    assert known() == ("other",)
    delete_snapshot(database, "other")
    assert known() == ()


def test_a_restart_changes_nothing(database: Database, database_path: Path) -> None:
    write(database, {"/a": "1"})
    create_snapshot(database, "one", {"x": 1})
    listed = list_snapshots(database)
    with Database(database_path) as again:
        assert list_snapshots(again) == listed
        assert create_snapshot(again, "two") == (listed[0], False)


def test_a_snapshot_costs_the_same_whatever_the_database_holds(database: Database) -> None:
    def cost(name: str) -> int:
        before = database.head().commit_end
        create_snapshot(database, name)
        return database.head().commit_end - before

    write(database, {"/a": "1"})
    small = cost("s")
    write(database, {f"/d{number % 50}/{number}": "x" for number in range(5000)})
    assert cost("t") <= small + 512


def test_a_snapshot_whose_document_was_lost_is_one_without(tmp_path: Path) -> None:
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        write(database, {"/a": "1"})
        create_snapshot(database, "one", {"why": ["lost"]}, actor="ann")
        system = database.system()
        entry = system.get(("versions", "snapshots", "one"))
        assert entry is not None
        assert entry.record is not None
        (chunk,) = database.objects.read_record(entry.record).chunks
        offset = database.objects.find(chunk).offset
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"rotten" * 20)
    with Database(path) as database, pytest.raises(CorruptRecord):
        list_snapshots(database)
    assert len(repair(path).lost) == 1
    with Database(path) as database:
        (found,) = list_snapshots(database)
        assert (found.name, found.created_by, found.kind) == ("one", None, "manual")
        assert contents(database, snapshot="one") == {"/a": "1"}
        write(database, {"/a": "2"})
        delete_snapshot(database, "one")
        assert list_snapshots(database) == []
