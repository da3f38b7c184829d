"""What somebody finds of what a collection has found dead survives it, whenever it is found and committed."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from svc.database import Database, Transaction, collect
from svc.database.catch_up import catch_up
from svc.database.collection.plan import Sweeper
from svc.database.collection.running import Collection
from svc.database.holds import Holds
from svc.errors import InvalidInput, NotFound, ServiceUnavailable
from svc.log import FIRST
from svc.objects.key_index import KeyIndex
from svc_maintenance.verification import verify

MOMENTS: dict[str, tuple[type, str]] = {
    "marking": (Collection, "_mark_commits"),
    "looking": (Collection, "_look"),
    "setting-apart": (Collection, "_condemn"),
    "horizon": (Collection, "_publish_horizon"),
    "gate": (Collection, "_open_gate"),
    "catching-up": (Collection, "_catch_up"),
    "plan": (Collection, "_commit_plan"),
    "sweeping": (Sweeper, "sweep"),
}
"""Steps of a collection outside of the commit lock, in order."""

POINTS = [f"{when} {name}" for name in MOMENTS for when in ("before", "after")]
KINDS = ("small", "large", "entry", "directory", "version")
SMALL, LARGE, INSIDE = (random.Random(one).randbytes(size) for one, size in enumerate((3000, 500_000, 2500)))


@contextmanager
def at_points(call: Callable[[str], None]) -> Iterator[None]:
    """Calls something before and after each step, the first time that it is taken."""
    seen: set[str] = set()

    def reach(point: str) -> None:
        if point not in seen:
            seen.add(point)
            call(point)

    with ExitStack() as stack:
        for name, (owner, method) in MOMENTS.items():
            original = getattr(owner, method)

            def around(
                self: Any, *arguments: Any, original: Callable[..., Any] = original, name: str = name
            ) -> Any:
                reach(f"before {name}")
                result = original(self, *arguments)
                reach(f"after {name}")
                return result

            stack.enter_context(mock.patch.object(owner, method, around))
        yield


class World:
    """A database with something dead of each kind."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        with self.database.transaction() as transaction:
            transaction.put(("small",), SMALL)
            transaction.put(("large",), self.database.store_bytes(LARGE))
            for number in range(100):
                transaction.put(("directory", f"{number:03}"), INSIDE + b"%d" % number)
        assert transaction.result is not None
        self.root = transaction.result.version
        version = self.database.at()
        self.entries = {name: version.get((name,)) for name in ("large", "directory")}
        with self.database.transaction() as transaction:
            for name in ("small", "large", "directory"):
                transaction.delete((name,), recursive=True)
            transaction.put(("present",), b"something")

    def look_up(self, kind: str) -> Transaction | None:
        """Begins a transaction that needs something dead; None where the database says that it is gone."""
        transaction = self.database.transaction()
        try:
            if kind == "small":
                transaction.put(("again",), self.database.store_bytes(SMALL))
            elif kind == "large":
                transaction.put(("again",), self.database.store_bytes(LARGE))
            elif kind == "version":
                transaction.set_ref("snapshots/again", self.root)
            else:
                entry = self.entries["large" if kind == "entry" else "directory"]
                assert entry is not None
                transaction.put_entry(("again",), entry)
        except (InvalidInput, NotFound):
            return None
        return transaction

    def check(self, kind: str) -> None:
        """Reads what was committed, in full."""
        database = self.database
        if kind == "version":
            version = database.at(database.resolve_version(snapshot="again"))
            names = ("small", "large")
        else:
            version, names = database.at(), ("again",)
        for name in names:
            entry = version.get((name,))
            assert entry is not None
            if kind == "directory":
                below = [found for _, found in version.entries((name,))]
                assert [version.read_all(one) for one in below] == [INSIDE + b"%d" % n for n in range(100)]
            else:
                wanted = SMALL if "small" in (kind, name) else LARGE
                assert version.read_all(entry) == wanted
        report = verify(database)
        assert report.ok, report.damaged[:5]

    def begin_anew(self, path: Path) -> None:
        """Lets the index be made anew."""
        self.database.close()
        shutil.rmtree(f"{path}.d")
        self.database = Database(path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_and_committed_at_once_survives(tmp_path: Path, kind: str) -> None:
    for number, point in enumerate(POINTS):
        path = tmp_path / f"{number}.svcdb"
        world = World(path)
        committed: list[bool] = []

        def act(
            reached: str, point: str = point, world: World = world, committed: list[bool] = committed
        ) -> None:
            if reached == point:
                transaction = world.look_up(kind)
                committed.append(transaction is not None)
                if transaction is not None:
                    transaction.commit()

        with at_points(act):
            collect(world.database, wait_seconds=1)
        assert committed, point
        # Content can always be stored; a version only until it is collected, and then that is said.
        is_early = POINTS.index(point) <= POINTS.index("after looking")
        assert committed[0] or (kind in ("entry", "directory", "version") and not is_early), point
        for _ in range(2):
            if committed[0]:
                world.check(kind)
            collect(world.database, wait_seconds=1)
        world.begin_anew(path)
        if committed[0]:
            world.check(kind)
        world.database.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_during_a_collection_and_committed_after_it_survives(tmp_path: Path, kind: str) -> None:
    for number, point in enumerate(POINTS):
        path = tmp_path / f"{number}.svcdb"
        world = World(path)
        begun: list[Transaction | None] = []

        def act(
            reached: str,
            point: str = point,
            world: World = world,
            begun: list[Transaction | None] = begun,
        ) -> None:
            if reached == point:
                begun.append(world.look_up(kind))

        with at_points(act):
            report = collect(world.database, wait_seconds=0.05)
        (transaction,) = begun
        if transaction is not None:
            if POINTS.index(point) < POINTS.index("before gate"):
                assert report.waiting, point
            transaction.commit()
            del transaction
            begun.clear()
            world.check(kind)
        del act
        assert collect(world.database, wait_seconds=5).waiting is None
        world.begin_anew(path)
        if report.waiting:
            world.check(kind)
        world.database.close()


def test_threads_that_store_the_same_again_and_again_lose_nothing(tmp_path: Path) -> None:
    """Whatever the moment: contents come and go while collections run one after the other."""
    with Database(tmp_path / "x.svcdb") as database:
        contents = [random.Random(number).randbytes(2000 + 40_000 * (number % 4)) for number in range(12)]
        stop = threading.Event()
        failures: list[BaseException] = []

        def work(name: str) -> None:
            chance = random.Random(name)
            try:
                while not stop.is_set():
                    content = chance.choice(contents)
                    stored = database.store_bytes(content)
                    if chance.random() < 0.3:
                        time.sleep(0.002)
                    with database.transaction() as transaction:
                        transaction.put((name, "a"), stored)
                    entry = database.at().get((name, "a"))
                    assert entry is not None
                    assert database.at().read_all(entry) == content
                    with database.transaction() as transaction:
                        transaction.delete((name, "a"))
            except BaseException as error:
                failures.append(error)
                stop.set()

        threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(3)]
        for thread in threads:
            thread.start()
        destroyed = 0
        deadline = time.monotonic() + 30
        while destroyed < 15 and not stop.is_set() and time.monotonic() < deadline:
            destroyed += collect(database, wait_seconds=2).reclaimed_bytes > 0
        stop.set()
        for thread in threads:
            thread.join(30)
        assert not failures, failures[0]
        assert destroyed >= 15
        assert verify(database).ok


def commit_unfinished(database: Database) -> None:
    """Leaves a commit in the log that is not in the index, of what was appended long before."""
    stored = database.store_bytes(LARGE)
    with database.transaction() as transaction:
        transaction.put(("first",), b"1")

    def fail(*_arguments: object) -> None:
        raise RuntimeError("the process ends here")

    transaction = database.transaction()
    transaction.put(("late",), stored)
    with mock.patch.object(KeyIndex, "write", fail), suppress(ServiceUnavailable):
        transaction.commit()
    assert database.at().get(("late",)) is None


def test_a_commit_that_its_process_left_unfinished_is_found_before_the_gate_opens(tmp_path: Path) -> None:
    """Its objects were appended long before, and nobody holds them any more."""
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        commit_unfinished(database)
        with database.transaction() as transaction:
            transaction.put(("gone",), SMALL)
        with database.transaction() as transaction:
            transaction.delete(("gone",))
        assert collect(database, wait_seconds=5).reclaimed_bytes > 0
        entry = database.at().get(("late",))
        assert entry is not None
        assert database.at().read_all(entry) == LARGE
        assert verify(database).ok


def test_finishing_a_commit_brings_back_nothing_that_is_about_to_be_destroyed(tmp_path: Path) -> None:
    """A commit names an offset far back, between which and itself lies what is dead."""
    with Database(tmp_path / "x.svcdb") as database:
        with database.transaction() as transaction:
            transaction.put(("first",), b"1")
        before = database.head()
        stored = database.store_bytes(LARGE)
        with database.transaction() as transaction:
            transaction.put(("gone",), SMALL)
        with database.transaction() as transaction:
            transaction.delete(("gone",))
        behind = database.head()
        with database.transaction() as transaction:
            transaction.put(("late",), stored)
        index = database.objects.index
        dead = database.objects.find(stored.content_hash if stored.record is None else stored.record)
        assert before.commit_end < dead.offset < behind.commit_end
        gone = [hash for hash, place in index.objects() if FIRST < place.offset < behind.commit_end]
        index.remove(gone)
        catch_up(database.objects.log, index, behind.commit_end, behind.sequence)
        back = {hash for hash in gone if index.contains(hash)}
        assert stored.record in back
        assert back == {stored.record, *(hash for hash, _ in stored.cut)}


class TestHolds:
    """Holds by themselves."""

    def test_a_hold_of_an_earlier_generation_is_seen_by_others_and_by_its_own(self, tmp_path: Path) -> None:
        path = tmp_path / "x.svcdb"
        with Database(path) as one, Database(path) as other:
            for holder, looker in ((one, other), (one, one), (other, one)):
                generation = looker.holds.state()[0]
                with holder.hold() as hold, holder.hold():
                    assert hold.generation == generation
                    assert not looker.holds.is_held_before(generation)
                    assert looker.holds.is_held_before(generation + 1)
                assert not looker.holds.is_held_before(generation + 1)

    def test_a_hold_that_meets_the_beginning_of_a_generation_is_of_the_new_one(self, tmp_path: Path) -> None:
        with Database(tmp_path / "x.svcdb") as database:
            holds = database.holds
            original = Holds.state
            calls = []

            def state(self: Holds) -> Any:
                found = original(self)
                calls.append(found)
                if len(calls) == 1:
                    generation, phase = found
                    self._cell.write((generation + 1).to_bytes(8, "little") + bytes(8))
                    return generation, phase
                return found

            with mock.patch.object(Holds, "state", state):
                hold = holds.take()
            assert hold.generation == calls[0][0] + 1
            assert not holds.is_held_before(hold.generation)
            hold.release()
            hold.release()
            assert not holds.is_held_before(hold.generation + 1)

    def test_what_is_forgotten_without_a_release_ends_too(self, tmp_path: Path) -> None:
        with Database(tmp_path / "x.svcdb") as database:
            transaction = database.transaction()
            transaction.put(("a",), database.store_bytes(SMALL))
            assert database.holds.is_held_before(1)
            del transaction
            assert not database.holds.is_held_before(1)
