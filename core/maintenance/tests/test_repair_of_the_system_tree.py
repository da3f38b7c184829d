"""A lost directory of the system tree is given up: what looks there finds nothing, and does not fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from repair_material import Made, flip, make, records_of
from svc.database import Database
from svc.database.collection import collect
from svc.hashing import Hash
from svc_maintenance.repair import FileSource, RepairReport, repair
from svc_maintenance.verification import verify


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A database whose system tree has a directory of a plugin and two snapshots, the later one of HEAD."""
    made = make(tmp_path)
    with Database(made.path) as database:
        for number in range(2):
            with database.transaction() as transaction:
                transaction.put_system(("keep", "deep", f"f{number}"), b"%d" % number)
                transaction.put((f"new{number}",), b"new")
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/two", database.head().root)
        with database.transaction() as transaction:
            transaction.put(("last",), b"last")
    shutil.copy(made.path, made.backup)
    return made


def damage(path: Path, *directories: tuple[str, ...]) -> None:
    with Database(path, read_only=True) as database:
        hashes = {database.system().get(one).hash for one in directories}
    for record in records_of(path):
        if record.hash in hashes:
            flip(path, *range(record.offset + 64, record.offset + 64 + min(40, record.stored_length)))


def repaired(made: Made, *, backup: bool = False) -> RepairReport:
    sources = [FileSource(made.backup)] if backup else []
    try:
        return repair(made.path, sources)
    finally:
        for source in sources:
            source.close()


def codes(database: Database) -> list[str]:
    return [one.code for one in database.findings()]


def roots(database: Database) -> dict[str, Hash]:
    return dict(database.refs())


@pytest.mark.parametrize("directory", [("keep",), ("keep", "deep")], ids=["above", "below"])
def test_what_is_lost_is_given_up_and_all_else_goes_on(made: Made, directory: tuple[str, ...]) -> None:
    damage(made.path, directory)
    report = repaired(made)
    assert not report.ok
    assert report.given_up_directories == ["/" + "/".join(directory)]
    with Database(made.path) as database:
        assert database.system().get(("keep", "deep", "f1")) is None
        assert database.system().get(directory) is None
        assert codes(database) == ["database.given_up"]
        assert verify(database).ok
        collect(database, wait_seconds=0)
        with database.transaction() as transaction:
            transaction.put_system(("keep", "deep", "again"), b"1")
        assert database.system().read_all(database.system().get(("keep", "deep", "again"))) == b"1"
        assert codes(database) == []


def test_another_repair_from_a_backup_brings_it_back(made: Made) -> None:
    damage(made.path, ("keep",))
    repaired(made)
    assert repaired(made).given_up_directories == ["/keep"], "told until it is there"
    report = repaired(made, backup=True)
    assert report.given_up_directories == []
    with Database(made.path) as database:
        assert database.system().read_all(database.system().get(("keep", "deep", "f1"))) == b"1"
        assert codes(database) == []
        assert verify(database).ok


def test_what_was_stored_there_meanwhile_stays(made: Made) -> None:
    damage(made.path, ("keep",))
    repaired(made)
    with Database(made.path) as database, database.transaction() as transaction:
        transaction.put_system(("keep", "other"), b"1")
    repaired(made, backup=True)
    with Database(made.path) as database:
        assert [name for name, _ in database.system().entries(("keep",))] == ["other"]


@pytest.mark.parametrize("directory", [("refs",), ("refs", "snapshots")], ids=["all", "snapshots"])
def test_versions_that_an_earlier_commit_names_are_named_again(
    made: Made, directory: tuple[str, ...]
) -> None:
    with Database(made.path, read_only=True) as database:
        named = roots(database)
    damage(made.path, directory)
    assert repaired(made).given_up_directories == ["/" + "/".join(directory)]
    with Database(made.path) as database:
        assert roots(database) == {"snapshots/one": named["snapshots/one"]}
        collect(database, wait_seconds=0)
        assert len(list(database.version_of(named["snapshots/one"]).walk())) > 5
        assert verify(database).ok


def test_a_name_of_a_version_that_was_collected_does_not_come_back(made: Made) -> None:
    with Database(made.path) as database:
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/one", None)
        collect(database, wait_seconds=0, keep_days=1)
        collect(database, wait_seconds=0)
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/three", database.head().root)
    damage(made.path, ("refs", "snapshots"))
    repaired(made)
    with Database(made.path) as database:
        assert list(roots(database)) == ["snapshots/two"]
        collect(database, wait_seconds=0)
        assert verify(database).ok
