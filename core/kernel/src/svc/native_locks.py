"""Locks between threads of the operating system, also in a process that gevent has patched.

In a patched process a lock of ``threading`` is gevent's. Greenlets of one thread may share it. But if a
thread of a pool asks for it as well, a waiter may be woken through the loop of a thread that runs no loop any
more, and waits for ever though the lock is free. Locks that both may ask for are made here.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol

__all__ = ["NativeLock", "held_across_waits", "native_lock", "native_reentrant_lock"]

_POLL_SECONDS = 0.001
_MOST_POLL_SECONDS = 0.016


class NativeLock(Protocol):
    """A lock between threads of the operating system."""

    def acquire(self, blocking: bool = True, /) -> bool:
        """Blocks until the lock is held, or returns False at once where it may not block."""
        ...

    def release(self) -> None:
        """Gives the lock back."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def native_lock() -> NativeLock:
    """Returns a lock between native threads, also where gevent has patched ``threading``.

    Who waits for it keeps all greenlets of its thread waiting. So it is held for microseconds, or for a
    system call, and never across what lets another greenlet run: ``run_blocking``, ``pause``, a commit, a
    sleep, a lock of ``threading``. What is held across such a thing is taken with ``held_across_waits``.
    Another thread may release it.
    """
    return _made("allocate_lock")


def native_reentrant_lock() -> NativeLock:
    """As ``native_lock``; the thread that holds it, any of its greenlets, may take it once more."""
    return _made("RLock")


@contextlib.contextmanager
def held_across_waits(mutex: NativeLock) -> Iterator[None]:
    """Holds a native lock that greenlets and threads share across waits, such as reads from a disk.

    It is asked for again and again, less and less often, so that other greenlets run meanwhile.
    """
    seconds = _POLL_SECONDS
    while not mutex.acquire(False):
        time.sleep(seconds)
        seconds = min(2 * seconds, _MOST_POLL_SECONDS)
    try:
        yield
    finally:
        mutex.release()


def _made(name: str) -> NativeLock:
    import _thread

    monkey: Any = sys.modules.get("gevent.monkey")
    make = getattr(_thread, name) if monkey is None else monkey.get_original("_thread", name)
    lock: NativeLock = make()
    return lock
