"""The first start with a database: a failure leaves nothing behind, and no root key is made unseen."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server, free_port, living_processes, svc_environment, svc_program
from svc_blackbox.server import run_svc as start_svc


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "first.svcdb")
    yield server
    server.close()


def usual(server: Server) -> list[str]:
    return ["-D", str(server.database), "--host", "127.0.0.1", "--port", str(free_port()), "--workers", "1"]


def shown_key(lines: list[str]) -> str | None:
    return next((line.split()[-1] for line in lines if line.startswith("Root key:")), None)


def test_a_start_that_cannot_listen_makes_nothing(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        failed = start_svc("start", *usual(server), "--port", port, check=False)
    assert (failed.returncode, b"in use" in failed.stderr, failed.stdout) == (2, True, b"")
    failed = start_svc("start", *usual(server), "--host", "no.such.invalid", check=False)
    assert (failed.returncode, b"not an address" in failed.stderr, failed.stdout) == (2, True, b"")
    assert not server.database.exists()
    server.start_with(*usual(server))
    assert shown_key(server.printed) is not None


BAD_OPTIONS = [
    "auth.self.jwt_expiry=abc",
    "auth.magic-link.smtp_port=zz",
    "auth.magic-link.url_template=nowhere",
    "sharing.link_days=-4",
    "task.gc.keep_days=abc",
]


@pytest.mark.parametrize("auth", ["disabled://x", "self-contained://x", "self://"])
def test_an_argument_that_the_auth_mode_does_not_take_is_refused(server: Server, auth: str) -> None:
    failed = run_svc("start", *usual(server), "--auth", auth, check=False)
    assert (failed.returncode, b"takes no argument" in failed.stderr) == (2, True), failed.stderr
    assert not server.database.exists()


def test_an_option_that_a_plugin_refuses_is_an_error_and_makes_nothing(server: Server) -> None:
    for auth in ("self-contained", "disabled"):
        for option in BAD_OPTIONS:
            failed = run_svc("start", *usual(server), "--auth", auth, "--plugin-option", option, check=False)
            plugin, _, setting = option.partition("=")[0].rpartition(".")
            assert failed.returncode == 10, failed.stderr
            assert plugin in failed.stderr.decode()
            assert setting in failed.stderr.decode()
            assert not server.database.exists()


def test_an_option_that_a_plugin_refuses_is_an_error_with_a_database_too(server: Server) -> None:
    server.start_with(*usual(server))
    assert server.stop() == 0
    before = server.database.read_bytes()
    for auth in ("self-contained", "disabled"):
        for option in BAD_OPTIONS:
            failed = run_svc("start", *usual(server), "--auth", auth, "--plugin-option", option, check=False)
            assert failed.returncode == 10, failed.stderr
    assert server.database.read_bytes() == before


def test_a_root_key_that_cannot_be_printed_is_not_made(server: Server) -> None:
    with open("/dev/full", "wb") as full:
        failed = subprocess.run(
            [svc_program(), "start", *usual(server)],
            stdout=full,
            stderr=subprocess.PIPE,
            env=svc_environment(),
            timeout=60,
            check=False,
        )
    assert failed.returncode == 1
    assert b"No space left" in failed.stderr
    server.start_with(*usual(server))
    assert shown_key(server.printed) is not None


def test_a_kill_at_any_moment_of_the_first_start_loses_no_root_key(server: Server) -> None:
    """Whatever key the database has was printed by one of the starts."""
    printed: list[str] = []
    for delay in (0.3, 0.5, 0.6, 0.7, 0.8, 1.0):
        process = subprocess.Popen(
            [svc_program(), "start", *usual(server)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=svc_environment(),
            start_new_session=True,
            text=True,
        )
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        assert process.stdout is not None
        printed += process.stdout.read().splitlines()
        process.stdout.close()
        deadline = time.monotonic() + 20
        while living_processes(process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
    server.start_with(*usual(server))
    printed += server.printed
    keys = [line.split()[-1] for line in printed if line.startswith("Root key:")]
    accepted = [key for key in keys if server.client().post("/auth/token", {"api_key": key}).status == 200]
    assert len(accepted) == 1
