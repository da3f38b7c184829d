"""The executor of a server on gevent: what blocks runs on native threads, and greenlets go on meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from gevent import get_hub, getcurrent, spawn
from gevent.hub import Waiter

from svc.executor import Executor
from svc_server.reserved_threads import ReservedThreads
from svc_worker.turns import Abandoned, pause, run_on_behalf_of

__all__ = ["GeventExecutor"]

T = TypeVar("T")
_Outcome: TypeAlias = tuple[T | None, BaseException | None]

_RESERVED_THREADS = 16
_WAIT_SECONDS = 0.25


class GeventExecutor(Executor):
    """For a process that gevent has patched. Called in a native thread, it runs everything there.

    Work goes to the threads of gevent's own pool; what others may wait for, such as the sync of a commit, to
    threads reserved for it.
    """

    abandoned = Abandoned

    def __init__(self) -> None:
        self._reserved: tuple[int, ReservedThreads] | None = None

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """As ``Executor.run``; raises ``Abandoned`` when the function pauses and nobody waits any more."""
        hub = get_hub()
        if not hub.main_hub:
            return function(*args)  # A native thread: nobody else waits for it.
        outcome: _Outcome[T] = hub.threadpool.apply(
            run_on_behalf_of, (getcurrent(), _outcome_of, function, *args)
        )
        return _unwrap(outcome)

    def begin(self, function: Callable[..., T], *args: Any) -> Callable[[], T]:
        """As ``Executor.begin``."""
        hub = get_hub()
        if not hub.main_hub:
            return super().begin(function, *args)
        begun = hub.threadpool.spawn(_outcome_of, function, *args)
        return lambda: _unwrap(begun.get())

    def run_reserved(self, function: Callable[[], T]) -> T:
        """As ``Executor.run_reserved``."""
        hub = get_hub()
        if not hub.main_hub or getcurrent() is hub:
            return function()
        if self._reserved is None or self._reserved[0] != os.getpid():
            self._reserved = (os.getpid(), ReservedThreads(hub, _RESERVED_THREADS))
        outcome: _Outcome[T] = self._reserved[1].call(partial(_outcome_of, function))
        return _unwrap(outcome)

    def run_shielded(self, function: Callable[[], None]) -> None:
        """As ``Executor.run_shielded``, in a greenlet of its own."""
        _unwrap(spawn(_outcome_of, function).get())

    def wait_for(self, event: threading.Event) -> None:
        """As ``Executor.wait_for``."""
        if get_hub().main_hub:
            event.wait()  # A timer would cost as much as the rest of the wait.
            return
        # A native thread has nothing else that would keep gevent waiting there.
        while not event.wait(_WAIT_SECONDS):
            pass

    def wait_until_idle(self, seconds: float) -> None:
        """As ``Executor.wait_until_idle``: until the event loop has nothing to do."""
        hub = get_hub()
        if not hub.main_hub:
            return
        waiter = Waiter(hub)
        idle, timer = hub.loop.idle(), hub.loop.timer(seconds)
        idle.start(waiter.switch, None)
        timer.start(waiter.switch, None)
        try:
            waiter.get()
        finally:
            for watcher in (idle, timer):
                watcher.stop()
                watcher.close()

    def pause(self) -> None:
        """Lets other greenlets run; see ``svc_worker.turns.pause``."""
        pause()


def _outcome_of(function: Callable[..., T], *args: Any) -> _Outcome[T]:
    """Returns a result, or an error as a value: what is raised in a thread of its own, gevent prints."""
    try:
        return function(*args), None
    except BaseException as error:  # noqa: BLE001
        return None, error


def _unwrap(outcome: _Outcome[T]) -> T:
    result, error = outcome
    if error is not None:
        raise error
    return cast("T", result)
