"""The memory of the processes that serve a database, as the kernel of Linux tells it (proc(5))."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

import msgspec

__all__ = ["ProcessMemory", "memory_of"]

_FIELDS = {
    b"VmRSS": "rss_bytes",
    b"VmHWM": "peak_rss_bytes",
    b"VmSize": "virtual_bytes",
    b"VmData": "data_bytes",
    b"VmSwap": "swap_bytes",
}


class ProcessMemory(msgspec.Struct):
    """What some processes take together; pages that they share count for each.

    Attributes:
        processes: how many there are.
        rss_bytes: resident memory.
        peak_rss_bytes: the most that each has had.
        virtual_bytes: address space.
        data_bytes: of that private and writable.
        swap_bytes: what is swapped out.
        thread_count: threads.
        fd_count: open file descriptors.
    """

    processes: int = 0
    rss_bytes: int = 0
    peak_rss_bytes: int = 0
    virtual_bytes: int = 0
    data_bytes: int = 0
    swap_bytes: int = 0
    thread_count: int = 0
    fd_count: int = 0


def memory_of(pids: Iterable[int]) -> ProcessMemory:
    """Returns what processes take; those that are gone meanwhile count for nothing."""
    total = ProcessMemory()
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{pid}/status", "rb") as file:
                lines = dict(line.split(b":", 1) for line in file if b":" in line)
            total.fd_count += len(os.listdir(f"/proc/{pid}/fd"))
            total.processes += 1
            total.thread_count += int(lines[b"Threads"])
            for field, name in _FIELDS.items():
                kibibytes = int(lines.get(field, b"0").split()[0])
                setattr(total, name, getattr(total, name) + kibibytes * 1024)
    return total
