"""New connections go to the worker that has the fewest.

All workers wake when a connection comes in, and whoever is quickest has it: of 32 at once one worker took
29, and then worked alone. So each counts its connections in memory that all share, and one that has more
than another leaves a new one alone for a moment. Where nobody else comes for it, it takes it all the same.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable

__all__ = ["PATIENCE_SECONDS", "ConnectionCounts", "Patience", "Place"]

MOST_WORKERS = 64
"""Workers beyond that take no part."""

STALE_SECONDS = 2.0
"""A worker that has not been heard of for so long has died, or is busy."""

PATIENCE_SECONDS = 0.02
"""A connection is left to others for so long; half as long each time that nobody has come for one."""

_SLOT = struct.Struct("<dI4x")
_NOT_LISTENING = 2**32 - 1


class ConnectionCounts:
    """The counts of all workers of one master, which makes this before it forks.

    Args:
        clock: seconds, the same in all processes.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory = mmap.mmap(-1, MOST_WORKERS * _SLOT.size)
        self._clock = clock
        self._next = 0

    def reserve(self) -> Place | None:
        """Returns the place of a worker that is about to be forked; None when all are taken."""
        oldest = self._clock() - STALE_SECONDS
        for step in range(MOST_WORKERS):
            number = (self._next + step) % MOST_WORKERS
            heard_at, _ = _SLOT.unpack_from(self._memory, number * _SLOT.size)
            if not heard_at or heard_at <= oldest:
                # One that takes long to start is not heard of either: its place is taken last.
                self._next = number + 1
                place = Place(self, number)
                place.note_closed()
                return place
        return None

    def note(self, number: int, count: int) -> None:
        """Writes the count of a place."""
        _SLOT.pack_into(self._memory, number * _SLOT.size, self._clock(), count)

    def smallest(self, number: int) -> int | None:
        """As ``Place.smallest``, of a place by its number."""
        oldest = self._clock() - STALE_SECONDS
        counts = [
            count
            for other, (heard_at, count) in enumerate(_SLOT.iter_unpack(self._memory[:]))
            if heard_at > oldest and count != _NOT_LISTENING and other != number
        ]
        return min(counts, default=None)


class Place:
    """Where one worker notes its count.

    Args:
        counts: those of all workers.
        number: of the place among them.
    """

    def __init__(self, counts: ConnectionCounts, number: int) -> None:
        self._counts = counts
        self._number = number

    def note(self, count: int) -> None:
        """Notes how many connections the worker has; called several times a second."""
        self._counts.note(self._number, count)

    def note_closed(self) -> None:
        """Notes that the worker takes none."""
        self._counts.note(self._number, _NOT_LISTENING)

    def smallest(self) -> int | None:
        """Returns the smallest count of the other workers that listen; None where there is none."""
        return self._counts.smallest(self._number)


class Patience:
    """For how long a worker leaves a new connection to those who have fewer.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at: float | None = None
        self._seconds = PATIENCE_SECONDS
        self._smallest: int | None = None

    def is_left(self, own: int, smallest: int | None) -> bool:
        """Whether the worker leaves the connection alone that waits now.

        Args:
            own: how many it has.
            smallest: as ``Place.smallest``.
        """
        if smallest != self._smallest:
            # Somebody else is there, and takes some.
            self._smallest, self._seconds, self._began_at = smallest, PATIENCE_SECONDS, None
        if smallest is None or smallest >= own:
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
