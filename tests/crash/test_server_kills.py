"""SIGKILL of single processes of a busy server, of all of them, and at every step of its writes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.clients import JournalingClient, Load, check_server, children, resident_bytes
from crash.scale import SCALE, SEED, scaled
from crash.wrapping import SMALL, WrappedServer
from svc_blackbox.server import Server, run_svc
from svc_testing.faults import STEPS

WORKERS = ("--workers", "4", "--access-log=false")
CLIENTS = 12
FLAT = 400 * 1024 * 1024


def kill_one(server: Server, chance: random.Random) -> bool:
    """Kills one of the processes that the server has started: a worker, or what else there is."""
    living = children(server.pid)
    if not living:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(living), signal.SIGKILL)
    return True


@pytest.mark.timeout(4000)
def test_kills_of_single_processes_lose_no_acknowledged_write(new_server: Callable[..., Server]) -> None:
    """The others go on at once, finish what the dead one had begun, and nobody is answered 500.

    In a long run: 64 clients, half of their requests reads, for up to ten minutes; memory stays flat.
    """
    server = new_server("single", *WORKERS)
    number = CLIENTS if SCALE < 10 else 64
    load = Load((JournalingClient(f"c{one}", SEED, reads=0.5) for one in range(number)), reconnect=True)
    chance = random.Random(SEED)
    kills, largest = 0, 0
    load.start(server.url)
    end = time.monotonic() + min(3 * SCALE, 600)
    while (time.monotonic() < end or kills < 2) and not load.failures:
        load.wait_for_answers(40)
        kills += kill_one(server, chance)
        time.sleep(chance.random() * (0.4 if SCALE < 10 else 4))
        largest = max([largest, *(resident_bytes(pid) for pid in (server.pid, *children(server.pid)))])
    load.stop()
    check_server(server.client(), load.clients)
    assert kills >= 2
    assert load.answers > 100
    assert not any(status >= 500 and status != 503 for status in load.statuses), load.statuses
    assert largest < FLAT, f"a process grew to {largest} bytes"
    assert server.stop() == 0
    run_svc("verify", "-D", server.database)


@pytest.mark.timeout(4000)
def test_kills_of_all_processes_at_once_leave_no_batch_half_done(new_server: Callable[..., Server]) -> None:
    server = new_server("all", *WORKERS)
    clients = [JournalingClient(f"c{number}", SEED) for number in range(CLIENTS)]
    chance = random.Random(SEED)
    for _ in range(scaled(1, most=100)):
        load = Load(clients, reconnect=False)
        load.start(server.url)
        load.wait_for_answers(chance.randint(1, 120))
        server.kill()
        load.stop()
        verify_what_a_kill_left(server.database)
        check_server(server.start().client(), clients)
    run_svc("verify", "-D", server.database)


@pytest.mark.timeout(4000)
def test_workers_die_at_every_step_of_their_writes_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """Each worker lives for some tens of commits and dies at a step of chance; others take its place."""
    deaths = [f"{step}:1-300:{action}" for step in STEPS for action in ("kill", "kill-after")]
    deaths.append("svc.log.FileOperations.pwritev:1-600:short")
    program = [sys.executable, "-m", "svc_testing.faults", *deaths, "--"]
    server = WrappedServer(tmp_path / "steps.svcdb", program, *WORKERS)
    load = Load((JournalingClient(f"c{number}", SEED, reads=0) for number in range(CLIENTS)), reconnect=True)
    try:
        load.start(start_in_spite_of_deaths(server).url)
        wanted = scaled(6, most=400)
        end = time.monotonic() + 60 * max(1, SCALE)
        while died(server) < wanted and not load.failures:
            assert time.monotonic() < end, f"{died(server)} of {wanted} deaths, {load.statuses}"
            time.sleep(0.02)
        load.stop()
        server.kill()
        verify_what_a_kill_left(server.database)
    finally:
        server.close()
    sound = Server(server.database, *SMALL)
    try:
        check_server(sound.start().client(), load.clients)
    finally:
        sound.close()


def start_in_spite_of_deaths(server: Server) -> Server:
    """The check before a start makes the database, by a few commits of its own: it may die of one too."""
    for _ in range(10):
        try:
            return server.start()
        except AssertionError:
            if "The check before the start died (-9)" not in server.log_text():
                raise
    raise AssertionError(server.log_text())


def verify_what_a_kill_left(database: Path) -> None:
    """Nothing is wrong, but that the file may end with an append that the kill tore, which is named."""
    result = run_svc("verify", "-D", database, "--json", check=False)
    report = json.loads(result.stdout)
    torn = [one for one in report["damaged"] if one["offset"] is not None]
    assert result.returncode == (0 if report["ok"] else 7)
    assert len(torn) <= 1, report
    for damage in torn:
        assert damage["message"].startswith("Behind the last record stand "), report
        assert "damaged" not in damage["message"] and "no record can be read" not in damage["message"], report
    assert report["damaged"] == torn


def died(server: Server) -> int:
    return server.log_text().count("svc_testing.faults: killed")
