"""A server over libfiu: calls of the system fail, between Python and the C library, when they are told to."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from crash.clients import children
from crash.wrapping import WrappedServer
from svc_blackbox.server import Server, svc_program

__all__ = ["FaultyDisk", "with_libfiu"]

with_libfiu = pytest.mark.skipif(
    shutil.which("fiu-run") is None, reason="fiu-run (Debian: fiu-utils) is missing"
)


class FaultyDisk(WrappedServer):
    """A server over libfiu: its calls of the C library fail while they are told to.

    Args:
        database: the database file.
        workers: how many it has.
    """

    def __init__(self, database: Path, workers: int) -> None:
        self.workers = workers
        self._control = str(database.with_name("fiu"))
        program = ["fiu-run", "-x", "-f", self._control, svc_program()]
        super().__init__(database, program, "--workers", str(workers), "--access-log=false")

    def tell(self, command: str) -> None:
        """Sends a command of libfiu to every worker."""
        for pid in workers_of(self, self.workers):
            subprocess.run(
                ["fiu-ctrl", "-f", self._control, "-c", command, str(pid)],
                check=True,
                timeout=30,
                capture_output=True,
            )


def workers_of(server: Server, count: int) -> list[int]:
    """The workers of a server, all of them: waits until each has the database open."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        living = [pid for pid in children(server.pid) if "background" not in command_of(pid)]
        if len(living) == count and all(has_open(pid, server.database) for pid in living):
            return living
        time.sleep(0.02)
    raise AssertionError("the workers did not open the database")


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def has_open(pid: int, database: Path) -> bool:
    """Whether a process has opened the key index beside a database: the last thing that it opens."""
    try:
        targets = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return f"{database}.d/index/data.mdb" in targets
