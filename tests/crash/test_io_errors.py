"""Disks that fail under a real server: EIO from a sync, ENOSPC from writes, EIO from reads.

Injected by the test kit inside the server, and by libfiu below it, between Python and the C library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.clients import JournalingClient, Load, check_server
from crash.faulty_disk import FaultyDisk, with_libfiu
from crash.scale import SEED, scaled
from crash.wrapping import SMALL, WrappedServer
from svc_blackbox.client import Client, files
from svc_blackbox.server import Server, run_svc

OPTIONS = ("--workers", "3", "--access-log=false")
CLIENTS = 8


@pytest.fixture
def faulty_disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    server = FaultyDisk(tmp_path / "faulty.svcdb", workers=3)
    server.start()
    yield server
    server.close()


@pytest.fixture
def load() -> Load:
    return Load((JournalingClient(f"c{number}", SEED) for number in range(CLIENTS)), reconnect=True)


def wait_until_latched(client: Client, load: Load) -> None:
    """Waits for the finding that nothing is written any more, which is the only one."""
    codes: set[str] = set()
    while "database.latched" not in codes:
        health = client.get("/system/health").json()
        codes = {finding["code"] for finding in health.get("findings", ())}
        assert codes <= {"database.latched"}, health
        assert not load.failures, load.failures


def check_latched(server: Server, load: Load) -> None:
    """Nobody is told that a write is safe; reads go on; health says what is wrong."""
    with pytest.raises(AssertionError, match="answers"):
        # A write that was durable before may be on its way to each of them still, and no other.
        load.wait_for_answers(CLIENTS + 1, seconds=0.5)
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
    assert "I/O error" in next(item["message"] for item in health["findings"] if item["source"] == "database")


def check_after_restart(database: Path, load: Load) -> None:
    """Opened anew, with a disk that works again, everything acknowledged is there, and writes are taken."""
    run_svc("verify", "-D", database)
    server = Server(database, *SMALL)
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
    program = [sys.executable, "-m", "svc_testing.faults", fault, "--"]
    server = WrappedServer(tmp_path / "latched.svcdb", program, *OPTIONS)
    try:
        load.start(server.start().url)
        client = server.client()
        wait_until_latched(client, load)
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
    wait_until_latched(client, load)
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
