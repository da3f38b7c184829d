"""A real filesystem of a few megabytes, filled over HTTP: 507; reads go on; writes do with space."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.clients import JournalingClient, Load, check_server
from crash.scale import SCALE, SEED
from svc.database import Database, collect
from svc.errors import InsufficientStorage
from svc_blackbox.client import Client, files
from svc_blackbox.server import Server, run_svc
from svc_maintenance.verification import verify

SIZE = 24 * 1024 * 1024
BALLAST = 4 * 1024 * 1024


def mounted(kind: str, place: Path, image: Path) -> bool:
    """Mounts a small filesystem; False where that is not allowed."""
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(place)]
    else:
        with open(image, "wb") as file:
            file.truncate(SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(image)], check=True, capture_output=True)
        command = ["mount", "-o", "loop", str(image), str(place)]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(params=["ext4"] if SCALE <= 1 else ["ext4", "tmpfs"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A mounted filesystem of 24 MiB, with a file on it that can be deleted to make space."""
    place = tmp_path / "mounted"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a filesystem")
    if not mounted(request.param, place, tmp_path / "image"):
        pytest.skip(f"no {request.param} can be mounted here")
    try:
        (place / "ballast").write_bytes(os.urandom(BALLAST))
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def server(small_disk: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(small_disk / "x.svcdb", "--workers", "2", "--access-log=false")
    server.log = tmp_path / "server.log"
    yield server.start()
    server.close()


def fill(client: Client, directory: str = "filled") -> dict[str, bytes]:
    """Stores until nothing goes in any more, not even a byte; returns what was acknowledged."""
    stored: dict[str, bytes] = {}
    number = 0
    for size in (900_000, 100_000, 5_000, 1):
        refused = 0
        while refused < 3:
            number += 1
            content = os.urandom(size)
            response = client.put_file(f"{directory}/{number}", content)
            if response.status == 201:
                stored[f"{directory}/{number}"] = content
            else:
                assert response.status in (503, 507), (response.status, response.body)
                refused += 1
        assert number < 100_000
    response = client.put_file("filled/no", os.urandom(70_000))
    assert response.status == 507, response.body
    assert response.json()["code"] == "INSUFFICIENT_STORAGE"
    return stored


def check_reads(client: Client, stored: dict[str, bytes]) -> None:
    for path, content in stored.items():
        assert client.read(path) == content


def test_a_full_disk_refuses_writes_serves_reads_and_writes_again(server: Server, small_disk: Path) -> None:
    client = server.client()
    client.store("before", b"there was space")
    stored = fill(client) | {"before": b"there was space"}
    check_reads(client, stored)
    assert client.get(files("filled/no")).status == 404
    assert client.listing("/filled", limit=1)["total"] >= len(stored) - 1
    assert client.get("/system/health").status == 200
    (small_disk / "ballast").unlink()
    client.store("after", b"there is space again")
    check_reads(client, stored)
    assert server.stop() == 0
    run_svc("verify", "-D", server.database)
    check_reads(server.start().client(), stored | {"after": b"there is space again"})


def test_a_server_killed_and_started_on_a_full_disk_still_serves(server: Server, small_disk: Path) -> None:
    stored = fill(server.client())
    server.kill()
    client = server.start().client()
    check_reads(client, stored)
    # What the killed processes held beside the log is free now.
    stored |= fill(client, "again")
    assert client.put_file("filled/no", os.urandom(70_000)).status == 507
    (small_disk / "ballast").unlink()
    client.store("after", b"there is space again")
    check_reads(client, stored)
    server.kill()
    run_svc("verify", "-D", server.database)


def test_many_clients_at_once_lose_nothing_to_a_full_disk(server: Server, small_disk: Path) -> None:
    load = Load((JournalingClient(f"c{number}", SEED) for number in range(6)), reconnect=True)
    load.start(server.url)
    while not load.statuses[507] and not load.failures:
        time.sleep(0.01)
    load.stop()
    (small_disk / "ballast").unlink()
    check_server(server.client(), load.clients)
    load.start(server.url)
    load.wait_for_answers(1)
    load.stop()
    assert set(load.statuses) <= {200, 201, 404, 503, 507}, load.statuses
    check_server(server.client(), load.clients)
    assert server.stop() == 0
    run_svc("verify", "-D", server.database)


def test_a_collection_that_finds_no_space_says_so_and_is_done_when_there_is_some(small_disk: Path) -> None:
    with Database(small_disk / "x.svcdb") as database:
        for contents in (lambda: os.urandom(3_000), lambda: b"small"):
            with database.transaction() as transaction:
                for number in range(1_500):
                    transaction.put((f"{number}",), contents())
        del transaction
        with (small_disk / "rest").open("wb", buffering=0) as rest, pytest.raises(OSError):
            while True:
                rest.write(bytes(100_000))
        for _ in range(2):
            with pytest.raises(InsufficientStorage):
                collect(database, upload_hours=0)
            version = database.at()
            assert all(version.read_all(entry) == b"small" for _, entry in version.entries(()))
        (small_disk / "ballast").unlink()
        assert collect(database, upload_hours=0).reclaimed_bytes > 4_000_000
        assert verify(database).ok
