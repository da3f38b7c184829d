"""Disks that fail under a real server: EIO from a sync, ENOSPC from writes, EIO from reads.

Injected by the test kit inside the server, and by libfiu below it, between Python and the C library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.clients import JournalingClient, Load, check_server, children
from crash.scale import SEED, scaled
from crash.wrapping import WrappedServer
from svc_blackbox.client import files
from svc_blackbox.server import Server, run_svc, svc_program

WORKERS = 3
OPTIONS = ("--workers", str(WORKERS), "--access-log=false")
CLIENTS = 8

with_libfiu = pytest.mark.skipif(
    shutil.which("fiu-run") is None, reason="fiu-run (Debian: fiu-utils) is missing"
)


class FaultyDisk(WrappedServer):
    """A server over libfiu: its calls of the C library fail while they are told to."""

    def __init__(self, database: Path) -> None:
        self._control = str(database.with_name("fiu"))
        program = ["fiu-run", "-x", "-f", self._control, svc_program()]
        super().__init__(database, program, *OPTIONS)

    def tell(self, command: str) -> None:
        """Sends a command of libfiu to every worker."""
        for pid in workers_of(self):
            subprocess.run(
                ["fiu-ctrl", "-f", self._control, "-c", command, str(pid)],
                check=True,
                timeout=30,
                capture_output=True,
            )


def workers_of(server: Server) -> list[int]:
    """The workers of a server, all of them: waits until each has the database open."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        living = [pid for pid in children(server.pid) if "background" not in command_of(pid)]
        if len(living) == WORKERS and all(has_open(pid, server.database) for pid in living):
            return living
        time.sleep(0.02)
    raise AssertionError("the workers did not open the database")


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def has_open(pid: int, database: Path) -> bool:
    """Whether a process has opened the key index beside a database: the last thing that it opens."""
    try:
        targets = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return f"{database}.d/index/data.mdb" in targets


@pytest.fixture
def faulty_disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    server = FaultyDisk(tmp_path / "faulty.svcdb")
    server.start()
    yield server
    server.close()


@pytest.fixture
def load() -> Load:
    return Load((JournalingClient(f"c{number}", SEED) for number in range(CLIENTS)), reconnect=True)


def check_latched(server: Server, load: Load) -> None:
    """Nobody is told that a write is safe; reads go on; health says what is wrong."""
    with pytest.raises(AssertionError, match="answers"):
        load.wait_for_answers(1, seconds=0.5)
    load.stop()
    client = server.client()
    response = client.put_file("refused", b"x")
    assert response.status == 503
    assert "I/O error" in response.json()["error"]
    for one in load.clients:
        for path in set(one.journal.acknowledged) - set(one.journal.under_way or ()):
            assert client.head(files(f"{one.journal.name}/{path}")).status == 200
    health = client.get("/system/health").json()
    assert health["status"] == "degraded"
    assert "I/O error" in health["checks"]["database"]["message"]


def check_after_restart(database: Path, load: Load) -> None:
    """Opened anew, with a disk that works again, everything acknowledged is there, and writes are taken."""
    run_svc("verify", "-D", database)
    server = Server(database, *OPTIONS)
    try:
        client = server.start().client()
        client.store("after", b"it goes on")
        check_server(client, load.clients)
        assert client.get("/system/health").json()["status"] == "healthy"
        assert client.get(files("refused")).status == 404
    finally:
        server.close()
    run_svc("verify", "-D", database)


def test_a_failed_sync_latches_the_server_until_it_is_started_anew(tmp_path: Path, load: Load) -> None:
    """The fault is in one worker alone, and later ones work: every worker must stop writing all the same."""
    fault = "svc.log.FileOperations.fdatasync:30-60:EIO"
    program = [sys.executable, "-m", "svc.testing.faults", fault, "--"]
    server = WrappedServer(tmp_path / "latched.svcdb", program, *OPTIONS)
    try:
        load.start(server.start().url)
        client = server.client()
        while client.get("/system/health").json()["status"] == "healthy":
            assert not load.failures
        check_latched(server, load)
        assert server.stop() == 0
    finally:
        server.close()
    check_after_restart(server.database, load)


@with_libfiu
def test_a_disk_that_fails_to_sync_latches_the_server(faulty_disk: FaultyDisk, load: Load) -> None:
    load.start(faulty_disk.url)
    load.wait_for_answers(60)
    faulty_disk.tell("enable name=posix/io/sync/fdatasync,failinfo=5")
    client = faulty_disk.client()
    while client.get("/system/health").json()["status"] == "healthy":
        assert not load.failures
    faulty_disk.tell("disable name=posix/io/sync/fdatasync")
    check_latched(faulty_disk, load)
    faulty_disk.kill()
    check_after_restart(faulty_disk.database, load)


@with_libfiu
@pytest.mark.timeout(4000)
@pytest.mark.parametrize("call", ["posix/io/rw/pwritev", "posix/io/rw/pwritev/reduce"])
def test_writes_that_fail_for_want_of_space_are_refused_whole(
    faulty_disk: FaultyDisk, load: Load, call: str
) -> None:
    """One call in four fails, of the log's or of what lies beside it; then the disk has space again."""
    load.start(faulty_disk.url)
    for _ in range(scaled(1, most=40)):
        load.wait_for_answers(30)
        faulty_disk.tell(f"enable_random name={call},probability=0.25,failinfo=28")
        load.wait_for_answers(30)
        faulty_disk.tell(f"disable name={call}")
        load.wait_for_answers(30)
    load.stop()
    assert set(load.statuses) <= {200, 201, 404, 503, 507}, load.statuses
    check_server(faulty_disk.client(), load.clients)
    faulty_disk.kill()
    check_after_restart(faulty_disk.database, load)


@with_libfiu
def test_a_disk_that_fails_to_read_gives_errors_and_never_other_bytes(
    faulty_disk: FaultyDisk,
) -> None:
    client = faulty_disk.client()
    contents = {f"f{number}": bytes([number]) * (2000 + number) for number in range(20)}
    for path, content in contents.items():
        client.store(path, content)
    faulty_disk.tell("enable_random name=posix/io/rw/pread,probability=0.5,failinfo=5")
    failed = 0
    for path in [*contents, *contents, *contents]:
        response = client.get(files(path))
        if response.status == 200:
            assert response.body == contents[path]
        else:
            assert response.status in (500, 503), (response.status, response.body)
            assert response.json()["code"] in ("INTERNAL_ERROR", "SERVICE_UNAVAILABLE")
            failed += 1
    assert failed
    faulty_disk.tell("disable name=posix/io/rw/pread")
    for path, content in contents.items():
        assert client.read(path) == content
    client.store("after", b"it goes on")
    assert faulty_disk.stop() == 0
    run_svc("verify", "-D", faulty_disk.database)
