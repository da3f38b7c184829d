"""Processes that end with the one that started them, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a process that gets SIGTERM when the thread that started it ends."""
    # Between fork and exec it does one system call, which no other thread can be in the way of.
    return subprocess.Popen(command, preexec_fn=_end_with_parent, **options)  # noqa: PLW1509


def stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Stops a process by SIGTERM, and by SIGKILL if it takes longer than some seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def children(pid: int) -> list[int]:
    """Returns the processes that a process has started by its main thread."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid: int) -> str:
    """Returns the name of a process as ``ps -o comm`` shows it."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


def processor_seconds(pid: int) -> float:
    """Returns the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def proportional_bytes(pid: int) -> int:
    """Returns the memory of a process, pages that several share in parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel does not tell the proportional set size")


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
