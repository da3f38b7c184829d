"""A few native threads whose results come back to the greenlets of one event loop.

gevent's own pool makes a watcher, a result and a timer for each call. Here one watcher serves all calls, and
a call is an item of a queue: 15 to 20 µs of the processor less, in a commit that takes a millisecond.
"""

from __future__ import annotations

from _queue import SimpleQueue  # that of ``queue`` is gevent's own in a process that it has patched
from collections import deque
from collections.abc import Callable
from typing import Any

from gevent.hub import Waiter
from gevent.monkey import get_original

__all__ = ["ReservedThreads"]


class ReservedThreads:
    """Threads of one process, started when they are first needed; they end with it.

    Greenlets of the hub's loop wait for them. What comes while all of ``most`` are busy waits for one.
    """

    def __init__(self, hub: Any, most: int) -> None:
        self._hub = hub
        self._most = most
        self._calls: SimpleQueue[tuple[Waiter[Any], Callable[[], Any]]] = SimpleQueue()
        self._done: deque[tuple[Waiter[Any], Any]] = deque()
        self._returned = hub.loop.async_()
        # Changed by greenlets of the loop alone.
        self._threads = 0
        self._under_way = 0

    def call(self, function: Callable[[], Any]) -> Any:
        """Returns what a function returns that a thread calls; it must not raise.

        A greenlet that is killed meanwhile waits no longer; the function runs to its end.
        """
        if self._under_way >= self._threads < self._most:
            get_original("_thread", "start_new_thread")(self._work, ())
            self._threads += 1
        if not self._under_way:
            self._returned.start(self._deliver)  # keeps the loop waiting until ``stop``
        self._under_way += 1
        waiter = Waiter(self._hub)
        self._calls.put((waiter, function))
        return waiter.get()

    def _work(self) -> None:
        while True:
            waiter, function = self._calls.get()
            self._done.append((waiter, function()))
            del function
            try:
                self._returned.send()
            except ValueError:
                return  # The loop was destroyed: the process ends.

    def _deliver(self) -> None:
        while self._done:
            waiter, result = self._done.popleft()
            self._under_way -= 1
            if not self._under_way:
                self._returned.stop()
            waiter.switch(result)
