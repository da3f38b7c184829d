"""Repairing: restored in place, fetched from a copy, or put out of the way and named; never other bytes."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from repair_material import Made, flip, make, records_of
from svc.database import Database
from svc.database.collection import collect
from svc.database.collection.plan import Sweeper
from svc.database.lost import REPORTS, Lost
from svc.errors import CorruptRecord, DatabaseBusy, ForeignFile, SvcError
from svc.hashing import ObjectKind
from svc.log import FIRST, RECORD_HEADER_SIZE, FileOperations
from svc_maintenance.repair import FileSource, RepairReport, repair
from svc_maintenance.repair.originals import saved_originals
from svc_maintenance.verification import verify
from svc_maintenance.verification.verification import verify_versions

KINDS = (ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE, ObjectKind.COMMIT)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("made"))


@pytest.fixture
def made(template: Made, tmp_path: Path) -> Made:
    """The same database, as a file of this test's own with what lies beside it."""
    path = tmp_path / "x.svcdb"
    shutil.copy(template.path, path)
    shutil.copytree(f"{template.path}.d", f"{path}.d")
    return dataclasses.replace(template, path=path)


def repaired(made: Made, *, backup: bool) -> RepairReport:
    """Repairs, and makes sure of what must hold after any repair."""
    damaged = made.path.read_bytes()
    source = FileSource(made.backup)
    try:
        report = repair(made.path, [source] if backup else [])
    finally:
        source.database.close()
    assert not report.damaged
    undone = bytearray(made.path.read_bytes())
    for cut in made.path.parent.glob("x.svcdb.*cut-*"):
        undone[int(cut.name.rpartition("cut-")[2].removesuffix(".unfinished")) :] = cut.read_bytes()
    for name in report.saved_to:
        if ".repaired-cut" not in name:
            for offset, data in reversed(list(saved_originals(made.path.with_name(name)))):
                undone[offset : offset + len(data)] = data
    assert undone[: len(damaged)] == damaged, "overwritten and not saved"
    with Database(made.path) as database:
        assert not verify(database).damaged
        check_nothing_else(made, database)
    again = repair(made.path)
    assert not again.changed
    assert len(again.lost) == len(report.lost)
    return report


def codes(database: Database) -> list[str]:
    return [one.code for one in database.findings()]


def check_nothing_else(made: Made, database: Database) -> None:
    for root, files in made.versions:
        version = database.version_of(root)
        for path, content in files.items():
            try:
                entry = version.get(path)
                found = None if entry is None else version.read_all(entry)
            except SvcError:
                continue
            assert found in (None, content), "other bytes were read"


@pytest.mark.parametrize("beside", [True, False], ids=["with its directory", "alone"])
@pytest.mark.parametrize("where", ["header", "headers", "payload"])
@pytest.mark.parametrize("kind", KINDS)
def test_from_a_backup_every_record_is_restored_as_it_was(
    made: Made, kind: ObjectKind, where: str, beside: bool
) -> None:
    hit = [*records_of(made.path, kind), *records_of(made.path, kind, system=True)][::3]
    for record in hit:
        if where == "payload":
            flip(made.path, record.offset + RECORD_HEADER_SIZE + record.stored_length // 2)
        else:
            count = 1 if where == "header" else 40
            flip(made.path, *range(record.offset + 20, record.offset + 20 + count))
    if beside:
        with Database(made.path, read_only=True) as database:
            assert not verify(database).ok  # which notes in the index what is damaged
    else:
        shutil.rmtree(f"{made.path}.d")
    report = repaired(made, backup=True)
    assert report.ok
    assert (report.restored_records, report.voided_records) == (len(hit), 0)
    assert made.path.read_bytes().startswith(made.content[: records_of(made.backup)[-1].offset])
    with Database(made.path) as database:
        assert database.head().root == made.root
        made.check(database)


def test_one_changed_byte_of_a_header_needs_no_backup(made: Made) -> None:
    hit = records_of(made.path)[:-2:4]
    chance = random.Random(3)
    flip(made.path, *(one.offset + chance.randrange(RECORD_HEADER_SIZE) for one in hit), 40)
    report = repaired(made, backup=False)
    assert report.ok
    assert made.path.read_bytes().startswith(made.content[: records_of(made.backup)[-1].offset])


def test_one_changed_bit_of_a_short_payload_needs_no_backup(made: Made) -> None:
    node = records_of(made.path, ObjectKind.NODE)[5]
    flip(made.path, node.offset + RECORD_HEADER_SIZE + 9)
    assert repaired(made, backup=False).ok


@pytest.mark.parametrize("beside", [True, False], ids=["with its directory", "alone"])
def test_what_nobody_has_is_lost_and_named_and_the_rest_is_well(made: Made, beside: bool) -> None:
    with Database(made.path) as database:
        entry = database.at().get(("large", "l7"))
        (first, _), *_ = database.at().chunks(entry)
        place = database.objects.find(first)
    flip(made.path, *range(place.offset + 200, place.offset + 260))
    if not beside:
        shutil.rmtree(f"{made.path}.d")
    report = repaired(made, backup=False)
    assert not report.ok
    assert [(one.path, one.hash) for one in report.lost] == [("/large/l7", first.hex())]
    (held,) = report.lost[0].held
    assert (held.ref, held.first, held.is_present) == ("HEAD", 8, True)
    with Database(made.path) as database:
        version = database.at()
        with pytest.raises(CorruptRecord, match="was lost") as refusal:
            version.read_all(version.get(("large", "l7")))
        assert refusal.value.details["lost"]
        system = database.system()
        (name,) = [name for name, _ in system.entries(REPORTS)]
        told = json.loads(system.read_all(system.get((*REPORTS, name))))
        assert [one["path"] for one in told["lost"]] == ["/large/l7"]
        again = verify(database)
        assert not again.damaged
        assert not again.ok
        assert "database.lost" in codes(database)
        assert [one.path for one in again.lost] == ["/large/l7"]
        # Whoever brings the same content makes it whole again.
        content = made.versions[-1][1][("large", "l7")]
        with database.transaction() as transaction:
            transaction.put(("again",), content)
        made.check(database)
        assert not verify(database).lost
        assert codes(database) == []
    assert repair(made.path).ok
    with Database(made.path) as database:
        assert not Lost.of(database)


def test_a_finding_stands_while_head_or_a_snapshot_needs_what_was_lost(made: Made) -> None:
    with Database(made.path) as database:
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/before", database.head().root)
        (first, _), *_ = database.at().chunks(database.at().get(("large", "l7")))
        place = database.objects.find(first)
    flip(made.path, *range(place.offset + 200, place.offset + 260))
    repaired(made, backup=False)
    with Database(made.path) as database:
        (finding,) = database.findings()
        assert (finding.code, finding.detail) == ("database.lost", "One is /large/l7 in HEAD.")
        assert "/large" not in finding.message
        with database.transaction() as transaction:
            transaction.delete(("large", "l7"))
        (finding,) = database.findings()
        assert finding.detail == "One is /large/l7 in snapshots/before."
        assert not verify(database).ok
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/before", None)
        assert codes(database) == []
        assert verify(database).ok


def test_a_verification_notes_what_was_copied_or_moved_since(made: Made) -> None:
    with Database(made.path) as database:
        (first, _), *_ = database.at().chunks(database.at().get(("large", "l7")))
        place = database.objects.find(first)
    flip(made.path, *range(place.offset + 200, place.offset + 260))
    repaired(made, backup=False)
    with Database(made.path) as database:
        with database.transaction() as transaction:
            transaction.move(("large", "l7"), ("elsewhere",))
        verify_versions(database, [], [])
        (finding,) = database.findings()
        assert finding.detail == "One is /elsewhere in HEAD."


@pytest.mark.parametrize("beside", [True, False], ids=["with its directory", "alone"])
def test_a_lost_commit_record_leaves_its_version_and_is_named(made: Made, beside: bool) -> None:
    commit = records_of(made.path, ObjectKind.COMMIT)[4]
    flip(made.path, *range(commit.offset + 5, commit.offset + 150))
    if not beside:
        shutil.rmtree(f"{made.path}.d")
    report = repaired(made, backup=False)
    assert (report.lost_commits, report.lost, report.ok) == ([5], [], False)
    with Database(made.path) as database:
        made.check(database)
        assert [one.message for one in verify(database).lost] == [
            "The record of commit 5 was lost: who, when and what for."
        ]
        assert 5 not in [one.sequence for one in database.commits()]


@pytest.mark.parametrize("backup", [True, False])
def test_a_directory_that_is_lost_is_no_damage_any_more(made: Made, backup: bool) -> None:
    with Database(made.path) as database:
        directory = database.at().get(("d1",))
        place = database.objects.find(directory.hash)
    flip(made.path, *range(place.offset + 80, place.offset + 120))
    report = repaired(made, backup=backup)
    assert report.ok == backup
    assert [one.path for one in report.lost] == ([] if backup else ["/d1"])
    with Database(made.path) as database:
        if not backup:
            with pytest.raises(CorruptRecord, match="was lost"):
                list(database.at().entries(("d1",)))
        with database.transaction() as transaction:
            transaction.delete(("d1",), recursive=True)
            transaction.put(("d2", "new"), b"it goes on")
        assert database.at().get(("d1",)) is None


@pytest.mark.parametrize("backup", [True, False])
@pytest.mark.parametrize("system", [True, False], ids=["system tree", "HEAD"])
def test_a_lost_root_is_replaced_by_the_latest_that_is_there(made: Made, system: bool, backup: bool) -> None:
    with Database(made.path) as database:
        with database.transaction() as transaction:
            transaction.put_system(("early",), b"1")
        earlier = database.head().root
        with database.transaction() as transaction:
            transaction.put_system(("late",), b"2")
            transaction.put(("late",), b"2")
        head = database.head()
        place = database.objects.find(head.system_root if system else head.root)
    shutil.copy(made.path, made.path.with_name("later.svcdb"))
    made = dataclasses.replace(made, backup=made.path.with_name("later.svcdb"))
    flip(made.path, *range(place.offset + 80, place.offset + 120))
    report = repaired(made, backup=backup)
    assert len(report.replaced_roots) == (0 if backup else 1)
    with Database(made.path) as database:
        assert database.head().root == (earlier if not system and not backup else head.root)
        if system and not backup:
            assert database.system().get(("late",)) is None
        assert database.system().read_all(database.system().get(("early",))) == b"1"
        with database.transaction() as transaction:
            transaction.put(("after",), b"it goes on")
        assert verify(database).ok


@pytest.mark.parametrize("backup", [True, False])
@pytest.mark.parametrize("beside", [True, False], ids=["with its directory", "alone"])
def test_a_last_commit_that_is_gone_is_taken_from_the_backup_or_given_up(
    made: Made, beside: bool, backup: bool
) -> None:
    commit = records_of(made.path, ObjectKind.COMMIT)[-1]
    if not beside:
        shutil.rmtree(f"{made.path}.d")
    flip(made.path, *range(commit.offset, commit.offset + 100))
    report = repaired(made, backup=backup)
    assert report.ok == backup
    assert len(report.given_up_commits) == (0 if backup else 1)
    with Database(made.path) as database:
        made.check(database)
        assert (dict(database.refs()) == {}) == (not backup)


@pytest.mark.parametrize("beside", [True, False], ids=["with its directory", "alone"])
@pytest.mark.parametrize("length", [0.3, 0.9])
def test_a_file_that_was_cut_short_is_continued_from_the_backup(
    made: Made, length: float, beside: bool
) -> None:
    if not beside:
        shutil.rmtree(f"{made.path}.d")
    with open(made.path, "r+b") as file:
        file.truncate(int(len(made.content) * length))
    report = repaired(made, backup=True)
    assert report.ok
    assert len(report.extended_from) == 1
    with Database(made.path) as database:
        assert database.head().root == made.root
        made.check(database)


@pytest.mark.parametrize("beside", [True, False], ids=["with its directory", "alone"])
def test_the_header_of_the_file_is_restored(made: Made, beside: bool) -> None:
    if not beside:
        shutil.rmtree(f"{made.path}.d")
    with open(made.path, "r+b") as file:
        file.write(bytes(100))
    if not beside:
        with pytest.raises(ForeignFile):
            repair(made.path)
    assert repaired(made, backup=not beside).ok
    with Database(made.path) as database:
        assert database.database_id == made.content[24:40]


def test_what_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.svcdb"
    path.write_bytes(content := random.Random(1).randbytes(5000))
    with pytest.raises(ForeignFile):
        repair(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_that_somebody_has_open_is_not_repaired(made: Made) -> None:
    with Database(made.path), pytest.raises(DatabaseBusy, match="for itself"):
        repair(made.path)


@pytest.mark.parametrize("backup", [True, False])
def test_a_database_within_the_database_is_content(made: Made, backup: bool, tmp_path: Path) -> None:
    """Behind a damaged header the records of a stored database pass for records."""
    inner = made.content[: 60_000 & ~7]
    with Database(made.path) as database:
        with database.transaction() as transaction:
            for number in range(8):
                transaction.put(("inner", f"{number}"), bytes(number) + inner)
        with database.transaction() as transaction:
            transaction.put(("behind",), b"it")
        version = database.at()
        files = {path: version.read_all(entry) for path, entry in version.walk(files_only=True)}
        places = [database.objects.find(entry.hash) for _, entry in version.entries(("inner",))]
    made.versions.append((version.root, files))
    later = tmp_path / "later.svcdb"
    shutil.copy(made.path, later)
    made = dataclasses.replace(made, backup=later)
    for place in places:
        flip(made.path, *range(place.offset + 2, place.offset + 20))
    try:
        assert repaired(made, backup=backup).ok
        with Database(made.path) as database:
            assert database.head().root == version.root
            made.check(database)
    finally:
        made.versions.pop()


def test_noise_zeros_and_cuts_anywhere_never_leave_it_damaged(made: Made) -> None:
    chance = random.Random(7)
    whole = made.path.with_name("whole.d")
    shutil.copytree(f"{made.path}.d", whole)
    for _ in range(12):
        for one in made.path.parent.glob("x.svcdb*"):
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        made.path.write_bytes(made.content)
        if chance.random() < 0.5:
            shutil.copytree(whole, f"{made.path}.d")
        with open(made.path, "r+b") as file:
            for _ in range(chance.choice((1, 4))):
                file.seek(chance.randrange(FIRST, len(made.content) - 6000))
                file.write(chance.choice((bytes(512), chance.randbytes(chance.randrange(1, 5000)))))
            if chance.random() < 0.3:
                file.truncate(len(made.content) - chance.randrange(2000))
        repaired(made, backup=False)


def test_a_collected_database_is_repaired_as_far_as_it_goes(made: Made) -> None:
    """What was collected is missing, and is no damage; what was lost keeps nobody from collecting."""
    with Database(made.path) as database:
        with database.transaction() as transaction:
            for number in range(12):
                transaction.delete(("text", f"t{number}"))
        lost = database.at().get(("d1",)).hash
        place = database.objects.find(lost)
        files = {one: database.at().read_all(entry) for one, entry in database.at().walk(files_only=True)}
        collect(database, upload_hours=0)
        assert verify(database).ok
    later = made.path.with_name("later.svcdb")
    shutil.copy(made.path, later)
    flip(made.path, *range(place.offset + 80, place.offset + 120))
    for backup in (False, True):
        report = repair(made.path, [source] if backup and (source := FileSource(later)) else [])
        assert report.ok == backup
        with Database(made.path) as database:
            assert collect(database, upload_hours=0).garbage_entries >= 0
            report = verify(database)
            assert not report.damaged
            assert report.ok == backup
            assert bool(report.lost) == (not backup)
            if backup:
                source.database.close()
                version = database.at()
                found = {one: version.read_all(entry) for one, entry in version.walk(files_only=True)}
                assert found == files


@pytest.mark.parametrize("backup", [True, False])
def test_a_repair_that_is_killed_at_any_write_is_done_again(made: Made, backup: bool) -> None:
    hit = [one for one in records_of(made.path)[:-1] if one.stored_length > 60][::6]
    flip(made.path, *(position for one in hit for position in (one.offset + 9, one.offset + 130)))
    damaged, beside = made.path.read_bytes(), made.path.with_name("beside.d")
    shutil.copytree(f"{made.path}.d", beside)
    chance = random.Random(5)
    for _ in range(6):
        for one in made.path.parent.glob("x.svcdb*"):
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        made.path.write_bytes(damaged)
        shutil.copytree(beside, f"{made.path}.d")
        child = os.fork()
        if child == 0:
            die_at_a_write(chance.randrange(40))
            repair(made.path, [FileSource(made.backup)] if backup else [])
            os._exit(0)
        os.waitpid(child, 0)
        chance.random()
        source = FileSource(made.backup)
        report = repair(made.path, [source] if backup else [])
        source.database.close()
        assert not report.damaged
        with Database(made.path) as database:
            assert not verify(database).damaged
            check_nothing_else(made, database)
            if backup:
                assert database.head().root == made.root
                made.check(database)


def die_at_a_write(number: int) -> None:
    """Lets this process die at a write, a sync or a cut to come; a write is done by half."""
    left = number

    def dying(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def act(*arguments: Any) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                if name == "pwritev":
                    descriptor, pieces, offset = arguments
                    whole = b"".join(pieces)
                    os.pwrite(descriptor, whole[: len(whole) // 2], offset)
                os._exit(9)
            return call(*arguments)

        return act

    for name in ("pwritev", "fdatasync", "fsync", "ftruncate"):
        setattr(FileOperations, name, staticmethod(dying(name, getattr(os, name))))


def test_another_copy_in_the_log_counts(made: Made) -> None:
    content = made.versions[-1][1][("d1", "f1")]
    with Database(made.path) as database:
        place = database.objects.find(database.at().get(("d1", "f1")).hash)
        flip(made.path, *range(place.offset + 80, place.offset + 90))
        with pytest.raises(CorruptRecord):
            database.at().read_all(database.at().get(("d1", "f1")))
        with database.transaction() as transaction:
            transaction.put(("again",), content)
        assert not verify(database).ok, "the first copy is still there"
    report = repaired(made, backup=False)
    assert report.ok
    assert (report.voided_records, report.fetched_objects) == (1, 0)
    with Database(made.path) as database:
        made.check(database)


@pytest.mark.parametrize("repairs", [True, False])
def test_a_header_that_a_collection_left_torn_is_no_damage(
    made: Made, repairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[int, int]] = []

    class Killed(BaseException):
        pass

    def die(self: Sweeper, planned: Iterable[tuple[int, int]], *_: object) -> None:
        runs.extend(planned)
        raise Killed

    with Database(made.path) as database:
        with database.transaction() as transaction:
            transaction.delete(("text",), recursive=True)
        with monkeypatch.context() as patch:
            patch.setattr(Sweeper, "sweep", die)
            with pytest.raises(Killed):
                collect(database, upload_hours=0)
        root = database.head().root
    for begin, _ in runs[::2]:
        flip(made.path, *range(begin + 3, begin + 60))
    with Database(made.path, read_only=True) as database:
        assert verify(database).ok
    if repairs:
        repair(made.path)
    with Database(made.path) as database:
        assert verify(database).ok
        assert database.head().root == root
        collect(database, upload_hours=0)
        assert verify(database).ok
