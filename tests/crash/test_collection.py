"""Collections that SIGKILL ends at every step, or a power cut: nothing that is needed is missing."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.block_layer import record
from crash.boots import another_boot
from crash.collector import collect_with
from crash.driver import TESTS
from crash.scale import SEED, scaled
from crash.test_power_cut import Note, journals_at, place, tell
from crash.workload import Writer, check_database, check_open_database, run_writers
from svc.database import Database, collect
from svc.database.collection.running import Collection
from svc.database.holds import Phase
from svc_maintenance.verification import verify

INDEX = "svc.objects.key_index.KeyIndex"
RUNNING = "svc.database.collection.running.Collection"
FILE = "svc.log.collectable_file.CollectableFile"
FINISHING = "svc.database.collection.finishing"
DEATHS = [
    f"{INDEX}.condemn:1:kill-after",
    f"{INDEX}.condemn:2:kill",
    f"{RUNNING}._publish_horizon:1:kill-after",
    f"{RUNNING}._open_gate:1:kill-after",
    f"{RUNNING}._catch_up:1:kill-after",
    f"{INDEX}.forget_condemned:1:kill",
    f"{INDEX}.forget_condemned:1:kill-after",
    *[
        f"commit.{step}:{call}:{action}"
        for call in (1, 2, 3)
        for step in ("announce", "append", "sync", "index", "publish")
        for action in ("kill", "kill-after")
    ],
    f"{FILE}.overwrite:1:kill",
    f"{FILE}.overwrite:1:short",
    f"{FILE}.overwrite:3:short",
    f"{FILE}.overwrite:5:kill-after",
    f"{FILE}.punch:1:kill",
    f"{FILE}.punch:1:kill-after",
    f"{FILE}.punch:3:kill",
    f"{FINISHING}._begin_recount:1:kill-after",
    f"{FINISHING}._end_request:1:kill-after",
]


def contents(number: int) -> bytes:
    return random.Random(number).randbytes(2000 + 30_000 * (number % 5))


class World:
    """A database of things that are needed beside things that are not, and the proof that they are there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with Database(path) as database:
            for number in range(24):
                with database.transaction() as transaction:
                    transaction.put(("all", str(number)), database.store_bytes(contents(number)))
            with database.transaction() as transaction:
                transaction.copy_ref("HEAD", "forks/work")
            with database.transaction(ref="forks/work") as transaction:
                for number in range(0, 24, 4):
                    transaction.delete(("all", str(number)))
            with database.transaction() as transaction:
                for number in range(24):
                    if number % 3:
                        transaction.delete(("all", str(number)))
            # What is in neither is dead: 2, 10, 14 and so on are in the fork; 4, 8, 16, 20 are nowhere.

    def check(self, database: Database, at_head: Callable[[int], bool] = lambda n: n % 3 == 0) -> None:
        """Reads everything that is needed, in full."""
        for root, wanted in (
            (None, at_head),
            (database.resolve_version(fork="work"), lambda number: number % 4 != 0),
        ):
            version = database.at(root)
            for number in range(24):
                entry = version.get(("all", str(number)))
                assert (entry is not None) == bool(wanted(number)), number
                if entry is not None:
                    assert version.read_all(entry) == contents(number)
        assert verify(database).damaged == []

    def check_and_go_on(self, database: Database) -> None:
        """As ``check``; then the dead is stored again, and collections go on."""
        self.check(database)
        with database.transaction() as transaction:
            for number in (4, 8, 16):
                transaction.put(("all", str(number)), database.store_bytes(contents(number)))

        def wanted(number: int) -> bool:
            return number % 3 == 0 or number in (4, 8, 16)

        self.check(database, wanted)
        report = collect(database, wait_seconds=10)
        assert report.waiting is None
        self.check(database, wanted)
        assert database.objects.index.condemned_count() == 0
        assert database.holds.state()[1] is Phase.IDLE


def killed(path: Path, fault: str) -> None:
    """Lets another process collect until its fault kills it."""
    command = [sys.executable, "-m", "crash.collector", str(path), fault]
    ended = subprocess.run(command, cwd=TESTS, capture_output=True, timeout=100, check=False)
    assert ended.returncode == -signal.SIGKILL, f"{fault} was never reached: {ended.stderr.decode()}"


def killed_fork(path: Path, fault: str) -> None:
    """As ``killed``, faster; this process must not have the database open."""
    child = os.fork()
    if not child:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            collect_with(path, fault)
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"{fault} was never reached: {status}"
    assert os.WTERMSIG(status) == signal.SIGKILL


def chosen(name: str, least: int) -> list[str]:
    """Some of the deaths in a short run, others with another seed; all of them in a long one."""
    deaths = list(DEATHS)
    random.Random(f"{name} {SEED}").shuffle(deaths)
    return deaths[: scaled(least, most=len(DEATHS))]


def test_a_kill_at_any_step_loses_nothing_that_is_needed(memory: Path) -> None:
    World(memory / "world.svcdb")
    for number, fault in enumerate(chosen("alone", 14)):
        path = memory / f"{number}.svcdb"
        shutil.copyfile(memory / "world.svcdb", path)
        shutil.copytree(memory / "world.svcdb.d", f"{path}.d")
        world = World.__new__(World)
        world.path = path
        try:
            killed_fork(path, fault)
            # What lies beside the log is gone in one copy, and of another boot in a second.
            bare, booted = memory / "bare.svcdb", memory / "booted.svcdb"
            for copy in (bare, booted):
                shutil.copyfile(path, copy)
            shutil.copytree(f"{path}.d", f"{booted}.d")
            with Database(path) as database:
                world.check_and_go_on(database)
            with Database(bare) as database:
                assert database.opening.rebuilt
                world.check_and_go_on(database)
            with another_boot(), Database(booted) as database:
                world.check_and_go_on(database)
        except BaseException as error:
            error.add_note(fault)
            raise
        for copy in (path, bare, booted):
            copy.unlink()
            shutil.rmtree(f"{copy}.d")


def test_the_living_go_on_after_a_collection_beside_them_was_killed(memory: Path) -> None:
    for number, fault in enumerate(chosen("beside", 5)):
        world = World(memory / f"{number}.svcdb")
        try:
            with Database(world.path) as database:
                killed(world.path, fault)
                world.check(database)
                with database.transaction() as transaction:
                    transaction.put(("x",), b"the living write")
                again = memory / "again.svcdb"
                shutil.copyfile(world.path, again)
                world.check_and_go_on(database)
            with Database(again) as database:
                world.check_and_go_on(database)
        except BaseException as error:
            error.add_note(fault)
            raise
        again.unlink()
        shutil.rmtree(f"{again}.d")
        world.path.unlink()


def test_whatever_a_power_cut_leaves_of_a_collection_opens_with_everything(memory: Path) -> None:
    """Collections beside writers, recorded write by write; the power fails at any moment of them."""
    path = memory / "x.svcdb"
    with Database(path) as database:
        writers = [Writer(database, f"w{number}", SEED) for number in range(3)]
        run_writers(writers, 12)
        database.head()
    journals = [writer.journal for writer in writers]
    with record(path) as recording, Database(path) as database:
        for journal in journals:
            change = dict(journal.acknowledged)
            for event in ("begin", "acknowledge"):
                recording.note(Note(journal.name, event, change, journal.version))
        began = len(recording.events)
        workers = []
        for number, journal in enumerate(journals):
            writer = Writer(database, f"w{number}", SEED + 1, tell(recording))
            writer.journal = journal
            workers.append(writer)
        swept = 0
        for _ in range(3):
            run_writers(workers, 3)
            swept += collect(database, wait_seconds=5).reclaimed_bytes
        assert swept > 100_000
    image = memory / "image.svcdb"
    for number in range(scaled(60, most=1500)):
        chance = random.Random(f"{SEED} collection {number}")
        moment = chance.randint(began, len(recording.events))
        place(image, recording.image(moment, chance), None)
        try:
            with another_boot():
                check_database(image, journals_at(recording, moment))
                with Database(image) as opened:
                    collect(opened, wait_seconds=5)
                    check_open_database(opened, journals_at(recording, moment))
        except BaseException as error:
            error.add_note(f"image {number}, moment {moment} of {began} to {len(recording.events)}")
            raise
        for saved in image.parent.glob("*.cut-*"):
            saved.unlink()


def test_the_laboratory_notices_a_sweep_without_a_plan(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of the tests: where the gate does not wait, something is lost that was found again."""
    monkeypatch.setattr(Collection, "_open_gate", lambda self, seconds: None)
    world = World(memory / "x.svcdb")
    with Database(world.path) as database:
        stored = database.store_bytes(contents(4))
        collect(database)
        with database.transaction() as transaction:
            transaction.put(("all", "4"), stored)
        assert verify(database).damaged != []
