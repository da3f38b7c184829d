"""Where blocking work runs, and how long work lets others run.

That is where it is called; but a server on gevent runs it in native threads, so that other requests go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

__all__ = [
    "Executor",
    "current_executor",
    "in_turns",
    "pause",
    "run_blocking",
    "use_executor",
    "without_turn",
]

T = TypeVar("T")

_TURN_ITEMS = 256
_TURN_SECONDS = 0.002


class Executor:
    """Runs everything in the calling thread. Other executors override its methods.

    ``abandoned`` is what ``pause``, and ``run`` of what pauses, raise where nobody waits any more for what
    the caller does. It is no ``Exception``, so that nothing makes an answer of it on its way out.
    """

    abandoned: type[BaseException] | tuple[()] = ()

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """Calls ``function(*args)``, which may block; raises what it raises. Others run meanwhile."""
        return function(*args)

    def begin(self, function: Callable[..., T], *args: Any) -> Callable[[], T]:
        """Begins ``function(*args)`` and returns what waits for its outcome, which raises what it raised."""
        try:
            result = function(*args)
        except BaseException as error:  # noqa: BLE001
            failure = error
        else:
            return lambda: result

        def fail() -> T:
            raise failure

        return fail

    def begin_beside(self, function: Callable[[], T]) -> Callable[[float], T]:
        """Begins a function beside the caller, also one that may never end.

        Returns what waits for its outcome for some seconds, and raises ``TimeoutError`` or what it raised.
        """
        outcome: Future[T] = Future()
        threading.Thread(target=_settle, args=(outcome, function), daemon=True).start()
        return outcome.result

    def run_reserved(self, function: Callable[[], T]) -> T:
        """As ``run``, in a pool that other work cannot fill: for what others may be waiting for."""
        return function()

    def run_shielded(self, function: Callable[[], None]) -> None:
        """Calls a function that runs to its end also when whoever waits for it here is killed."""
        function()

    def wait_for(self, event: threading.Event) -> None:
        """Waits until an event is set, by whichever thread or greenlet."""
        event.wait()

    def wait_until_idle(self, seconds: float) -> None:
        """Lets others do what they have to do by now, if they can't by themselves; for some time at most."""

    def pause(self) -> None:
        """Lets others run, if they can't by themselves."""

    def work_for(self, client: Hashable) -> None:
        """Says for which client the caller works from now on: in ``pause`` they take turns."""

    def begin_dear_work(self) -> None:
        """Waits for a turn to do work that costs much; until ``end_dear_work``. May be nested.

        Raises:
            RateLimited: too many requests of the same client wait for their turns.
            ServiceUnavailable: too many wait.
        """

    def end_dear_work(self) -> None:
        """Ends it."""

    def without_turn(self, *, waits_again: bool = True) -> AbstractContextManager[None]:
        """Gives the turn of the caller's dear work to others, for a block that only waits.

        Args:
            waits_again: for a turn behind the block; else it takes one only if one is free. Who holds what
                others with a turn wait for must not wait.
        """
        return nullcontext()


def _settle(outcome: Future[T], function: Callable[[], T]) -> None:
    try:
        outcome.set_result(function())
    except BaseException as error:  # noqa: BLE001 - whoever waits is told
        outcome.set_exception(error)


_current = Executor()


def current_executor() -> Executor:
    """Returns the executor of this process."""
    return _current


def use_executor(executor: Executor) -> None:
    """Makes an executor that of this process. Called after a fork, before requests are served."""
    global _current
    _current = executor


def run_blocking(function: Callable[..., T], *args: Any) -> T:
    """Calls ``function(*args)``, which may block, where the process lets such work run.

    In a server other requests are served meanwhile; elsewhere it is simply called. Raises what that raises.
    """
    return _current.run(function, *args)


def pause() -> None:
    """Gives others their turn; whoever works for long in a request calls it every few milliseconds.

    When nobody waits any more for what the caller does, it raises a ``BaseException``: let it pass.
    """
    _current.pause()


def without_turn() -> AbstractContextManager[None]:
    """Gives the turn of a dear request to others, for a block that only waits for what others do."""
    return _current.without_turn()


def in_turns(items: Iterable[T]) -> Iterator[T]:
    """Yields the items, with a ``pause`` after some hundreds, or some milliseconds; raises as that."""
    number, ends = 0, time.monotonic() + _TURN_SECONDS
    for item in items:
        yield item
        number += 1
        if number == _TURN_ITEMS or time.monotonic() >= ends:
            pause()
            number, ends = 0, time.monotonic() + _TURN_SECONDS
