"""New connections go to the worker that has the fewest, about.

All workers wake when a connection comes in, and whoever is quickest has it: of 32 at once one worker took
29, and then worked alone. So each counts its connections in memory that all share, and one that has more
than another leaves a new one alone for a moment. Where nobody else comes for it, it takes it all the same.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Sequence

__all__ = ["PATIENCE_SECONDS", "SLACK", "ConnectionCounts", "Patience", "Place"]

MOST_WORKERS = 64
"""Workers beyond that take no part."""

STALE_SECONDS = 2.0
"""A worker that has not been heard of for so long has died, or is busy."""

SLACK = 2
"""So many more than another is no reason to wait: counts of short connections go up and down."""

PATIENCE_SECONDS = 0.02
"""A connection is left to others for so long; half as long each time that nobody has come for one."""

_NOT_LISTENING = 2**64 - 1
_TABLE_BYTES = MOST_WORKERS * 8


class ConnectionCounts:
    """The counts of all workers of one master, which makes this before it forks.

    ``clock`` gives seconds, the same in all processes. ``heard_at`` has when each place was last heard of, 0
    before that; ``counts`` the connections of each place.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        memory = memoryview(mmap.mmap(-1, 2 * _TABLE_BYTES))
        self.heard_at = memory[:_TABLE_BYTES].cast("d")
        self.counts = memory[_TABLE_BYTES:].cast("Q")
        self.clock = clock
        self._next = 0

    def reserve(self) -> Place | None:
        """Returns the place of a worker that is about to be forked; None when all are taken."""
        for step in range(MOST_WORKERS):
            number = (self._next + step) % MOST_WORKERS
            if not self.is_alive(number):
                # One that takes long to start is not heard of either: its place is taken last.
                self._next = number + 1
                place = Place(self, number)
                place.note_closed()
                return place
        return None

    def is_alive(self, number: int) -> bool:
        """Whether the worker of a place was heard of lately."""
        return self.clock() - self.heard_at[number] < STALE_SECONDS and self.heard_at[number] > 0

    def others(self, number: int) -> list[int]:
        """Returns the places of the other workers that are alive."""
        return [other for other in range(MOST_WORKERS) if other != number and self.is_alive(other)]


class Place:
    """Where one worker notes its count."""

    def __init__(self, shared: ConnectionCounts, number: int) -> None:
        self._shared = shared
        self._counts = shared.counts
        self._number = number
        self._others: Sequence[int] = ()

    def note(self, count: int) -> None:
        """Notes how many connections the worker has."""
        self._counts[self._number] = count

    def note_alive(self, count: int) -> None:
        """As ``note``, and looks which others are alive; called several times a second."""
        self._counts[self._number] = count
        self._shared.heard_at[self._number] = self._shared.clock()
        self._others = self._shared.others(self._number)

    def note_closed(self) -> None:
        """Notes that the worker takes none."""
        self.note_alive(_NOT_LISTENING)

    def smallest(self) -> int | None:
        """Returns the smallest count of the other workers that listen; None where there is none."""
        counts = self._counts
        smallest = min([counts[other] for other in self._others], default=_NOT_LISTENING)
        return None if smallest == _NOT_LISTENING else smallest


class Patience:
    """For how long a worker leaves a new connection to those who have fewer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at: float | None = None
        self._seconds = PATIENCE_SECONDS
        self._smallest: int | None = None

    def is_left(self, own: int, smallest: int | None) -> bool:
        """Whether a worker with ``own`` connections leaves a new one to others; see ``Place.smallest``."""
        if smallest != self._smallest:
            # Somebody else is there, and takes some.
            self._smallest, self._seconds, self._began_at = smallest, PATIENCE_SECONDS, None
        if smallest is None or own - smallest <= SLACK:
            self._began_at = None
            return False
        now = self._clock()
        if self._began_at is None:
            self._began_at = now
        if now - self._began_at < self._seconds:
            return True
        self._began_at = None
        self._seconds /= 2
        return False
