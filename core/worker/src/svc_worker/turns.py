"""Fair turns of greenlets that work for long and ``pause``, and the end of work that nobody waits for."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from gevent import get_hub, getcurrent
from gevent.hub import Waiter

__all__ = [
    "Abandoned",
    "Crowded",
    "Turns",
    "abandon",
    "client_of",
    "forget_abandoned",
    "pause",
    "pause_if_due",
    "raise_if_abandoned",
    "run_on_behalf_of",
    "turns_are_wanted",
    "work_for",
]

T = TypeVar("T")

_ROUND_SECONDS = 0.002
"""So long go on, in each round of the event loop, greenlets that have paused; then sockets are looked at."""

_abandoned: set[Any] = set()
# By greenlet: where it waits for its turn.
_places: dict[Any, Waiter] = {}
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
        self._waiting: OrderedDict[Hashable, deque[Waiter]] = OrderedDict()

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
        current, place = getcurrent(), Waiter()
        self._waiting.setdefault(client, deque()).append(place)
        self._count += 1
        _places[current] = place
        try:
            place.get()
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
        _wake(places.popleft())
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

    def _give_up(self, client: Hashable, place: Waiter) -> bool:
        """Takes back a place whose turn has not come; returns whether that was so."""
        places = self._waiting.get(client)
        if places is None or place not in places:
            return False
        places.remove(place)
        self._count -= 1
        if not places:
            del self._waiting[client]
        return True


_Place = tuple[Any, Waiter]


class _Rounds:
    """Greenlets that have paused: in each round of the event loop some go on, of clients in turn.

    All share one timer, and one switch lets a greenlet go on: with a timer and an event for each, a quarter
    of the time of small queries went into their turns.
    """

    def __init__(self) -> None:
        # Clients in the order of their turns, each with those of it that go on, and those that begin.
        self._paused: OrderedDict[Hashable, tuple[deque[_Place], deque[_Place]]] = OrderedDict()
        # Those of the next round, by greenlet: who pauses again waits for another look at the sockets.
        self._coming: dict[Any, tuple[Hashable, bool, Waiter]] = {}
        # Of those of this round, by greenlet: the client, and the place in one of its two queues.
        self._places: dict[Any, tuple[Hashable, deque[_Place], _Place]] = {}
        self._timer: tuple[Any, Any] = (None, None)
        self._looked_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether sockets have not been looked at for as long as a round may take."""
        return time.monotonic() - self._looked_at >= _ROUND_SECONDS

    @property
    def is_empty(self) -> bool:
        """Whether nobody has paused."""
        return not (self._paused or self._coming)

    def wait(self, hub: Any, current: Any, *, begins: bool) -> None:
        """Lets a greenlet wait for its turn; of one client, those that begin come behind the others."""
        waiter = Waiter(hub)
        self._coming[current] = client_of(current), begins, waiter
        self._start(hub)
        try:
            waiter.get()
        finally:
            self.take_out(current)

    def take_out(self, greenlet: Any) -> Waiter | None:
        """Takes a greenlet out of those that wait; returns by what it does, None where it does not."""
        coming = self._coming.pop(greenlet, None)
        if coming is not None:
            return coming[2]
        found = self._places.pop(greenlet, None)
        if found is None:
            return None
        client, queue, place = found
        queue.remove(place)
        if not any(self._paused[client]):
            del self._paused[client]
        return place[1]

    def _start(self, hub: Any) -> None:
        if self._timer[0] is not hub:
            self._timer = hub, hub.loop.timer(0)
        timer = self._timer[1]
        if not timer.active:
            timer.start(self._go_on, hub)

    def _go_on(self, hub: Any) -> None:
        """Runs in the hub, behind a look at the sockets."""
        began = self._looked_at = time.monotonic()
        for greenlet, (client, begins, waiter) in self._coming.items():
            queue, place = self._paused.setdefault(client, (deque(), deque()))[begins], (greenlet, waiter)
            queue.append(place)
            self._places[greenlet] = client, queue, place
        self._coming.clear()
        while self._paused:
            client, (going_on, beginning) = next(iter(self._paused.items()))
            greenlet, waiter = (going_on or beginning).popleft()
            del self._places[greenlet]
            if going_on or beginning:
                self._paused.move_to_end(client)
            else:
                del self._paused[client]
            waiter.switch(None)
            if time.monotonic() - began >= _ROUND_SECONDS:
                break
        if not self.is_empty:
            self._start(hub)


_rounds = _Rounds()


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
    socket again. Of many that pause, those go on in each round of the event loop that have room in two
    milliseconds, clients in turn. A native thread goes on at once.

    Raises:
        Abandoned: nobody waits any more for what this greenlet, or thread, does.
    """
    hub = get_hub()
    current = getcurrent()
    if hub.main_hub:
        _rounds.wait(hub, current, begins=False)
    else:
        current = _waiting_for.get(current)
    raise_if_abandoned(current)


def pause_if_due() -> None:
    """As ``pause``, for a greenlet that begins; does nothing where sockets were looked at just now."""
    current = getcurrent()
    if _rounds.is_due:
        _rounds.wait(get_hub(), current, begins=True)
    raise_if_abandoned(current)


def raise_if_abandoned(greenlet: Any) -> None:
    """Raises ``Abandoned``, once, where nobody waits any more for what a greenlet does."""
    if greenlet in _abandoned:
        _abandoned.discard(greenlet)
        raise Abandoned


def turns_are_wanted() -> bool:
    """Whether some have paused, and wait for their turn."""
    return not _rounds.is_empty


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
    if place is None:
        place = _rounds.take_out(greenlet)
    if place is not None:
        _wake(place)


def _wake(place: Waiter) -> None:
    get_hub().loop.run_callback(place.switch, None)


def forget_abandoned(greenlet: Any) -> None:
    """Takes ``abandon`` back, when the greenlet turns to something else."""
    _abandoned.discard(greenlet)
