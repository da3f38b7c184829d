"""Byte-range locks that belong to an open file, not to a process.

Open-file-description locks (Linux 3.15) end with the last descriptor of the opening, however its process
ends, and exclude two openings within one process as well. They do not survive being shared by a fork: nobody
may use a descriptor that crossed one.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import struct
import time

from svc.log.lock_waits import noted_wait

__all__ = [
    "APPEND",
    "BACKGROUND",
    "COLLECTION",
    "COMMIT",
    "GENERATIONS",
    "MOST_GENERATIONS",
    "PRESENCE",
    "LocksUnavailable",
    "first_locked",
    "hold_byte",
    "is_locked",
    "lock_exclusive",
    "lock_shared",
    "try_exclusive",
    "unlock",
]

PRESENCE = 2**62
"""Locked shared by everyone who has the log open; exclusive by one who is alone and recovers."""

COMMIT = 2**62 + 1
"""Locked by whoever commits."""

APPEND = 2**62 + 2
"""Locked by whoever writes at the end."""

BACKGROUND = 2**62 + 3
"""Locked by the one background process of the database."""

COLLECTION = 2**62 + 4
"""Locked by whoever collects garbage."""

GENERATIONS = 2**62 + 2**40
"""Where one byte for each generation of the collection begins, locked shared by those who hold it."""

MOST_GENERATIONS = 2**40

_FLOCK = struct.Struct("hhqqi4x")
_BUSY = (errno.EAGAIN, errno.EACCES)
_UNAVAILABLE = (errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)


class LocksUnavailable(OSError):
    """The filesystem has no byte-range locks."""


def _request(kind: int, byte: int, length: int = 1) -> bytes:
    return _FLOCK.pack(kind, 0, byte, length, 0)


_REQUESTS = {
    (kind, byte): _request(kind, byte)
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK)
    for byte in (PRESENCE, COMMIT, APPEND, BACKGROUND, COLLECTION)
}


@functools.lru_cache(maxsize=16)
def _shared_request(byte: int) -> bytes:
    return _request(fcntl.F_RDLCK, byte)


@functools.lru_cache(maxsize=16)
def _unlock_request(byte: int) -> bytes:
    return _request(fcntl.F_UNLCK, byte)


def _try(fd: int, request: bytes) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise _translated(error) from None
    return True


def _wait(fd: int, request: bytes, byte: int) -> None:
    with noted_wait(fd, byte):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, request)


def _translated(error: OSError) -> OSError:
    if error.errno in _UNAVAILABLE:
        return LocksUnavailable(error.errno, "The filesystem has no byte-range locks")
    return error


def try_exclusive(fd: int, byte: int) -> bool:
    """Locks one byte exclusively if nobody else has it; never blocks; may raise ``LocksUnavailable``."""
    return _try(fd, _REQUESTS[fcntl.F_WRLCK, byte])


def lock_exclusive(fd: int, byte: int) -> None:
    """Locks one byte exclusively; blocks until nobody else has locked it."""
    request = _REQUESTS[fcntl.F_WRLCK, byte]
    if not _try(fd, request):
        _wait(fd, request, byte)


def lock_shared(fd: int, byte: int, timeout: float | None = None) -> bool:
    """Locks one byte shared, converting a lock that this opening has on it.

    Returns False only after a ``timeout``, in seconds; None waits without end.
    """
    request = _REQUESTS[fcntl.F_RDLCK, byte]
    if _try(fd, request):
        return True
    if timeout is None:
        _wait(fd, request, byte)
        return True
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        time.sleep(min(0.02, timeout))
        if _try(fd, request):
            return True
    return False


def hold_byte(fd: int, byte: int) -> None:
    """Locks one byte shared that nobody ever locks exclusively; never blocks."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _shared_request(byte))
    except OSError as error:
        raise _translated(error) from None


def unlock(fd: int, byte: int) -> None:
    """Gives up this opening's lock on one byte; never blocks."""
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _unlock_request(byte))


def is_locked(fd: int, byte: int) -> bool:
    """Whether another opening has one byte locked, in either way; never blocks; ``fd`` may be read-only."""
    return first_locked(fd, byte, 1) is not None


def first_locked(fd: int, byte: int, length: int) -> int | None:
    """Returns a byte of a range that another opening has locked, in either way, or None; never blocks."""
    try:
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _request(fcntl.F_WRLCK, byte, length))
    except OSError as error:
        raise _translated(error) from None
    kind, _, start, _, _ = _FLOCK.unpack(answer)
    return None if kind == fcntl.F_UNLCK else start
