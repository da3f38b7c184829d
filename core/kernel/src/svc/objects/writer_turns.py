"""Turns of those who write to an environment of LMDB.

LMDB's lock of writers goes to whoever asks first when it is free: a process that begins one transaction after
the other has asked again before those that wait are awake, and they may wait for minutes. So one more lock,
of the file, is held by who begins a transaction until LMDB's is: the next in turn has it all the while, and
who wants to begin anew comes behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from svc.native_locks import native_lock

__all__ = ["WriterTurns"]


class WriterTurns:
    """Turns of the threads of all processes.

    Args:
        data: file of the environment; LMDB itself takes no lock of it.
    """

    def __init__(self, data: str) -> None:
        self._descriptor: int | None = os.open(data, os.O_RDONLY | os.O_CLOEXEC)
        self._mutex = native_lock()

    @contextlib.contextmanager
    def next(self) -> Iterator[None]:
        """Waits for a turn, which is over when LMDB's lock is held; blocks."""
        with self._mutex:
            descriptor = self._descriptor
            if descriptor is None or not _has_lock(descriptor):
                yield
                return
            try:
                yield
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Gives the file back; nobody begins a transaction any more."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _has_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return False  # A filesystem without such locks.
    return True
