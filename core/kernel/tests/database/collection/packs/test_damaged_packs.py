"""Packs that rot, and commits that rot before they are packed: what is lost, and what a repair does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from history_material import HISTORY, Told, commit, packs, told
from svc.database import Database, collect
from svc.database.packed_commits import RANGE, pack_path
from svc.errors import CorruptRecord
from svc.log import record_size
from svc.log.framing import RECORD_HEADER_SIZE
from svc_maintenance.repair import FileSource, repair
from svc_maintenance.verification import verify


def test_a_range_with_a_damaged_commit_is_left_alone(path: Path) -> None:
    with Database(path) as database:
        place = database.objects.index.commit_place(7)
    assert place is not None
    spoil(path, place[0] + RECORD_HEADER_SIZE + 40)
    with Database(path) as database:
        collect(database)
        assert packs(database) == 1
        assert database.objects.index.commit_place(6) is not None
        with pytest.raises(CorruptRecord):
            database.commit(7)
        database.commit(8)


def spoil(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        wrong = bytes(byte ^ 0x55 for byte in file.read(16))
        file.seek(offset)
        file.write(wrong)


def chunk_of_pack(database: Database, sequence: int) -> int:
    entry = database.system().get(pack_path(sequence))
    assert entry is not None
    assert entry.record is not None
    (chunk,) = database.objects.read_record(entry.record).chunks
    return database.objects.find(chunk).offset


def damaged_pack(path: Path) -> Told:
    """Collects, and lets a pack rot."""
    with Database(path) as database:
        before = told(database)
        collect(database)
        offset = chunk_of_pack(database, 1)
    spoil(path, offset + RECORD_HEADER_SIZE + 100)
    return before


def test_a_damaged_pack_is_found_and_only_its_commits_are_missing(path: Path) -> None:
    before = damaged_pack(path)
    with Database(path) as database:
        with pytest.raises(CorruptRecord):
            database.commit(1)
        assert database.read_commit(RANGE) == before[RANGE - 1]
        assert database.read_commit(RANGE + 1) == before[RANGE]
        report = verify(database)
        assert any(one.path == "system:/packed-commits/00000000000000000128" for one in report.damaged)
        assert sum("cannot be read" in one.message for one in report.damaged) == RANGE - 1
        commit(database, 1)
        collect(database)
        assert database.read_commit(RANGE + 1) == before[RANGE]
    shutil.rmtree(f"{path}.d")
    with Database(path) as database:
        assert database.read_commit(RANGE + 1) == before[RANGE]


@pytest.mark.parametrize("is_older", [True, False], ids=["from before the packs", "with the packs"])
def test_a_repair_restores_a_damaged_pack_from_a_copy(path: Path, tmp_path: Path, is_older: bool) -> None:
    copy = tmp_path / "copy.svcdb"
    if is_older:
        shutil.copy(path, copy)
        before = damaged_pack(path)
    else:
        with Database(path) as database:
            collect(database)
        shutil.copy(path, copy)
        before = damaged_pack(path)
    source = FileSource(copy)
    try:
        report = repair(path, [source])
    finally:
        source.close()
    assert not report.damaged
    assert not report.lost_commits
    with Database(path) as database:
        assert told(database) == before
        assert verify(database).ok
    shutil.rmtree(f"{path}.d")
    with Database(path) as database:
        assert told(database) == before


def test_a_repair_restores_a_damaged_commit_from_a_copy_that_has_it_in_a_pack(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.svcdb"
    shutil.copy(path, copy)
    with Database(copy) as database:
        collect(database)
    with Database(path) as database:
        before = told(database)
        place = database.objects.index.commit_place(7)
        commit(database, HISTORY)  # it went its own way: the copy's end is none for it
    assert place is not None
    spoil(path, place[0] + RECORD_HEADER_SIZE + 40)
    source = FileSource(copy)
    try:
        report = repair(path, [source])
    finally:
        source.close()
    assert not report.lost_commits
    with Database(path) as database:
        assert told(database) == before


def test_where_the_root_of_the_system_tree_is_lost_an_earlier_one_has_the_packs(path: Path) -> None:
    with Database(path) as database:
        before = told(database)
        collect(database)
        root = database.head().system_root
        offset = database.objects.find(root).offset
    spoil(path, offset + RECORD_HEADER_SIZE + 10)
    report = repair(path)
    assert len(report.replaced_roots) == 1
    assert report.lost_commits == []
    with Database(path) as database:
        assert database.head().system_root != root
        assert told(database) == before
        assert verify(database).ok
    assert not repair(path).changed


def test_a_file_that_was_cut_within_what_a_copy_has_packed_is_not_overwritten(
    path: Path, tmp_path: Path
) -> None:
    """Nothing shows that the copy goes on from there, and it lacks versions that the file still has."""
    copy = tmp_path / "copy.svcdb"
    shutil.copy(path, copy)
    with Database(copy) as database:
        collect(database)
    with Database(path) as database:
        offset, length = database.objects.index.commit_places(49, 1)[0][1:]
        root = database.commit(40).root
    shutil.rmtree(f"{path}.d")
    os.truncate(path, offset + record_size(length))
    whole = path.read_bytes()
    source = FileSource(copy)
    try:
        report = repair(path, [source])
    finally:
        source.close()
    assert not report.extended_from
    assert path.read_bytes()[: len(whole)] == whole
    with Database(path) as database:
        assert database.head().sequence >= 50
        assert list(database.version_of(root).walk())


def test_without_a_copy_a_repair_says_which_commits_are_lost(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.svcdb"
    shutil.copy(path, copy)
    before = damaged_pack(path)
    report = repair(path)
    assert report.lost_commits == list(range(1, RANGE))
    with Database(path) as database:
        assert database.read_commit(RANGE + 1) == before[RANGE]
        assert verify(database).ok
        fed = database.feed(0)
        assert next(fed) == before[RANGE - 1]
        collect(database)
    assert not repair(path).changed
    source = FileSource(copy)
    try:
        assert not repair(path, [source]).lost_commits
    finally:
        source.close()
    with Database(path) as database:
        assert told(database) == before
        assert verify(database).lost == []


def test_a_clean_end_within_commits_that_were_lost_with_their_pack_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "y.svcdb"
    for numbers in (range(90), range(90, HISTORY)):
        with Database(path) as database:
            for number in numbers:
                commit(database, number)
    damaged_pack(path)
    assert repair(path).lost_commits
    with Database(path) as database:
        report = verify(database)
        assert report.damaged == []
        assert len(report.lost) == RANGE  # its commits, and the pack
        offset = chunk_of_pack(database, RANGE + 1)
    # Another pack that rots is told all the same.
    spoil(path, offset + RECORD_HEADER_SIZE + 100)
    with Database(path) as database:
        assert verify(database).damaged


def test_commits_that_were_lost_before_the_horizon_keep_no_collection_from_what_is_behind(path: Path) -> None:
    damaged_pack(path)
    assert repair(path).lost_commits
    with Database(path) as database:
        horizon = database.horizon()
        commit(database, HISTORY)
        assert collect(database, keep_days=1).horizon == horizon
