"""Fair turns of greenlets that work for long and ``pause``, and the end of work that nobody waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from gevent import get_hub, getcurrent
from gevent.event import Event

__all__ = [
    "Abandoned",
    "abandon",
    "forget_abandoned",
    "pause",
    "run_on_behalf_of",
    "turns_are_wanted",
]

T = TypeVar("T")

_TURNS = 4
"""Greenlets that go on after a ``pause`` in each round of the event loop."""

_abandoned: set[Any] = set()
# By the greenlet of a native thread: who waits for what that thread does.
_waiting_for: dict[Any, Any] = {}


class Abandoned(BaseException):
    """Nobody waits any more for what this greenlet does; raised by ``pause``.

    No ``Exception``, so that nothing logs it or makes an answer of it on its way out.
    """


class _Turns:
    """A queue: greenlets that pause go on in order, a few in each round of the event loop.

    Otherwise thousands would all do a piece of work in one round, and everything else would wait for them.
    """

    def __init__(self, width: int) -> None:
        self._free = width
        self._waiting: deque[Event] = deque()

    def take(self, hub: Any) -> None:
        if self._free:
            self._free -= 1
        else:
            self._queue()
        try:
            hub.wait(hub.loop.timer(0))
        finally:
            self._pass_on()

    def _queue(self) -> None:
        place = Event()
        self._waiting.append(place)
        try:
            place.wait()
        except BaseException:
            if place.is_set():
                self._pass_on()
            else:
                self._waiting.remove(place)
            raise

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._free += 1

    @property
    def is_wanted(self) -> bool:
        return bool(self._waiting)


_turns = _Turns(_TURNS)


def pause() -> None:
    """Lets other greenlets run, those too whose sockets have just become ready.

    ``gevent.sleep(0)`` is not enough: gevent runs up to 50 greenlets that yield so before it looks at a
    socket again. Of many that pause, a few go on in each round of the event loop. A native thread goes on
    at once.

    Raises:
        Abandoned: nobody waits any more for what this greenlet, or thread, does.
    """
    hub = get_hub()
    current = getcurrent()
    if hub.main_hub:
        _turns.take(hub)
    else:
        current = _waiting_for.get(current)
    if current in _abandoned:
        _abandoned.discard(current)
        raise Abandoned


def turns_are_wanted() -> bool:
    """Whether so many pause that some of them wait for more than a round of the event loop."""
    return _turns.is_wanted


def run_on_behalf_of(greenlet: Any, function: Callable[..., T], *args: Any) -> T:
    """Calls a function in a native thread, which is abandoned when the greenlet that waits for it is."""
    own = getcurrent()
    _waiting_for[own] = greenlet
    try:
        return function(*args)
    finally:
        del _waiting_for[own]


def abandon(greenlet: Any) -> None:
    """Lets the next ``pause`` of a greenlet raise ``Abandoned``: nobody waits for what it does.

    Work that must not be broken off runs in a greenlet of its own, which nobody abandons.
    """
    _abandoned.add(greenlet)


def forget_abandoned(greenlet: Any) -> None:
    """Takes ``abandon`` back, when the greenlet turns to something else."""
    _abandoned.discard(greenlet)
