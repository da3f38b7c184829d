"""Reports who has waited for a lock of a log for long, and which process has it.

A process that is stopped, or hangs, keeps its locks for as long as it lives.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator

from msgspec import Struct

__all__ = ["HeldUp", "describe_process", "holder_of", "is_stopped", "long_wait", "noted_wait"]

LONG_SECONDS = 5.0
"""An ordinary commit holds its lock for a few syncs of the disk."""

logger = logging.getLogger(__name__)


class HeldUp(Struct, frozen=True):
    """A lock that somebody else keeps for long.

    ``since_ms`` is None where this opening does not wait, ``holder`` where this user may not see the process.
    """

    since_ms: int | None
    holder: int | None


class _Wait(Struct, frozen=True, eq=False):
    descriptor: int
    byte: int
    since: float
    since_ms: int


_waits: dict[int, _Wait] = {}


@contextlib.contextmanager
def noted_wait(descriptor: int, byte: int) -> Iterator[None]:
    """Notes that this thread waits for a lock while the block runs; after some seconds a warning says so.

    Where gevent runs, as in a server, no thread may be started here: there ``long_wait`` tells it to the
    findings, which go to the log.
    """
    wait = _Wait(descriptor, byte, time.monotonic(), time.time_ns() // 1_000_000)
    _waits[id(wait)] = wait
    warning = None
    if "gevent.monkey" not in sys.modules:
        warning = threading.Timer(LONG_SECONDS, _warn, (wait,))
        warning.daemon = True
        warning.start()
    try:
        yield
    finally:
        del _waits[id(wait)]
        if warning is not None:
            warning.cancel()


def long_wait(descriptor: int) -> HeldUp | None:
    """Returns for whom an opening has been waiting for seconds; costs a microsecond where it does not."""
    if not _waits:
        return None
    latest = time.monotonic() - LONG_SECONDS
    found = [wait for wait in list(_waits.values()) if wait.descriptor == descriptor and wait.since <= latest]
    if not found:
        return None
    first = min(found, key=lambda wait: wait.since)
    return HeldUp(first.since_ms, holder_of(descriptor, first.byte))


def holder_of(descriptor: int, byte: int) -> int | None:
    """Returns the number of a process that has one byte of an open file locked; takes milliseconds.

    The system names no process for such a lock. It lists the locks of each open file, to whoever may look
    into the process. None: nobody has it locked, or nobody whose files this user may see.
    """
    try:
        place = os.fstat(descriptor)
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None
    for process in processes:
        try:
            names = os.listdir(f"/proc/{process}/fd")
        except OSError:
            continue
        if any(_has_locked(f"/proc/{process}", name, place, byte) for name in names):
            return int(process)
    return None


def is_stopped(process: int) -> bool:
    """Whether a process was stopped by a signal or a debugger."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False


def describe_process(process: int | None) -> str:
    """Returns a process as a part of a sentence; None is one that is not known."""
    if process is None:
        return "another process"
    return f"the process {process}" + (", which is stopped" if is_stopped(process) else "")


def _has_locked(process: str, name: str, place: os.stat_result, byte: int) -> bool:
    try:
        if not os.path.samestat(os.stat(f"{process}/fd/{name}"), place):
            return False
        with open(f"{process}/fdinfo/{name}", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file if line.startswith("lock:")]
        return any(row[2] == "OFDLCK" and int(row[7]) <= byte <= int(row[8]) for row in rows)
    except (OSError, ValueError, IndexError):
        return False


def _warn(wait: _Wait) -> None:
    if id(wait) not in _waits:
        return
    try:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{wait.descriptor}"))
    except OSError:
        name = "the database"
    holder = describe_process(holder_of(wait.descriptor, wait.byte))
    logger.warning(
        "%s: waiting since %.0f seconds for a lock of %s: let that process go on, or end it.",
        name,
        LONG_SECONDS,
        holder,
    )
