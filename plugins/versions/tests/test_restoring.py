"""Restore puts back what was, and keeps what is."""

from __future__ import annotations

import threading

import pytest

from svc.errors import Conflict, InvalidInput, NotFound
from svc.plugin import Database, parse_path
from svc_versions.lifecycle import change_lifecycle
from svc_versions.models import LifecycleChange
from svc_versions.restoring import RestoredPath, restore_path, restore_snapshot
from svc_versions.snapshots import create_snapshot, find_snapshot, list_snapshots

from .conftest import contents, in_parallel, write  # noqa: TID252


@pytest.fixture
def versions(database: Database) -> Database:
    """A snapshot ``old``, and a HEAD in which everything is another."""
    write(database, {"/a": "old", "/d/x": "old", "/d/y": "old", "/gone": "old", "/t": "old"})
    with database.transaction() as transaction:
        transaction.link(("link",), "/d")
        transaction.mkdir(("empty",))
    create_snapshot(database, "old")
    write(database, {"/a": "new", "/d/x": "new", "/d/z": "new", "/gone": None, "/t": None})
    with database.transaction() as transaction:
        transaction.delete(("link",))
        transaction.delete(("empty",))
        transaction.put(("t", "inside"), b"new")
    return database


def restore(database: Database, path: str, snapshot: str = "old") -> RestoredPath:
    return restore_path(database, parse_path(path), database.resolve_version(snapshot=snapshot), actor="ann")


def test_a_restored_snapshot_is_head_and_what_head_was_is_a_snapshot(versions: Database) -> None:
    before = contents(versions)
    root = versions.head().root
    done = restore_snapshot(versions, "old", actor="ann")
    assert done.version == versions.head().root == find_snapshot(versions, "old").root
    assert done.auto_snapshot is not None
    assert done.auto_snapshot.startswith("pre-restore-")
    safety = find_snapshot(versions, done.auto_snapshot)
    assert (safety.root, safety.kind, safety.created_by) == (root, "automatic", "ann")
    restore_snapshot(versions, done.auto_snapshot)
    assert contents(versions) == before


def test_restoring_what_head_is_changes_nothing(versions: Database) -> None:
    restore_snapshot(versions, "old")
    sequence = versions.head().sequence
    done = restore_snapshot(versions, "old")
    assert done.auto_snapshot is None
    assert versions.head().sequence == sequence


def test_an_unknown_snapshot_is_not_restored(versions: Database) -> None:
    with pytest.raises(NotFound):
        restore_snapshot(versions, "none")
    with pytest.raises(NotFound):
        restore_snapshot(versions, "x" * 500)
    assert len(list_snapshots(versions)) == 1


def test_a_file_comes_back_as_it_was_and_nothing_else(versions: Database) -> None:
    before = contents(versions)
    old = versions.at(versions.resolve_version(snapshot="old"))
    done = restore(versions, "/a")
    assert contents(versions) == {**before, "/a": "old"}
    assert done.entry == old.get(("a",)) == versions.at().get(("a",))
    assert done.version == versions.head().root
    assert contents(versions, snapshot=done.auto_snapshot) == before
    assert versions.commit(versions.head().sequence).transactions[0].actor == "ann"


def test_a_deleted_file_comes_back(versions: Database) -> None:
    restore(versions, "/gone")
    assert contents(versions)["/gone"] == "old"


def test_a_directory_becomes_exactly_what_it_was(versions: Database) -> None:
    restore(versions, "/d")
    assert {path: text for path, text in contents(versions).items() if path.startswith("/d/")} == {
        "/d/x": "old",
        "/d/y": "old",
    }


def test_links_and_empty_directories_come_back(versions: Database) -> None:
    assert restore(versions, "/link").entry.target == "/d"
    restore(versions, "/empty")
    assert versions.at().get(("link",)) is not None
    assert versions.at().get(("empty",)) is not None


def test_a_path_through_a_link_is_restored_where_it_really_stood(versions: Database) -> None:
    done = restore(versions, "/link/x")
    assert done.path == ("d", "x")
    assert contents(versions)["/d/x"] == "old"
    assert versions.at().get(("link",)) is None


def test_a_file_does_not_take_a_directorys_place_nor_the_reverse(versions: Database) -> None:
    before = versions.head().root
    with pytest.raises(Conflict):
        restore(versions, "/t")
    write(versions, {"/gone/below": "new"})
    create_snapshot(versions, "newer")
    write(versions, {"/gone": None})
    write(versions, {"/gone": "file"})
    with pytest.raises(Conflict):
        restore(versions, "/gone", "newer")
    with pytest.raises(Conflict):
        restore(versions, "/gone/below", "newer")
    assert len(list_snapshots(versions)) == 2
    assert versions.head().root != before


@pytest.mark.parametrize("path", ["/none", "/a/below", "/d/none"])
def test_what_the_version_does_not_have_is_not_found_and_makes_no_snapshot(
    versions: Database, path: str
) -> None:
    sequence = versions.head().sequence
    with pytest.raises(NotFound):
        restore(versions, path)
    assert versions.head().sequence == sequence


def test_no_link_leads_into_the_system_namespace(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.link(("out",), "/.svc-system")
    create_snapshot(database, "s")
    with pytest.raises(NotFound):
        restore(database, "/out/plugins", "s")
    assert restore(database, "/out", "s").entry.target == "/.svc-system"


def test_the_root_directory_is_restored_as_a_snapshot_only(versions: Database) -> None:
    with pytest.raises(InvalidInput):
        restore(versions, "/")


def test_without_a_safety_snapshot_nothing_is_restored(versions: Database) -> None:
    change_lifecycle(versions, LifecycleChange(snapshot_writes_enabled=False))
    root = versions.head().root
    with pytest.raises(Conflict):
        restore(versions, "/a")
    with pytest.raises(Conflict):
        restore_snapshot(versions, "old")
    assert versions.head().root == root


def test_restores_of_one_millisecond_have_safety_snapshots_of_their_own(versions: Database) -> None:
    done: list[str] = []
    in_parallel(12, lambda _number: done.append(restore(versions, "/a").auto_snapshot))
    assert len(set(done)) == 12
    assert len(list_snapshots(versions)) == 13


def test_under_load_no_acknowledged_write_is_lost_to_a_restore(database: Database) -> None:
    write(database, {"/a": "0"})
    create_snapshot(database, "old")
    acknowledged: list[str] = []
    stop = threading.Event()

    def write_on(number: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            write(database, {f"/w/{number}-{count}": "x"})
            acknowledged.append(f"/w/{number}-{count}")

    writers = [threading.Thread(target=write_on, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        safeties = [restore_snapshot(database, "old").auto_snapshot for _ in range(5)]
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    found: set[str] = set(contents(database))
    for safety in safeties:
        if safety is not None:
            found |= set(contents(database, snapshot=safety))
    assert set(acknowledged) <= found
