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
import time
from collections.abc import Callable, Iterator

from svc.errors import ServiceUnavailable
from svc.native_calls import native
from svc.native_locks import native_lock

__all__ = ["LONGEST_WAIT_SECONDS", "WriterTurns", "try_flock"]

LONGEST_WAIT_SECONDS = 5.0
_SHORT_WAIT_SECONDS = 0.05
_POLL_SECONDS = 0.0005
_MOST_POLL_SECONDS = 0.008


class WriterTurns:
    """Turns of the threads of all processes.

    Args:
        data: file of the environment; LMDB itself takes no lock of it.
    """

    def __init__(self, data: str) -> None:
        self._data = data
        self._descriptor: int | None = os.open(data, os.O_RDONLY | os.O_CLOEXEC)
        self._mutex = native_lock()
        self._refused_at = float("-inf")

    @contextlib.contextmanager
    def next(self) -> Iterator[None]:
        """Waits for a turn, which is over when LMDB's lock is held; blocks.

        Raises:
            ServiceUnavailable: another thread or process has been waiting for LMDB's lock for seconds. So
                one that hangs in a transaction keeps one thread waiting, and no others.
        """
        now = time.monotonic()
        # All threads would wait for so long, one after the other, if each of many had to find it out.
        is_known = now - self._refused_at < LONGEST_WAIT_SECONDS
        deadline = now + (_SHORT_WAIT_SECONDS if is_known else LONGEST_WAIT_SECONDS)
        self._wait_for(lambda: self._mutex.acquire(False), deadline)
        try:
            descriptor = self._descriptor
            if descriptor is None:
                yield
                return
            self._wait_for(lambda: try_flock(descriptor), deadline)
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            self._mutex.release()

    def close(self) -> None:
        """Gives the file back; nobody begins a transaction any more."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _wait_for(self, has_lock: Callable[[], bool], deadline: float) -> None:
        seconds = _POLL_SECONDS
        while not has_lock():
            if time.monotonic() > deadline:
                self._refused_at = time.monotonic()
                raise ServiceUnavailable(
                    f"{self._data} is being written by another process, which does not get on.", retry_after=1
                )
            native("time", "sleep")(seconds)
            seconds = min(2 * seconds, _MOST_POLL_SECONDS)


def try_flock(descriptor: int) -> bool:
    """Takes the lock of an open file or directory, unless another opening has it; returns whether it did."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # A filesystem without such locks.
    return True
