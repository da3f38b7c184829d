"""Damaged records of commits: before what is kept they disturb no collection, behind it nothing is lost."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.clock import now_ms
from svc.database import Database, collect
from svc.database.collection.record import STATE_PATH
from svc.errors import CorruptRecord
from svc.log.framing import RECORD_HEADER_SIZE
from svc_maintenance.repair import repair
from svc_maintenance.verification import verify

DAY_MS = 86_400_000
OLD, ALL = 20, 30
"""Number of the last of the commits that are not kept, and of the last of all."""

Spoil = Callable[..., int]


def content(number: int) -> bytes:
    return random.Random(number).randbytes(5000)


@pytest.fixture
def since(path: Path) -> int:
    """A history with two parts, and when the second began."""
    began = 0
    with Database(path) as database:
        for number in range(1, ALL + 1):
            if number == OLD + 1:
                time.sleep(0.02)
                began = now_ms()
                time.sleep(0.25)  # A collection is asked for a little later than its days are counted.
            with database.transaction() as transaction:
                transaction.put(("file",), database.store_bytes(content(number)))
    return began


@pytest.fixture(params=["payload", "both", "index made anew"])
def spoil(request: pytest.FixtureRequest, path: Path) -> Spoil:
    """Damages records of commits."""

    def damage(*sequences: int) -> None:
        with Database(path) as database:
            places = [database.objects.index.commit_place(one) for one in sequences]
        with path.open("r+b") as file:
            for place in places:
                assert place is not None
                first = RECORD_HEADER_SIZE if request.param == "payload" else 8
                file.seek(place[0] + first)
                wrong = bytes(byte ^ 0x55 for byte in file.read(RECORD_HEADER_SIZE))
                file.seek(place[0] + first)
                file.write(wrong)
        if request.param == "index made anew":
            shutil.rmtree(f"{path}.d")

    return damage


def collected_since(database: Database, since: int) -> int:
    """Collects what is from before a time, and returns the horizon."""
    report = collect(database, keep_days=(now_ms() - since) / DAY_MS)
    assert report.waiting is None
    return report.horizon


def damages(database: Database) -> set[str]:
    return {one.message for one in verify(database).damaged}


@pytest.mark.parametrize("damaged", [range(1, 2), range(7, 9), range(2, OLD)], ids=str)
def test_damaged_commits_before_what_is_kept_disturb_no_collection(
    path: Path, since: int, spoil: Spoil, damaged: range
) -> None:
    spoil(*damaged)
    with Database(path) as database:
        before = damages(database)
        garbage = collect(database, keep_days=(now_ms() - since) / DAY_MS, dry_run=True).garbage_entries
        assert garbage >= OLD - 2
        assert collected_since(database, since) == OLD
        for number in range(OLD, ALL + 1):
            version = database.version_of(database.commit(number).root)
            assert version.read_all(version.get(("file",))) == content(number)  # type: ignore[arg-type]
        assert damages(database) <= before


def test_the_version_of_a_damaged_commit_is_kept_as_the_next_commit_names_it(
    path: Path, since: int, spoil: Spoil
) -> None:
    with Database(path) as database:
        root = database.commit(OLD + 4).root
    spoil(OLD + 4)
    with Database(path) as database:
        assert collected_since(database, since) == OLD
        version = database.version_of(root)
        assert version.read_all(version.get(("file",))) == content(OLD + 4)  # type: ignore[arg-type]
        assert len(damages(database)) <= 2  # the record, and that the log is damaged there


def test_what_nobody_can_name_is_not_collected_before_a_repair_has_given_it_up(
    path: Path, since: int, spoil: Spoil
) -> None:
    spoil(OLD + 4, OLD + 5)
    with Database(path) as database:
        size = database.objects.log.storage.size()
        with pytest.raises(CorruptRecord, match="svc verify"):
            collected_since(database, since)
        assert database.objects.log.storage.size() == size
    assert repair(path).lost_commits == [OLD + 4, OLD + 5]
    with Database(path) as database:
        assert collected_since(database, since) == OLD
        assert verify(database).ok


@pytest.mark.parametrize("with_root", [False, True])
def test_where_what_collections_say_of_themselves_is_lost_a_repair_says_it_anew(
    path: Path, since: int, with_root: bool
) -> None:
    with Database(path) as database:
        horizon = collected_since(database, since)
        entry = database.system().get(STATE_PATH)
        assert entry is not None
        assert entry.record is not None
        (chunk,) = database.objects.read_record(entry.record).chunks
        lost = [chunk, database.head().root] if with_root else [chunk]
        offsets = [database.objects.find(one).offset for one in lost]
    with path.open("r+b") as file:
        for offset in offsets:
            file.seek(offset)
            file.write(b"rotten" * 20)
    report = repair(path)
    assert [one.path for one in report.lost] == ["system:/collection"] + ["/"] * with_root
    assert len(report.replaced_roots) == with_root
    with Database(path) as database:
        assert database.horizon() == horizon
        assert verify(database).ok
        assert collect(database).horizon > horizon
    assert not repair(path).changed
    with Database(path) as database:
        assert not database.opening.rebuilt
