"""Commits that a collection puts into packs: found as before, at whatever step somebody looks."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from history_material import HISTORY, commit, packs, records, told
from svc.database import Database, collect
from svc.database.collection import packing
from svc.database.collection.running import Collection
from svc.database.commit import PACKS_VERSION, Commit
from svc.database.packed_commits import PACKS_PATH, RANGE
from svc.errors import CorruptRecord, NotFound
from svc.hashing import Hash, ObjectKind
from svc.log import FIRST
from svc_maintenance.verification import verify
from svc_maintenance.verification.boundaries import boundary_before
from svc_maintenance.verification.scrub import scrub


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    """The copy, open."""
    with Database(path) as opened:
        yield opened


def test_old_commits_go_from_the_log_and_are_told_as_before(database: Database) -> None:
    before = told(database)
    report = collect(database)
    assert report.warning is None
    assert report.allocated_after is not None
    assert report.allocated_after < 0.4 * HISTORY * 4096
    assert told(database) == before
    assert packs(database) == 2
    # The last commit of each range, and all behind the last range.
    places = database.objects.index.commit_places(0, 1000)
    assert [number for number, _, _ in places][:3] == [RANGE, 2 * RANGE, 2 * RANGE + 1]
    assert len(records(database, ObjectKind.COMMIT)) == len(places)
    assert verify(database).ok
    with pytest.raises(NotFound):
        database.commit(database.head().sequence + 1)
    assert database.commit_identity(10**6) is None


def test_later_collections_pack_what_came_since_and_nothing_twice(database: Database) -> None:
    collect(database)
    for number in range(HISTORY, HISTORY + 200):
        commit(database, number)
    before = told(database, HISTORY + 200)
    collect(database)
    assert packs(database) == 3
    for _ in range(3):
        collect(database)
    assert packs(database) == 3
    assert told(database, HISTORY + 200) == before
    assert verify(database).ok


def test_an_index_made_anew_knows_them(path: Path) -> None:
    with Database(path) as database:
        before = told(database)
        collect(database)
    shutil.rmtree(f"{path}.d")
    with Database(path) as database:
        assert database.opening.rebuilt
        assert told(database) == before
        assert verify(database).ok
        collect(database)
        assert told(database) == before
    shutil.rmtree(f"{path}.d")
    with Database(path, read_only=True) as reader:
        assert told(reader) == before


def test_an_index_that_was_made_anew_and_not_to_the_end_learns_their_roots_later(path: Path) -> None:
    with Database(path) as database:
        before = told(database)
        collect(database)
    shutil.rmtree(f"{path}.d")
    with (
        mock.patch("svc.database.state.SharedState.index_packed_roots", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        Database(path)
    with Database(path) as database:
        assert told(database) == before


def test_an_index_from_before_the_packs_is_not_believed(path: Path, tmp_path: Path) -> None:
    with Database(path) as database:
        before = told(database)
    shutil.copytree(f"{path}.d", tmp_path / "older")
    with Database(path) as database:
        collect(database)
    shutil.rmtree(f"{path}.d")
    shutil.copytree(tmp_path / "older", f"{path}.d")
    with Database(path) as database:
        assert database.opening.rebuilt
        assert told(database) == before
        assert verify(database).ok


def test_a_database_that_holds_packs_is_refused_by_programs_that_know_none(database: Database) -> None:
    collect(database)
    plans = [one for one in database.commits(HISTORY) if one.begins_sweep]
    assert [one.has_packs for one in plans] == [True]
    assert plans[0].encode()[1] == PACKS_VERSION
    commit(database, 1, b"x" * 300_000)
    commit(database, 1)
    collect(database)
    assert all(one.has_packs for one in database.commits(HISTORY) if one.begins_sweep)


def test_where_nothing_is_packed_no_commit_says_so(tmp_path: Path) -> None:
    with Database(tmp_path / "y.svcdb") as database:
        commit(database, 1)
        commit(database, 8)
        collect(database)
        assert [one.has_packs for one in database.commits() if one.begins_sweep] == [False]
        assert database.system().get(PACKS_PATH) is None


@pytest.mark.parametrize(
    "step", ["_publish_horizon", "_open_gate", "_commit_plan", "_take_leave"], ids=lambda name: name[1:]
)
def test_a_collection_that_fails_behind_the_packs_leaves_everything_readable(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(path) as database:
        before = told(database)
        with monkeypatch.context() as patched:
            patched.setattr(Collection, step, mock.Mock(side_effect=RuntimeError("stopped here")))
            with pytest.raises(RuntimeError):
                collect(database)
        gc.collect()  # the mock keeps the error, and with its frames what the collection held
        assert told(database) == before
        assert verify(database).ok
        assert len(records(database, ObjectKind.COMMIT)) > HISTORY
        assert collect(database).waiting is None
        assert told(database) == before
        # Their places are known by no index, and they go all the same.
        assert len(records(database, ObjectKind.COMMIT)) < HISTORY - 200
        assert verify(database).ok


def test_a_commit_that_its_pack_holds_otherwise_stays_in_the_log(database: Database) -> None:
    """Nothing is destroyed but what was compared with its pack, byte by byte."""
    found = database._state.packs.beside

    def other(root: Hash, sequence: int) -> dict[int, bytes]:
        return {number: payload for number, payload in found(root, sequence).items() if number != 5}

    with mock.patch.object(database._state.packs, "beside", other):
        collect(database)
    numbers = {
        Commit.decode(database.objects.log.read(offset, record.stored_length).payload).sequence
        for record in database.objects.log.scan(FIRST)
        if record.kind is ObjectKind.COMMIT
        for offset in (record.offset,)
    }
    assert 5 in numbers
    assert 4 not in numbers


def test_large_commits_stay_where_they_are(tmp_path: Path) -> None:
    with Database(tmp_path / "y.svcdb") as database:
        for number in range(RANGE + packing.LAST_COMMITS + 2):
            with database.transaction(message="x" * (20_000 if number == 9 else 1)) as transaction:
                transaction.put(("f",), b"%d" % number)
        before = [database.read_commit(number) for number in range(1, RANGE + 1)]
        collect(database)
        assert packs(database) == 1
        assert [number for number, _, _ in database.objects.index.commit_places(0, 3)] == [
            10,
            RANGE,
            RANGE + 1,
        ]
        assert [database.read_commit(number) for number in range(1, RANGE + 1)] == before
        fed = database.feed(0)
        assert [next(fed) for _ in range(RANGE)] == before


def test_a_clean_end_mark_may_name_a_commit_that_is_packed(path: Path, tmp_path: Path) -> None:
    again = tmp_path / "y.svcdb"
    with Database(again) as database:
        for number in range(10):
            commit(database, number)
    with Database(again) as database:
        for number in range(10, 250):
            commit(database, number)
        collect(database)
        assert packs(database) == 1
        assert database.objects.index.commit_place(10) is None
        assert verify(database).damaged == []
    shutil.rmtree(f"{again}.d")
    with Database(again) as database:
        assert verify(database).damaged == []


def test_records_begin_for_certain_behind_the_commits_that_stay(database: Database) -> None:
    collect(database)
    size = database.head().commit_end
    begins = {record.offset for record in database.objects.log.scan(FIRST)} | {size}
    found = {boundary_before(database, position) for position in range(0, size + 1, 997)}
    assert found <= begins
    assert len(found) > 50
    position = 0
    while position < size:
        step = scrub(database, position, 50_000)
        assert not step.damaged
        assert not step.regions
        position = step.end
    assert boundary_before(database, size // 2) > FIRST


def test_who_reads_while_the_places_go_reads_on(path: Path) -> None:
    """Places that were looked up before a sweep lead to the pack behind it."""
    with Database(path) as database, Database(path) as reader:
        before = told(reader)
        places = reader.objects.index.commit_places(0, HISTORY)
        fed = reader.feed(0)
        assert next(fed) == before[0]
        collect(database)
        for sequence, offset, length in places:
            payload, identity = reader._state.commit_payload_at(sequence, offset, length)
            assert (Commit.decode(payload), identity) == before[sequence - 1]
        assert [next(fed) for _ in range(20)] == before[1:21]
        for number in range(HISTORY, HISTORY + 200):
            commit(database, number)
        collect(database)
        collect(database)
        assert database.horizon() > HISTORY + 200
        # The directory of packs that it began with is gone by now.
        reader.drop_caches()
        assert list(fed)[: HISTORY - 21] == before[21:]


def test_the_way_to_a_pack_may_go_while_somebody_is_on_it(database: Database) -> None:
    before = told(database)
    collect(database)
    head = database.head()
    for number in range(HISTORY, HISTORY + 200):
        commit(database, number)
    collect(database)
    collect(database)
    database.drop_caches()
    state = database._state
    with pytest.raises(CorruptRecord):
        state.packs.beside(head.system_root, 1)
    with mock.patch.object(state, "head", mock.Mock(side_effect=[head, head, *[state.head()] * 9])):
        assert state.read_commit(1) == before[0]


def test_where_all_else_was_collected_before_the_commits_go_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(packing, "LAST_COMMITS", 10**9)
        collect(database)
    assert packs(database) == 0
    assert collect(database).reclaimed_bytes > 0
    assert database.objects.index.commit_place(1) is None
    assert len(records(database, ObjectKind.COMMIT)) < HISTORY - 200


def test_readers_and_writers_go_on_while_commits_are_packed(path: Path) -> None:
    with Database(path) as database, Database(path) as other:
        before = told(other)
        stop = threading.Event()
        failures: list[BaseException] = []

        def guarded(work: Callable[[int], None]) -> threading.Thread:
            def run() -> None:
                number = 0
                try:
                    while not stop.is_set():
                        work(number)
                        number += 1
                except BaseException as error:
                    failures.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            return thread

        def read(number: int) -> None:
            place = number * 37 % HISTORY
            assert other.read_commit(place + 1) == before[place]
            fed = other.feed(place)
            assert all(next(fed) == one for one in before[place : place + 10])

        threads = [guarded(read), guarded(read), guarded(lambda number: commit(other, number))]
        for _ in range(4):
            collect(database)
        stop.set()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert verify(database).ok


def test_a_dry_run_packs_nothing(database: Database) -> None:
    before = os.stat(database.path).st_size
    collect(database, dry_run=True)
    assert packs(database) == 0
    assert os.stat(database.path).st_size == before
