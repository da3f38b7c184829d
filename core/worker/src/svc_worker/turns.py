"""Fair turns of greenlets that work for long and ``pause``, and the end of work that nobody waits for."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from gevent import get_hub, getcurrent
from gevent.event import Event

__all__ = [
    "Abandoned",
    "Crowded",
    "Turns",
    "abandon",
    "client_of",
    "forget_abandoned",
    "pause",
    "raise_if_abandoned",
    "run_on_behalf_of",
    "turns_are_wanted",
    "work_for",
]

T = TypeVar("T")

_TURNS = 4
"""Greenlets that go on after a ``pause`` in each round of the event loop, each of another client."""

_abandoned: set[Any] = set()
# By greenlet: where it waits for its turn.
_places: dict[Any, Event] = {}
# By the greenlet of a native thread: who waits for what that thread does.
_waiting_for: dict[Any, Any] = {}


class Abandoned(BaseException):
    """Nobody waits any more for what this greenlet does; raised by ``pause``.

    No ``Exception``, so that nothing logs it or makes an answer of it on its way out.
    """


class Crowded(Exception):
    """So many wait that nobody else may: ``of_client``, of the same client; else of all."""

    def __init__(self, *, of_client: bool) -> None:
        super().__init__("Too many wait for their turn.")
        self.of_client = of_client


class Turns:
    """Few at a time go on; the others wait, and the clients among them take turns.

    So one who sends hundreds of requests makes those of others wait for one of them, not for all.

    Args:
        width: how many go on at a time.
        per_client: how many of them may be one client's.
        most_waiting: how many may wait; None: no bound.
        most_of_client: how many of these may be one client's; None: no bound.
    """

    def __init__(
        self,
        width: int,
        per_client: int,
        *,
        most_waiting: int | None = None,
        most_of_client: int | None = None,
    ) -> None:
        self._free = width
        self._per_client = per_client
        self._most_waiting = most_waiting
        self._most_of_client = most_of_client
        self._count = 0
        self._going_on: Counter[Hashable] = Counter()
        # Clients in the order of their turns, each with those of it that wait, the first first.
        self._waiting: OrderedDict[Hashable, deque[Event]] = OrderedDict()

    def enter(self, client: Hashable, *, again: bool = False) -> None:
        """Waits for a turn, which ``leave`` ends; ``again``: also where as many wait as may.

        Raises:
            Crowded: as many wait as may.
            Abandoned: nobody waits any more for what this greenlet does.
        """
        if self.is_free(client):
            self._free -= 1
            self._going_on[client] += 1
            return
        if not again:
            self._require_room(client)
        current, place = getcurrent(), Event()
        self._waiting.setdefault(client, deque()).append(place)
        self._count += 1
        _places[current] = place
        try:
            place.wait()
        except BaseException:
            if not self._give_up(client, place):
                self.leave(client)
            raise
        finally:
            del _places[current]
        if self._give_up(client, place):  # Woken by ``abandon``.
            _abandoned.discard(current)
            raise Abandoned

    def is_free(self, client: Hashable) -> bool:
        """Whether ``enter`` would not wait."""
        return bool(self._free) and self._going_on[client] < self._per_client

    def leave(self, client: Hashable) -> None:
        """Ends a turn; the next client's begins."""
        self._going_on[client] -= 1
        if not self._going_on[client]:
            del self._going_on[client]
        self._free += 1
        following = next((one for one in self._waiting if self._going_on[one] < self._per_client), None)
        if following is None:
            return
        self._free -= 1
        self._count -= 1
        self._going_on[following] += 1
        places = self._waiting[following]
        places.popleft().set()
        if places:
            self._waiting.move_to_end(following)
        else:
            del self._waiting[following]

    @property
    def is_wanted(self) -> bool:
        """Whether any wait."""
        return bool(self._waiting)

    def _require_room(self, client: Hashable) -> None:
        if self._most_of_client is not None and len(self._waiting.get(client, ())) >= self._most_of_client:
            raise Crowded(of_client=True)
        if self._most_waiting is not None and self._count >= self._most_waiting:
            raise Crowded(of_client=False)

    def _give_up(self, client: Hashable, place: Event) -> bool:
        """Takes back a place whose turn has not come; returns whether that was so."""
        places = self._waiting.get(client)
        if places is None or place not in places:
            return False
        places.remove(place)
        self._count -= 1
        if not places:
            del self._waiting[client]
        return True


_turns = Turns(_TURNS, per_client=1)


def work_for(client: Hashable) -> None:
    """Says for whom this greenlet works, from now on: clients take turns in ``pause``."""
    getcurrent().svc_client = client


def client_of(greenlet: Any) -> Hashable:
    """Returns for whom a greenlet works: where nobody has said so, for a client of its own."""
    client: Hashable = getattr(greenlet, "svc_client", greenlet)
    return client


def pause() -> None:
    """Lets other greenlets run, those too whose sockets have just become ready.

    ``gevent.sleep(0)`` is not enough: gevent runs up to 50 greenlets that yield so before it looks at a
    socket again. Of many that pause, a few go on in each round of the event loop, each of another client. A
    native thread goes on at once.

    Raises:
        Abandoned: nobody waits any more for what this greenlet, or thread, does.
    """
    hub = get_hub()
    current = getcurrent()
    if hub.main_hub:
        client = client_of(current)
        _turns.enter(client)
        try:
            hub.wait(hub.loop.timer(0))
        finally:
            _turns.leave(client)
    else:
        current = _waiting_for.get(current)
    raise_if_abandoned(current)


def raise_if_abandoned(greenlet: Any) -> None:
    """Raises ``Abandoned``, once, where nobody waits any more for what a greenlet does."""
    if greenlet in _abandoned:
        _abandoned.discard(greenlet)
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

    One that waits for its turn gives up its place at once. Work that must not be broken off runs in a
    greenlet of its own, which nobody abandons.
    """
    _abandoned.add(greenlet)
    place = _places.get(greenlet)
    if place is not None:
        place.set()


def forget_abandoned(greenlet: Any) -> None:
    """Takes ``abandon`` back, when the greenlet turns to something else."""
    _abandoned.discard(greenlet)
