"""Another auth mode by SIGHUP: never one that needs a root key first, or another address to listen on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_blackbox.server import Server, free_port, run_svc


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "modes.svcdb")
    yield server
    server.close()


def begin(server: Server, options: str = "") -> Path:
    """Starts a server that lets everybody in, with its options in a file; returns the file."""
    file = server.database.with_suffix(".toml")
    write(file, server, f'auth = "disabled"\n{options}')
    server.start_with("--config", str(file), "--port", str(free_port()), "--workers", "1")
    return file


def write(file: Path, server: Server, options: str) -> None:
    file.write_text(f'database = "{server.database}"\n{options}')


def wait_for_refusal(server: Server) -> str:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = [line for line in server.log_text().splitlines() if line.startswith("svc: not reloaded: ")]
        if found:
            return found[-1]
        time.sleep(0.05)
    raise AssertionError(server.log_text())


def wait_for_status(server: Server, status: int) -> None:
    deadline = time.monotonic() + 20
    while server.client().get("/files/").status != status:
        assert time.monotonic() < deadline, server.log_text()
        time.sleep(0.1)


def test_a_mode_whose_root_key_is_missing_waits_for_a_start(server: Server) -> None:
    file = begin(server, 'host = "127.0.0.1"\n')
    write(file, server, 'host = "127.0.0.1"\n')
    os.kill(server.pid, signal.SIGHUP)
    assert "--auth self-contained must make something in this database first" in wait_for_refusal(server)
    assert server.client().get("/files/").status == 200
    assert run_svc("reset-root-key", "-D", server.database).stdout
    os.kill(server.pid, signal.SIGHUP)
    wait_for_status(server, 401)


def test_a_mode_that_would_listen_elsewhere_waits_for_a_restart(server: Server) -> None:
    file = begin(server)
    run_svc("reset-root-key", "-D", server.database)
    write(file, server, "")
    os.kill(server.pid, signal.SIGHUP)
    assert "would be 0.0.0.0" in wait_for_refusal(server)
    assert server.client().get("/files/").status == 200
