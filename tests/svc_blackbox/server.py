"""Starts, stops and kills ``svc``, as a person at a shell would."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from svc_blackbox.client import Client
from svc_testing.prepared import PreparedProcess, run_to_end, start_svc

START_S = 60.0
STOP_S = 30.0
READY = re.compile(r"https?://[^\s,;]+")


def svc_program() -> str:
    """The ``svc`` of the environment that runs the tests."""
    beside = Path(sys.executable).parent / "svc"
    found = str(beside) if beside.exists() else shutil.which("svc")
    assert found, "svc is not installed in this environment"
    return found


def svc_environment() -> dict[str, str]:
    """This process's environment without anything that would configure svc."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}


def run_svc(
    *arguments: object, check: bool = True, timeout: float = 300, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs an ``svc`` command to its end; with ``check`` it must exit 0."""
    words = map(str, arguments)
    result = run_to_end([svc_program()], *words, env=svc_environment(), stdin=stdin or b"", timeout=timeout)
    if check:
        assert result.returncode == 0, (
            f"svc {' '.join(map(str, arguments))} exited {result.returncode}\n"
            f"{result.stdout.decode(errors='replace')[-2000:]}\n{result.stderr.decode(errors='replace')[-4000:]}"
        )
    return result


def free_port() -> int:
    """A TCP port of loopback that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def living_processes(group: int) -> list[int]:
    """The processes of a process group of which a thread still lives.

    The first thread of a killed process may be a zombie while another one finishes a write: until that has
    ended too, its files are open and its locks are held.
    """
    living = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = _stat(entry)
            if int(fields[2]) == group and any(_stat(task)[0] not in "ZX" for task in _tasks(entry)):
                living.append(int(entry.name))
        except OSError:
            continue
    return living


def _tasks(process: Path) -> list[Path]:
    return list((process / "task").iterdir())


def _stat(place: Path) -> list[str]:
    """State, parent, group and so on; of one that is gone, the state of the dead."""
    try:
        return (place / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "", "-1"]


class Server:
    """``svc start`` on a database, in a process group of its own.

    Attributes:
        database: the database file.
        program: what stands in the place of ``svc``; None for ``svc``.
        url: base URL that the ready line gave; empty while not running.
        printed: the lines on standard output up to the ready line.
        log: file that collects what the server writes to standard error.
    """

    def __init__(self, database: Path, *options: str, environment: dict[str, str] | None = None) -> None:
        self.database = database
        self.options = options
        self.environment = environment or {}
        self.program: str | None = None
        self.url = ""
        self.ready_line = ""
        self.printed: list[str] = []
        self.log = database.with_name(database.name + ".log")
        self._process: subprocess.Popen[str] | PreparedProcess | None = None
        self._clients: list[Client] = []

    def start(self) -> Server:
        """Starts the server with the usual options and its own, and waits for its ready line."""
        usual = ["-D", str(self.database), "--auth", "disabled", "--port", str(free_port())]
        return self.start_with(*usual, *self.options)

    def start_with(self, *arguments: str) -> Server:
        """Starts the server with these arguments alone, and waits for its ready line."""
        assert self._process is None, "already running"
        with self.log.open("a") as log:
            self._process = start_svc(
                [self.program or svc_program()],
                "start",
                *arguments,
                env={**svc_environment(), **self.environment},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                prepared=self.program is None,
            )
        self.ready_line = self._wait_until_ready(self._process)
        match = READY.search(self.ready_line)
        assert match
        self.url = match[0].rstrip("/")
        return self

    def _wait_until_ready(self, process: subprocess.Popen[str] | PreparedProcess) -> str:
        lines: queue.Queue[str | None] = queue.Queue()

        def follow() -> None:
            assert process.stdout is not None
            with process.stdout as output:
                for line in output:
                    lines.put(line)
            lines.put(None)

        threading.Thread(target=follow, daemon=True).start()
        deadline = time.monotonic() + START_S
        self.printed.clear()
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = lines.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                break
            self.printed.append(line)
            if line.startswith("svc ready") and READY.search(line):
                return line
        self.kill()
        raise AssertionError(f"svc start did not become ready:\n{self.log.read_text()[-4000:]}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def client(self, timeout: float = 30.0) -> Client:
        """A new connection; it is closed with the server."""
        client = Client(self.url, timeout)
        self._clients.append(client)
        return client

    def stop(self) -> int:
        """Ends the server with SIGTERM; returns its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"no end {STOP_S} s after SIGTERM:\n{self.log_text()[-4000:]}") from None
        self._forget()
        return code

    def kill(self) -> None:
        """Ends the server and every process that it started with SIGKILL, at once."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_S)
        self._wait_until_group_is_gone(self._process.pid)
        self._forget()

    def close(self) -> None:
        """Ends whatever still runs; for fixtures."""
        if self._process is not None:
            self.kill()

    def _forget(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        self._process = None
        self.url = ""

    @staticmethod
    def _wait_until_group_is_gone(group: int) -> None:
        deadline = time.monotonic() + STOP_S
        while time.monotonic() < deadline:
            if not living_processes(group):
                return
            time.sleep(0.01)
        raise AssertionError("processes of the server outlived SIGKILL")

    def log_text(self) -> str:
        """Everything that the server logged so far."""
        return self.log.read_text(errors="replace")
