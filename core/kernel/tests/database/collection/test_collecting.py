"""What a collection takes away, what it keeps, and what it says."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from unittest import mock

import pytest

from svc.database import EMPTY_ROOT, Database, collect
from svc.database.collection.plan import Plan, decode_plan
from svc.database.collection.record import read_state
from svc.errors import (
    CorruptRecord,
    DatabaseBusy,
    InsufficientStorage,
    InvalidInput,
    NotFound,
    ReadOnly,
    ServiceUnavailable,
)
from svc.hashing import Hash, hash_content
from svc.log import FIRST, FileOperations
from svc.log.collectable_file import CollectableFile
from svc_maintenance.verification import verify

MANY = 2_000_000


def data(seed: int, size: int = 3000) -> bytes:
    return random.Random(seed).randbytes(size)


def put(database: Database, name: str, content: bytes, ref: str = "HEAD") -> Hash:
    with database.transaction(ref=ref) as transaction:
        transaction.put(tuple(name.split("/")), database.store_bytes(content))
    assert transaction.result is not None
    return transaction.result.version


def delete(database: Database, name: str) -> None:
    with database.transaction() as transaction:
        transaction.delete(tuple(name.split("/")))


def read(database: Database, name: str, root: Hash | None = None) -> bytes:
    version = database.at(root)
    entry = version.get(tuple(name.split("/")))
    assert entry is not None, name
    return version.read_all(entry)


def anew(database: Database, path: Path) -> Database:
    """Closes a database and opens it with an index that is made anew from the log."""
    database.close()
    shutil.rmtree(f"{path}.d")
    return Database(path)


def test_what_no_version_needs_goes_and_its_space_comes_back(database: Database) -> None:
    put(database, "kept", data(1, MANY))
    put(database, "gone", data(2, MANY))
    delete(database, "gone")
    report = collect(database)
    assert report.reclaimed_bytes > MANY
    assert report.allocated_before - report.allocated_after > MANY * 0.95
    assert report.garbage_entries > 10
    assert report.live_entries > 10
    assert (report.versions_scanned, report.dry_run, report.waiting, report.warning) == (1, False, None, None)
    assert report.horizon == database.horizon() == 3
    assert read(database, "kept") == data(1, MANY)
    assert verify(database).ok
    assert database.objects.index.condemned_count() == 0


def test_a_dry_run_says_the_same_and_changes_nothing_at_all(database: Database, path: Path) -> None:
    first = put(database, "gone", data(2, MANY))
    delete(database, "gone")
    before = path.read_bytes(), database.head(), database.objects.index.object_count()
    said = collect(database, dry_run=True)
    assert (path.read_bytes(), database.head(), database.objects.index.object_count()) == before
    assert database.horizon() == 0
    assert read(database, "gone", first) == data(2, MANY)
    done = collect(database)
    assert (said.garbage_entries, said.reclaimed_bytes) == (done.garbage_entries, done.reclaimed_bytes)
    assert said.dry_run


def test_named_versions_stay_whole_and_unnamed_ones_are_gone(database: Database) -> None:
    named = put(database, "a", data(1))
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/named", named)
    unnamed = put(database, "a", data(2))
    with database.transaction() as transaction:
        transaction.copy_ref("HEAD", "forks/work")
    forked = put(database, "b", data(3), "forks/work")
    put(database, "a", data(4))
    report = collect(database)
    assert report.versions_scanned == 3
    assert read(database, "a", named) == data(1)
    assert read(database, "a", forked) == data(2)
    assert read(database, "b", forked) == data(3)
    with pytest.raises(NotFound, match="collected"):
        database.at(unnamed)
    assert verify(database).ok


def test_versions_of_the_last_days_stay_if_they_are_to(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 86_400_000
    clock = [1_790_000_000_000]
    for module in ("svc.database.fold", "svc.database.collection.running"):
        monkeypatch.setattr(f"{module}.now_ms", lambda: clock[0])
    roots = []
    for number in range(6):
        roots.append(put(database, "a", data(number)))
        clock[0] += day
    # Six days ago 0 was stored, yesterday 5: two and a half days ago 3 was there.
    report = collect(database, keep_days=2.5)
    assert report.horizon == 4
    assert report.versions_scanned == 3
    for number in (3, 4, 5):
        assert read(database, "a", roots[number]) == data(number)
    for number in (0, 1, 2):
        with pytest.raises(NotFound, match="collected"):
            database.at(roots[number])
    assert collect(database, keep_days=50).horizon == 4
    assert verify(database).ok


def test_what_is_stored_again_after_a_collection_is_there(database: Database, path: Path) -> None:
    for size in (3000, 700_000):
        put(database, "a", data(1, size))
        delete(database, "a")
        put(database, "b", b"other")
        collect(database)
        put(database, "a", data(1, size))
        assert read(database, "a") == data(1, size)
        collect(database)
        assert read(database, "a") == data(1, size)
        delete(database, "a")
    put(database, "a", data(1, 700_000))
    database = anew(database, path)
    assert read(database, "a") == data(1, 700_000)
    assert verify(database).ok
    database.close()


def test_the_index_made_anew_is_the_one_that_was_kept(database: Database, path: Path) -> None:
    chance = random.Random(7)
    for number in range(60):
        put(database, f"{chance.randrange(6)}/{chance.randrange(6)}", data(number, chance.randrange(150_000)))
        if number % 20 == 19:
            collect(database)
    kept = dict(database.objects.index.objects())
    totals = database.totals()
    database = anew(database, path)
    assert dict(database.objects.index.objects()) == kept
    assert database.totals() == totals
    assert verify(database).ok
    database.close()


def test_the_totals_are_those_of_what_is_left(database: Database) -> None:
    for number in range(4):
        put(database, str(number), data(number, 400_000))
    delete(database, "1")
    collect(database)
    chunks = [place for _, place in database.objects.index.objects() if place.kind == 1]
    totals = database.totals()
    assert (totals.chunks, totals.chunk_bytes) == (len(chunks), sum(place.stored_length for place in chunks))
    assert totals.files == 3


def test_uploads_that_nobody_finished_go_and_those_under_way_stay(database: Database) -> None:
    put(database, "first", b"1")
    abandoned = database.store_bytes(data(1, MANY))
    kept = database.store_bytes(data(2, MANY))
    put(database, "later", b"2")
    del abandoned
    waiting = collect(database, wait_seconds=0.05)
    assert waiting.waiting is not None
    assert waiting.reclaimed_bytes == 0
    with database.transaction() as transaction:
        transaction.put(("kept",), kept)
    del kept, transaction
    report = collect(database, wait_seconds=5)
    assert report.reclaimed_bytes > MANY
    assert report.waiting is None
    assert read(database, "kept") == data(2, MANY)
    assert verify(database).ok


def test_chunks_that_clients_uploaded_ahead_stay_for_a_day(database: Database) -> None:
    content = data(1, 100_000)
    database.put_chunks({hash_content(content): content})
    told, other = data(2, 5000), data(3, 5000)
    put(database, "told", told)
    put(database, "other", other)
    database.pin([hash_content(told)])
    delete(database, "told")
    delete(database, "other")
    collect(database)
    assert database.has_chunk(hash_content(content))
    assert database.has_chunk(hash_content(told))
    assert not database.has_chunk(hash_content(other))
    put(database, "whatever", data(4, 100_000))
    delete(database, "whatever")
    collect(database, upload_hours=0)
    assert not database.has_chunk(hash_content(content))
    assert not database.has_chunk(hash_content(told))
    assert database.put_chunks({hash_content(content): content})
    assert database.chunk(hash_content(content)) == content


def test_where_nobody_knows_who_was_told_young_chunks_stay(database: Database, path: Path) -> None:
    put(database, "a", data(1, 100_000))
    delete(database, "a")
    database = anew(database, path)
    put(database, "b", data(2, 100_000))
    delete(database, "b")
    collect(database)
    assert database.has_chunk(database.store_bytes(data(1, 100_000)).cut[0][0])
    assert not database.has_chunk(hash_content(data(2, 100_000)))
    collect(database, upload_hours=0)
    database.close()


def test_nothing_is_done_where_only_the_last_collection_left_something(database: Database) -> None:
    put(database, "a", data(1))
    delete(database, "a")
    collect(database)
    sequence = database.head().sequence
    report = collect(database)
    assert report.reclaimed_bytes == 0
    assert database.head().sequence == sequence
    assert verify(database).ok


def test_an_empty_database_and_one_without_garbage_are_collected(database: Database) -> None:
    assert collect(database).garbage_entries == 0
    put(database, "a", data(1))
    assert collect(database).reclaimed_bytes == 0
    assert database.horizon() == 0
    assert database.at().root != EMPTY_ROOT


def test_where_holes_cannot_be_made_voids_are_written_and_a_warning_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _offset: int, _length: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(FileOperations, "punch_hole", staticmethod(refuse))
    with Database(path) as database:
        put(database, "a", data(1, MANY))
        delete(database, "a")
        report = collect(database)
        assert report.reclaimed_bytes > MANY
        assert "svc compact" in (report.warning or "")
        assert verify(database).ok
        assert collect(database, dry_run=True).garbage_entries < 20


def test_small_pieces_that_give_nothing_back_are_told(database: Database) -> None:
    """Each dead record lies between two that are needed, in blocks that they share."""
    for begin in range(0, 3000, 600):
        with database.transaction() as transaction:
            for number in range(begin, begin + 600):
                transaction.put((f"{number}",), data(number, 1500))
    with database.transaction() as transaction:
        for number in range(0, 3000, 2):
            transaction.delete((f"{number}",))
    report = collect(database)
    assert report.reclaimed_bytes > 2_000_000
    assert "little came back" in (report.warning or "")
    assert verify(database).ok


def test_what_makes_no_sense_is_refused(database: Database, path: Path) -> None:
    for wrong in ({"keep_days": -1}, {"upload_hours": float("nan")}, {"wait_seconds": 1e9}):
        with pytest.raises(InvalidInput):
            collect(database, **wrong)
    put(database, "a", b"1")
    with Database(path, read_only=True) as reader:
        with pytest.raises(ReadOnly):
            collect(reader)
        assert collect(reader, dry_run=True).live_entries > 0


def test_only_one_collects_at_a_time(database: Database, path: Path) -> None:
    put(database, "a", data(1, MANY))
    delete(database, "a")
    refused = 0

    def meet(_phase: str, _done: int, _total: int) -> None:
        nonlocal refused
        with Database(path) as other:
            for one in (other, database):
                with pytest.raises(DatabaseBusy):
                    collect(one)
                refused += 1

    collect(database, progress=meet)
    assert refused
    collect(database)


def test_a_damaged_directory_stops_the_collection_before_it_changes_anything(
    database: Database, path: Path
) -> None:
    put(database, "deep/er/a", data(1))
    put(database, "deep/er/b", data(2))
    delete(database, "deep/er/a")
    place = database.objects.index.find(database.at().root)
    assert place is not None
    database.close()
    content = bytearray(path.read_bytes())
    content[place.offset + 90] ^= 1
    path.write_bytes(content)
    with Database(path) as damaged:
        sequence = damaged.head().sequence
        with pytest.raises(CorruptRecord, match="repair"):
            collect(damaged)
        assert damaged.head().sequence == sequence
        assert damaged.objects.index.condemned_count() == 0


def test_a_collection_that_is_stopped_leaves_everything_as_it_was(database: Database) -> None:
    first = put(database, "a", data(1, MANY))
    delete(database, "a")
    for phase in ("mark", "scan", "wait"):
        hold = database.hold() if phase == "wait" else None
        reached: list[str] = []
        report = collect(
            database,
            progress=lambda name, _done, _total, reached=reached: reached.append(name),
            should_stop=lambda reached=reached, phase=phase: phase in reached,
        )
        assert report.waiting == "The collection was stopped."
        if hold is not None:
            hold.release()
        assert report.reclaimed_bytes == 0
        assert database.objects.index.condemned_count() == 0
        assert database.objects.read(first)
    assert verify(database).ok


def test_the_log_is_read_by_one_who_knows_nothing_of_it(database: Database, path: Path) -> None:
    """Voids are what every reader of the format steps over: nothing but the file is needed."""
    for number in range(30):
        put(database, f"{number % 4}", data(number, 60_000))
    collect(database)
    records = list(database.objects.log.scan(FIRST))
    assert sum(record.stored_length for record in records if record.kind == 6) > 1_000_000
    copy = path.with_name("copy.svcdb")
    shutil.copyfile(path, copy)
    with Database(copy) as other:
        assert other.opening.rebuilt
        assert read(other, "1") == data(29, 60_000)
        assert other.horizon() == database.horizon()
        assert verify(other).ok


def test_a_plan_gives_its_runs_back_without_what_came_to_life(request: pytest.FixtureRequest) -> None:
    chance = random.Random(request.node.name)
    plan, runs, position = Plan(), [], FIRST
    for _ in range(20_000):
        begin = position + 8 * chance.randrange(1, 2000)
        records = [begin]
        for _ in range(chance.randrange(1, 6)):
            records.append(records[-1] + 8 * chance.randrange(9, 3000))
        plan.add(records[0], records[-1])
        runs.append(records)
        position = records[-1]
    assert list(plan.runs()) == [(one[0], one[-1]) for one in runs]
    wanted, taken = [], []
    for records in runs:
        alive = [chance.random() < 0.01 for _ in records[1:]]
        begin = records[0]
        for at, is_alive in enumerate(alive):
            if is_alive:
                taken.append((records[at], records[at + 1]))
                if begin < records[at]:
                    wanted.append((begin, records[at]))
                begin = records[at + 1]
        if begin < records[-1]:
            wanted.append((begin, records[-1]))
    chance.shuffle(taken)
    plan.take_out(taken)
    assert list(plan.runs()) == wanted
    assert list(decode_plan(plan.encode(5))) == wanted


def test_the_plan_of_the_format_page_is_what_is_written() -> None:
    plan = Plan()
    plan.add(128, 928)
    plan.add(1_000, 101_000)
    page = (Path(__file__).parents[5] / "docs" / "format" / "log.md").read_text(encoding="utf-8")
    (stated,) = re.findall(r"^    (535643504c414e01[0-9a-f]+)$", page, re.MULTILINE)
    assert plan.encode(1_790_000_000_123).hex() == stated
    assert list(decode_plan(bytes.fromhex(stated))) == [(128, 928), (1_000, 101_000)]
    for broken in (b"", b"SVCPLAN\x02" + bytes(8), bytes.fromhex(stated)[:16] + b"\x00\x01"):
        with pytest.raises(CorruptRecord):
            list(decode_plan(broken))


@pytest.mark.parametrize(("number", "error"), [(28, InsufficientStorage), (5, ServiceUnavailable)])
def test_a_disk_that_fails_in_the_middle_of_a_sweep_stops_nothing_but_the_sweep(
    path: Path, number: int, error: type[Exception]
) -> None:
    original = CollectableFile.overwrite
    calls = []

    def fail(self: CollectableFile, offset: int, content: bytes) -> None:
        calls.append(offset)
        if len(calls) > 2:
            raise OSError(number, "the disk fails")
        original(self, offset, content)

    with Database(path) as database:
        for one in range(20):
            put(database, str(one), data(one, 20_000))
        for one in range(0, 20, 2):
            delete(database, str(one))
        with mock.patch.object(CollectableFile, "overwrite", fail), pytest.raises(error):
            collect(database)
        assert len(calls) > 2
        put(database, "0", data(0, 20_000))
    with mock.patch.object(CollectableFile, "overwrite", fail), Database(path) as database:
        assert read(database, "0") == data(0, 20_000)
        put(database, "2", data(2, 20_000))
    copy = path.with_name("copy.svcdb")
    shutil.copyfile(path, copy)
    with mock.patch.object(CollectableFile, "overwrite", fail), pytest.raises(error):
        Database(copy)
    for one in (path, copy):
        with Database(one) as database:
            assert read_state(database.system()).pending is False
            assert collect(database).waiting is None
            for name in (*range(1, 20, 2), 0, 2):
                assert read(database, str(name)) == data(name, 20_000)
            assert verify(database).ok
