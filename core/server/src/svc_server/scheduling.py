"""What a process that answers requests asks of the system's scheduler, and of the interpreter's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

__all__ = ["prefer_quick_turns"]

_SLICE_NS = 500_000
_SWITCH_SECONDS = 0.0005
"""Threads that append and sync run Python between their system calls; requests wait for the interpreter."""

_SYSTEM_CALLS = {"x86_64": 314, "aarch64": 274}
"""Numbers of ``sched_setattr``, which has no function in the C library."""


class _Attributes(ctypes.Structure):
    """``struct sched_attr`` of sched_setattr(2)."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def prefer_quick_turns() -> None:
    """Asks for short and early turns of this thread, and those it starts, at the same share of the processor.

    Linux from 6.12 on gives a thread that wakes the processor at once when it asks for less time than
    the one that runs (EEVDF; sched_setattr(2), ``sched_runtime``); older ones ignore it. So does this
    function what the system refuses.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    number = _SYSTEM_CALLS.get(os.uname().machine)
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    attributes = _Attributes(ctypes.sizeof(_Attributes), nice=os.getpriority(os.PRIO_PROCESS, 0))
    attributes.runtime = _SLICE_NS
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).syscall(number, 0, ctypes.byref(attributes), 0)
