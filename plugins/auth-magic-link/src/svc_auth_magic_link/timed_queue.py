"""A queue whose items are dealt with later, one after the other, by a thread of its own."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["TimedQueue"]

T = TypeVar("T")

_log = logging.getLogger("svc.plugin.auth.magic-link")


class TimedQueue(Generic[T]):
    """Calls a function with each item when its time has come. Methods may be called from any thread.

    Args:
        name: of its thread, which is there from the first item on.
        handle: called with each item, in that thread; may block. What it raises is logged.
        limit: most items that wait.
    """

    def __init__(self, name: str, handle: Callable[[T], None], limit: int) -> None:
        self._name = name
        self._handle = handle
        self._limit = limit
        self._items: list[tuple[float, int, T]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # When it ends, once it is stopped.
        self._ends: float | None = None
        self._at_work = 0

    def put(self, item: T, delay_s: float) -> bool:
        """Adds an item, to be dealt with after so many seconds; False when there is no room."""
        with self._changed:
            if self._ends is not None or len(self._items) >= self._limit:
                return False
            heapq.heappush(self._items, (time.monotonic() + delay_s, next(self._numbers), item))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()
        return True

    def stop(self, seconds: float = 1.0) -> int:
        """Deals with what waits, without waiting for its time, and returns how many items are left.

        Blocks for so many seconds at most, and till then for the item that its thread is at, which counts if
        it has not ended: the database may be closed afterwards, and LMDB may wait for ever where it is closed
        while another thread reads.
        """
        with self._changed:
            self._ends = time.monotonic() + seconds
            self._changed.notify()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
        with self._changed:
            left = len(self._items) + self._at_work
            self._items.clear()
        return left

    def _run(self) -> None:
        while (item := self._next()) is not None:
            self._at_work = 1
            try:
                self._handle(item[0])
            except Exception as error:  # noqa: BLE001 - the next item has nothing to do with it
                # Its text could hold anything that the item holds.
                _log.error("a request for a link failed: %s", type(error).__name__)
            self._at_work = 0

    def _next(self) -> tuple[T] | None:
        """Waits for the next item whose time has come; None when the queue is stopped."""
        with self._changed:
            while self._ends is None or (self._items and time.monotonic() < self._ends):
                wait_s = self._items[0][0] - time.monotonic() if self._items else None
                if self._ends is not None or (wait_s is not None and wait_s <= 0):
                    return (heapq.heappop(self._items)[2],)
                self._changed.wait(wait_s)
        return None
