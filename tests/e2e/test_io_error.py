"""A disk that fails while it makes a write durable: never acknowledged, and no worker writes after it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_blackbox.client import Client
from svc_blackbox.server import Server, run_svc, svc_environment


class FaultyServer(Server):
    """A server in each of whose processes every ``fdatasync`` from one on fails."""

    fault = "os.fdatasync:6+:EIO"

    def start_with(self, *arguments: str) -> Server:
        command = [sys.executable, "-m", "svc_testing.faults", self.fault, "--", "start", *arguments]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=svc_environment(),
                start_new_session=True,
            )
        self.ready_line = self._wait_until_ready(self._process)
        self.url = self.ready_line.split()[3]
        return self


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = FaultyServer(tmp_path / "x.svcdb", "--workers", "3", "--background", "false")
    yield running.start()
    running.close()


def test_after_an_io_error_every_worker_reads_and_none_writes(server: Server) -> None:
    stored: dict[str, bytes] = {}
    refused = None
    for number in range(100):
        with Client(server.url) as client:
            answer = client.put_file(f"/f{number}", b"%d" % number)
        if answer.status != 201:
            refused = answer
            break
        stored[f"/f{number}"] = b"%d" % number
    assert refused is not None
    assert (refused.status, refused.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert stored
    # A connection of its own each time: every worker gets some of them.
    for number in range(24):
        with Client(server.url) as client:
            answer = client.put_file(f"/late{number}", b"late")
            assert answer.status == 503, answer.body
            assert int(answer["Retry-After"]) >= 1
            for path, content in stored.items():
                assert client.read(path) == content
            health = client.get("/system/health")
            assert health.status == 200
            assert health.json()["status"] == "degraded"
            assert health.json()["findings"][0]["message"].startswith("The database takes no writes")
    status = run_svc("status", "-D", server.database, check=False)
    assert status.returncode == 9
    assert b"latched" in status.stdout


def test_a_server_that_is_started_anew_writes_again(server: Server) -> None:
    stored = []
    for number in range(100):
        with Client(server.url) as client:
            if client.put_file(f"/f{number}", b"content").status != 201:
                break
            stored.append(f"/f{number}")
    server.stop()
    healthy = Server(server.database)
    try:
        client = healthy.start().client()
        for path in stored:
            assert client.read(path) == b"content"
        client.store("/again", b"again")
        assert client.get("/system/health").json()["status"] == "healthy"
        assert healthy.stop() == 0
    finally:
        healthy.close()
    assert run_svc("verify", "-D", server.database).returncode == 0
