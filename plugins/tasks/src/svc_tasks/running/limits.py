"""What the process of a task may use, and how it ends with its supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path

__all__ = ["apply_limits", "die_with_parent"]

_PR_SET_PDEATHSIG = 1
_NICENESS = 10
PROCESS_NAME = "svc-task"


def die_with_parent(parent: int) -> None:
    """Lets the kernel kill this process when its supervisor ends, whatever it is at.

    Linux does so when the thread ends that started the process: that is the supervisor's own.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def apply_limits(memory: int) -> None:
    """Sets the priority of the process, and bounds the memory of its own.

    The address space holds maps of indexes too, of any size.
    """
    for kind, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, memory)):
        _, hard = resource.getrlimit(kind)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, hard))
    os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), _NICENESS))
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(PROCESS_NAME)
