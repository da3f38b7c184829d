"""The executor of a server on gevent: what blocks runs on native threads, and greenlets go on meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from gevent import Timeout, get_hub, getcurrent, spawn
from gevent.hub import Waiter

from svc.errors import RateLimited, ServiceUnavailable
from svc.executor import Executor
from svc_server.reserved_threads import ReservedThreads
from svc_worker.turns import (
    Abandoned,
    Crowded,
    Turns,
    client_of,
    pause,
    pause_if_due,
    raise_if_abandoned,
    run_on_behalf_of,
    work_for,
)

__all__ = ["GeventExecutor"]

T = TypeVar("T")
_Outcome: TypeAlias = tuple[T | None, BaseException | None]

_RESERVED_THREADS = 16
_DEAR_REQUESTS = 32
_DEAR_REQUESTS_OF_A_CLIENT = 8
"""So many dear requests are at work in a worker, of all clients and of one; the others wait."""

_MOST_WAITING = 1_000
_MOST_WAITING_OF_A_CLIENT = 100
_RETRY_AFTER_S = 2

_DEAR_THREADS = 3
_DEAR_THREADS_OF_A_CLIENT = 2
_WAIT_SECONDS = 0.25


class GeventExecutor(Executor):
    """For a process that gevent has patched. Called in a native thread, it runs everything there.

    Work goes to the threads of gevent's own pool; what others may wait for, such as the sync of a commit, to
    threads reserved for it.
    """

    abandoned = Abandoned

    def __init__(self) -> None:
        self._reserved: tuple[int, ReservedThreads] | None = None
        self._dear_turns = Turns(
            _DEAR_REQUESTS,
            _DEAR_REQUESTS_OF_A_CLIENT,
            most_waiting=_MOST_WAITING,
            most_of_client=_MOST_WAITING_OF_A_CLIENT,
        )
        self._thread_turns = Turns(_DEAR_THREADS, _DEAR_THREADS_OF_A_CLIENT)
        # By greenlet: the client of its turn, and how many blocks of dear work it is in.
        self._dear: dict[Any, tuple[Hashable, int]] = {}

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """As ``Executor.run``; raises ``Abandoned`` when the function pauses and nobody waits any more."""
        hub = get_hub()
        if not hub.main_hub:
            return function(*args)  # A native thread: nobody else waits for it.
        current = getcurrent()
        if current in self._dear:
            return self._run_in_turn(hub, current, function, *args)
        return _apply(hub, current, function, *args)

    def _run_in_turn(self, hub: Any, current: Any, function: Callable[..., T], *args: Any) -> T:
        client = client_of(current)
        self._thread_turns.enter(client)
        try:
            raise_if_abandoned(current)
            return _apply(hub, current, function, *args)
        finally:
            self._thread_turns.leave(client)

    def work_for(self, client: Hashable) -> None:
        """As ``Executor.work_for``."""
        work_for(client)

    def begin_dear_work(self) -> None:
        """As ``Executor.begin_dear_work``: few are at work, and few have threads."""
        if not get_hub().main_hub:
            return
        current = getcurrent()
        client, depth = self._dear.get(current, (client_of(current), 0))
        if depth:
            self._dear[current] = client, depth + 1
            return
        pause_if_due()  # Before: who waits only for a round of the event loop keeps no turn from others.
        self._enter(client)
        self._dear[current] = client, 1

    def _enter(self, client: Hashable) -> None:
        try:
            self._dear_turns.enter(client)
        except Crowded as crowded:
            if crowded.of_client:
                raise RateLimited(
                    f"So many of your requests that cost much wait already ({_MOST_WAITING_OF_A_CLIENT}); "
                    "send them again when some were answered.",
                    retry_after=_RETRY_AFTER_S,
                ) from None
            raise ServiceUnavailable(
                "Too many requests that cost much wait already.", retry_after=_RETRY_AFTER_S
            ) from None

    def end_dear_work(self) -> None:
        """As ``Executor.end_dear_work``."""
        current = getcurrent()
        client, depth = self._dear.pop(current, (None, 0))
        if depth > 1:
            self._dear[current] = client, depth - 1
        elif depth:
            self._dear_turns.leave(client)

    @contextmanager
    def without_turn(self, *, waits_again: bool = True) -> Iterator[None]:
        """As ``Executor.without_turn``."""
        current = getcurrent()
        held = self._dear.pop(current, None)
        if held is not None:
            self._dear_turns.leave(held[0])
        try:
            yield
        finally:
            if held is not None and (waits_again or self._dear_turns.is_free(held[0])):
                self._dear_turns.enter(held[0], again=True)
                self._dear[current] = held

    def begin(self, function: Callable[..., T], *args: Any) -> Callable[[], T]:
        """As ``Executor.begin``."""
        hub = get_hub()
        if not hub.main_hub:
            return super().begin(function, *args)
        begun = hub.threadpool.spawn(_outcome_of, function, *args)
        return lambda: _unwrap(begun.get())

    def begin_beside(self, function: Callable[[], T]) -> Callable[[float], T]:
        """As ``Executor.begin_beside``, in a greenlet of its own."""
        if not get_hub().main_hub:
            return super().begin_beside(function)
        begun = spawn(_outcome_of, function)

        def wait(seconds: float) -> T:
            try:
                outcome: _Outcome[T] = begun.get(timeout=seconds)
            except Timeout:
                raise TimeoutError from None
            return _unwrap(outcome)

        return wait

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


def _apply(hub: Any, current: Any, function: Callable[..., T], *args: Any) -> T:
    outcome: _Outcome[T] = hub.threadpool.apply(run_on_behalf_of, (current, _outcome_of, function, *args))
    return _unwrap(outcome)


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
