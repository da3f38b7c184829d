"""Processes that end with the one that started them, however it ends."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from collections.abc import Sequence
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


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
