"""SIGKILL at every named step of the write path, under load of several threads and of several processes."""

from __future__ import annotations

import errno
import os
import random
import select
import shutil
import signal
import time
from pathlib import Path

import pytest

from crash.block_layer import record
from crash.boots import another_boot
from crash.driver import read_journals, start_driver
from crash.journal import Journal
from crash.scale import SEED, scaled
from crash.workload import Writer, check_database, check_open_database, read_directory, run_writers
from svc.database import Database
from svc.errors import InsufficientStorage
from svc.objects.key_index import KeyIndex
from svc_testing.faults import STEPS, Fault, inject

ENOUGH = 100_000
DEATHS = [f"{step}:{{call}}:{action}" for step in STEPS for action in ("kill", "kill-after")]
DEATHS += ["svc.log.FileOperations.pwritev:{call}:short", "svc.log.SharedCell.write:{call}:kill"]


def new_database(path: Path) -> Path:
    with Database(path) as database, database.transaction() as transaction:
        transaction.put(("first",), b"before everything")
    return path


def killed_by(path: Path, name: str, seed: int, *faults: str) -> list[Journal]:
    """Lets a driver work until its fault kills it; returns its journals."""
    driver = start_driver(path, name, seed, ENOUGH, *faults)
    output, errors = driver.communicate(timeout=100)
    assert driver.returncode == -signal.SIGKILL, errors.decode()
    return read_journals(output)


@pytest.mark.parametrize("death", DEATHS)
def test_a_kill_at_this_step_loses_nothing_acknowledged_and_shows_nothing_half_done(
    tmp_path: Path, death: str
) -> None:
    path = new_database(tmp_path / "x.svcdb")
    journals: list[Journal] = []
    chance = random.Random(f"{SEED} {death}")
    for number in range(scaled(1, most=40)):
        fault = death.format(call=chance.randint(3, 25))
        try:
            journals += killed_by(path, f"r{number}-", SEED + number, fault)
            check_database(path, journals)
        except BaseException as error:
            error.add_note(f"round {number}: {fault}")
            raise


def test_the_living_finish_or_forget_what_the_dead_began(tmp_path: Path) -> None:
    """Processes die at one step after the other beside one that lives and works on."""
    path = new_database(tmp_path / "x.svcdb")
    with Database(path) as database:
        living = [Writer(database, f"living{number}", SEED) for number in range(2)]
        journals = [writer.journal for writer in living]
        deaths = DEATHS * scaled(1, most=10)
        random.Random(SEED).shuffle(deaths)
        for number in range(0, len(deaths), 4):
            drivers = [
                start_driver(path, f"d{number + place}-", SEED, ENOUGH, death.format(call=5 + place))
                for place, death in enumerate(deaths[number : number + 4])
            ]
            while any(driver.poll() is None and not _readable(driver.stdout) for driver in drivers):
                run_writers(living, 1)
            for driver in drivers:
                output, errors = driver.communicate(timeout=100)
                assert driver.returncode == -signal.SIGKILL, errors.decode()
                journals += read_journals(output)
            run_writers(living, 2)
            check_open_database(database, journals)
    check_database(path, journals)


def _readable(stream) -> bool:
    return bool(select.select([stream], [], [], 0)[0])


def test_kills_at_random_moments_of_several_processes_at_once(tmp_path: Path) -> None:
    path = new_database(tmp_path / "x.svcdb")
    journals: list[Journal] = []
    chance = random.Random(SEED)
    for number in range(scaled(3, most=100)):
        drivers = [start_driver(path, f"p{number}.{one}-", SEED, ENOUGH) for one in range(3)]
        for driver in drivers:
            # Its first line says that it is at work.
            driver.first = driver.stdout.readline()
        time.sleep(chance.random() * 0.3)
        for driver in drivers:
            driver.kill()
        for driver in drivers:
            output, errors = driver.communicate(timeout=100)
            assert driver.returncode == -signal.SIGKILL, errors.decode()
            journals += read_journals(driver.first + output)
        check_database(path, journals)


def test_a_sync_that_fails_while_the_dead_ones_work_is_recovered_is_not_forgotten(tmp_path: Path) -> None:
    """A commit was appended and its process killed; the disk fails when the next one opens the database.

    The opening fails; the one after it works, but must not build on what never came to the disk.
    """
    path = new_database(tmp_path / "x.svcdb")
    with Database(path) as database:
        durable = database.head().commit_end
    journals = killed_by(path, "dead", SEED, "commit.sync:1:kill")
    assert path.stat().st_size > durable
    with record(path, unsynced_from=durable, failing_sync=1) as recording:
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            Database(path)
        with Database(path) as database, database.transaction() as transaction:
            transaction.put(("after",), b"acknowledged")
    image = tmp_path / "image.svcdb"
    for number in range(20):
        image.write_bytes(recording.image(len(recording.events), random.Random(f"{SEED} {number}")))
        shutil.rmtree(f"{image}.d", ignore_errors=True)
        with another_boot(), Database(image) as database:
            assert database.at().get(("after",)) is not None
        check_database(image, [])
    assert not any(journal.answers for journal in journals)


def test_a_fault_counts_only_the_calls_that_take_its_step(tmp_path: Path) -> None:
    path = new_database(tmp_path / "x.svcdb")
    with Database(path) as database, inject(*(Fault(step, 2, "EIO") for step in STEPS[3:4])):
        with database.transaction() as transaction:
            transaction.put(("one",), b"x")
        with pytest.raises(Exception, match="disk failed"), database.transaction() as transaction:
            transaction.put(("two",), b"x")


@pytest.mark.parametrize("beside", ["alone", "with another process"])
def test_without_space_to_finish_what_the_dead_began_reads_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str
) -> None:
    path = new_database(tmp_path / "x.svcdb")
    other = Database(path) if beside == "with another process" else None
    journals = killed_by(path, "dead", SEED, "commit.index:3:kill")

    def no_space(*_: object) -> None:
        raise InsufficientStorage("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(KeyIndex, "write", no_space)
        with Database(path) as database:
            assert database.at().get(("first",)) is not None
            for journal in journals:
                journal.check(read_directory(database, journal.name))
            with pytest.raises(InsufficientStorage), database.transaction() as transaction:
                transaction.put(("refused",), b"x")
            assert database.at().get(("refused",)) is None
    if other is not None:
        other.close()
    check_database(path, journals)
