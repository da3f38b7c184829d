"""Holds: objects that somebody has looked up and will use are not collected.

A collection that has set dead objects apart begins a new generation. What was looked up in an earlier one may
be among the dead, so nothing is destroyed until nobody holds an earlier generation. A hold costs a
microsecond or two: a process counts its own, and only the first and the last of a generation take and release
a lock that other processes see.
"""

from __future__ import annotations

import struct
from collections import deque
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from svc.log import CollectableStorage, LogStorage, SharedCell
from svc.native_locks import native_lock

__all__ = ["Hold", "Holds", "Phase"]

_CELL = struct.Struct("<QQ")


class Phase(IntEnum):
    """What the collection is about, as every process sees it."""

    IDLE = 0
    """Nothing is set apart, or what is set apart waits for a later collection."""
    GATED = 1
    """What was set apart is destroyed as soon as nobody holds an earlier generation."""


class Hold:
    """Keeps everything that was looked up since it was taken. Ends with ``release``, or with itself.

    Attributes:
        generation: in which it was taken.
    """

    __slots__ = ("_holds", "generation")

    def __init__(self, holds: Holds, generation: int) -> None:
        self._holds: Holds | None = holds
        self.generation = generation

    def release(self) -> None:
        """Lets a collection go on; releasing twice does no harm."""
        holds, self._holds = self._holds, None
        if holds is not None:
            holds.give_back(self.generation)

    __del__ = release

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Holds:
    """The holds of one opening of a database. Any thread may take and release; nothing blocks."""

    def __init__(self, storage: LogStorage, state_directory: Path, read_only: bool) -> None:
        self._storage = storage if isinstance(storage, CollectableStorage) else None
        self._path = state_directory / "collection"
        self._read_only = read_only
        self._cell: SharedCell | None = None
        # Between native threads; it is held only where no greenlet can be switched away.
        self._mutex = native_lock()
        self._counts: dict[int, int] = {}
        # What was given back and not yet counted: a hold may end wherever memory is reclaimed, also in a
        # thread that is just counting here.
        self._returned: deque[int] = deque()
        self._seen: tuple[bytes | None, int, Phase] = (None, 0, Phase.IDLE)

    def take(self) -> Hold:
        """Returns a hold of the present generation."""
        if self._storage is None:
            return Hold(self, -1)
        while True:
            generation = self.state()[0]
            with self._mutex:
                count = self._counts.get(generation, 0)
                if not count:
                    self._storage.hold_generation(generation)
                self._counts[generation] = count + 1
            if self._returned:
                self._count_returned()
            if self.state()[0] == generation:
                return Hold(self, generation)
            # A new one has begun before this was known to be held: whoever began it may not have seen it.
            self.give_back(generation)

    def state(self) -> tuple[int, Phase]:
        """Returns the present generation and the phase; about a microsecond."""
        cell = self._cell
        if cell is None:
            cell = self._cell = SharedCell(self._path, _CELL.size, read_only=self._read_only)
        payload = cell.read()
        seen, generation, phase = self._seen
        if payload is not seen:
            generation, number = _CELL.unpack(payload) if payload is not None else (0, 0)
            phase = Phase(number)
            self._seen = (payload, generation, phase)
        return generation, phase

    def publish(self, generation: int, phase: Phase) -> None:
        """Tells all processes the generation and the phase; only the one that collects does so."""
        self.state()
        assert self._cell is not None
        self._cell.write(_CELL.pack(generation, phase))

    def begin_generation(self) -> int:
        """Begins a generation that nobody can hold yet, and returns it; only the one that collects does so.

        The cell may have been lost while others live who hold more than it says now.
        """
        self._count_returned()
        with self._mutex:
            own = max(self._counts, default=0)
        others = -1 if self._storage is None else self._storage.highest_held()
        generation = max(self.state()[0], own, others) + 1
        self.publish(generation, Phase.GATED)
        return generation

    def is_held_before(self, generation: int) -> bool:
        """Whether anybody, in any process, holds an earlier generation."""
        self._count_returned()
        with self._mutex:
            own = any(one < generation for one in self._counts)
        return own or (self._storage is not None and self._storage.others_hold_before(generation))

    def give_back(self, generation: int) -> None:
        """Ends a hold; ``Hold.release`` calls it."""
        if generation >= 0:
            self._returned.append(generation)
            self._count_returned()

    def close(self) -> None:
        """Lets go of the cell; holds that are left may still be released."""
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.close()

    def _count_returned(self) -> None:
        # Whoever has the lock looks again after releasing it.
        while self._returned and self._mutex.acquire(False):
            try:
                while self._returned:
                    generation = self._returned.popleft()
                    left = self._counts[generation] - 1
                    if left:
                        self._counts[generation] = left
                    else:
                        del self._counts[generation]
                        if self._storage is not None:
                            self._storage.release_generation(generation)
            finally:
                self._mutex.release()
