"""A full disk: writes are refused with 507, reads go on, and with space writes go on too."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_blackbox.client import Client
from svc_blackbox.server import Server, run_svc

PIECE = 200_000
SIZE = 12 * 1024 * 1024
BALLAST = 6 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of a few MiB, half of it taken by a file named ``ballast``."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("filesystems can't be mounted here")
    (place / "ballast").write_bytes(bytes(BALLAST))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[[Path], Server]]:
    """Starts a server with two workers; its log is not on the disk that gets full."""
    running: list[Server] = []

    def start(database: Path) -> Server:
        running.append(Server(database, "--workers", "2"))
        running[0].log = tmp_path / "server.log"
        return running[0].start()

    yield start
    for one in running:
        one.close()


def fill(client: Client, stored: dict[str, bytes], prefix: str) -> int:
    """Stores files until one is refused; returns the status of that answer."""
    for number in range(400):
        path, content = f"/{prefix}/{number}", os.urandom(PIECE)
        answer = client.put_file(f"{path}", content)
        if answer.status != 201:
            body = answer.json()
            assert (answer.status, body["code"]) == (507, "INSUFFICIENT_STORAGE"), body
            return answer.status
        stored[path] = content
    raise AssertionError("the disk did not get full")


def accepted(url: str, path: str, content: bytes) -> bool:
    """Stores a file by a connection of its own, whichever worker takes it; False when it is refused."""
    with Client(url) as client:
        answer = client.put_file(f"{path}", content)
        assert answer.status in (201, 503, 507), answer.body
        return answer.status == 201


def check(client: Client, stored: dict[str, bytes]) -> None:
    for path, content in stored.items():
        assert client.read(path) == content


def store_until_accepted(server: Server, stored: dict[str, bytes]) -> None:
    deadline = time.monotonic() + 30
    for number in range(6):
        path, content = f"/after/{number}", os.urandom(PIECE)
        while not accepted(server.url, path, content):
            assert time.monotonic() < deadline, server.log_text()[-3000:]
            time.sleep(0.1)
        stored[path] = content


def finish(server: Server, stored: dict[str, bytes]) -> None:
    """All is there after a restart too, and the database is whole."""
    check(server.client(), stored)
    assert server.stop() == 0
    assert run_svc("verify", "-D", server.database).returncode == 0
    check(server.start().client(), stored)
    assert server.stop() == 0
    assert "Traceback" not in server.log_text()


def test_on_a_small_filesystem(server: Callable[[Path], Server], small_disk: Path) -> None:
    running = server(small_disk / "x.svcdb")
    client = running.client()
    stored: dict[str, bytes] = {}
    assert fill(client, stored, "before") == 507
    assert len(stored) > 5
    check(client, stored)
    # Small writes may fit into what is left; whatever is refused is refused in the same way.
    for number in range(40):
        path, content = f"/small/{number}", os.urandom(3000)
        if accepted(running.url, path, content):
            stored[path] = content
    check(client, stored)
    assert client.get("/system/health").status == 200
    (small_disk / "ballast").unlink()
    store_until_accepted(running, stored)
    finish(running, stored)


def test_the_history_is_read_on_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    database, source = small_disk / "x.svcdb", tmp_path / "source"
    for number in range(3):
        source.write_bytes(b"line\n" * (number + 1))
        run_svc("put", "-D", database, source, "/a")
    with (
        (small_disk / "ballast").open("ab", buffering=0) as ballast,
        pytest.raises(OSError, match="No space"),
    ):
        while True:
            ballast.write(bytes(4096))
    log = json.loads(run_svc("log", "-D", database, "--json").stdout)
    assert len(log["commits"]) == 3
    blame = json.loads(run_svc("blame", "-D", database, "/a", "--json").stdout)
    assert [line["version"] for line in blame["lines"]] == [row["version"] for row in log["commits"]][::-1]


def workers_of(database: Path, number: int) -> list[int]:
    """Waits for all of them: the first one says that the server is ready."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = run_svc("status", "-D", database, "--json", check=False)
        workers = [worker["pid"] for worker in json.loads(found.stdout)["workers"]]
        if len(workers) == number:
            return workers
        time.sleep(0.1)
    raise AssertionError(workers)


def test_at_the_largest_size_of_a_file(server: Callable[[Path], Server], tmp_path: Path) -> None:
    running = server(tmp_path / "x.svcdb")
    client = running.client()
    stored: dict[str, bytes] = {"/first": b"first"}
    client.store("/first", b"first")
    workers = workers_of(running.database, 2)
    hard = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE)[1] for pid in workers}
    for pid in workers:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (2_000_000, hard[pid]))
    assert fill(client, stored, "before") == 507
    check(client, stored)
    for pid in workers:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard[pid], hard[pid]))
    store_until_accepted(running, stored)
    finish(running, stored)
