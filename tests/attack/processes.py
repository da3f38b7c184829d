"""What the processes of a server take, as the system counts it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from svc_blackbox.server import Server, living_processes

__all__ = ["Usage", "busiest", "cpu_seconds", "usage", "wait_until_idle", "workers"]

_TICKS = os.sysconf("SC_CLK_TCK")
_ASLEEP = 15


@dataclass(frozen=True, slots=True)
class Usage:
    """One process.

    Attributes:
        name: what it is.
        anonymous: bytes that it has allocated and that are in memory.
        mapped: bytes of mapped files that are in memory; the system takes them back when it needs them.
        files: descriptors.
        threads: threads.
    """

    name: str
    anonymous: int
    mapped: int
    files: int
    threads: int


def usage(pid: int) -> Usage | None:
    """Returns what a process takes; None when it is gone."""
    root = Path(f"/proc/{pid}")
    try:
        name = "background" if (root / "comm").read_text() == "svc-background\n" else "server"
        fields = dict(line.split(":", 1) for line in (root / "status").read_text().splitlines())
        files = len(os.listdir(root / "fd"))
    except OSError:
        return None
    if "RssAnon" not in fields:
        return None
    kib = {key: int(fields[key].split()[0]) for key in ("RssAnon", "RssFile", "RssShmem")}
    mapped = kib["RssFile"] + kib["RssShmem"]
    return Usage(name, kib["RssAnon"] * 1024, mapped * 1024, files, int(fields["Threads"]))


def cpu_seconds(pid: int) -> float:
    """Returns the processor time that a process has taken; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def wait_until_idle(pid: int, seconds: float) -> None:
    """Waits until a process has nothing to do, a few times in a row; at most so many seconds."""
    deadline = time.monotonic() + seconds
    asleep = 0
    while asleep < _ASLEEP and time.monotonic() < deadline:
        time.sleep(0.02)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0


def workers(server: Server) -> list[int]:
    """Returns the processes that serve: the children of the first one that have connections to take."""
    found = []
    for pid in living_processes(server.pid):
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        taken = usage(pid)
        if int(stat[1]) == server.pid and taken is not None and taken.name == "server":
            found.append(pid)
    return found


def busiest(pids: list[int]) -> int:
    """Returns the process that has taken the most processor time."""
    return max(pids, key=cpu_seconds)
