"""What a query may take: time, rows that it looks at, and turns that it leaves to others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from svc.errors import InvalidInput, ServiceUnavailable
from svc.plugin import pause, run_blocking

__all__ = ["Budget"]

T = TypeVar("T")

_PAUSE_UNITS = 256
_STEPS_PER_UNIT = 16
_LOOK_UNITS = 8
_SLICE_SECONDS = 0.002
"""After so long others get their turn, however little was counted: one document can cost milliseconds."""


class Budget:
    """Counts the work of one query."""

    def __init__(
        self,
        seconds: float,
        rows: int,
        *,
        ends: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._ends = clock() + seconds if ends is None else ends
        self._looks_at = clock() + _SLICE_SECONDS
        self._units = 0
        self._steps = 0
        self.rows = rows

    def tick(self) -> None:
        """Counts a document that is looked at."""
        self._units += 1
        if self._units >= _PAUSE_UNITS:
            self.rest()
        elif self._units % _LOOK_UNITS == 0:
            self.look()

    def look(self) -> None:
        """Looks at the clock, around whatever may be dear: a test of a document, an answer of an index.

        Gives others their turn now and then; raises as ``tick``.
        """
        if self._clock() >= self._looks_at:
            self.rest()

    def step(self) -> None:
        """Counts a look at a row of an index, which is much cheaper; raises as ``tick``."""
        self._steps += 1
        if self._steps >= _STEPS_PER_UNIT:
            self._steps = 0
            self.tick()

    def rest(self) -> None:
        """Gives others their turn, whatever was done; raises as ``tick``."""
        self._units = 0
        # Before as well: whoever's time is over waits for no further turn.
        self._require_time()
        pause()
        self._looks_at = self._require_time() + _SLICE_SECONDS

    def _require_time(self) -> float:
        now = self._clock()
        if now > self._ends:
            raise ServiceUnavailable(
                f"The query took longer than the {self._seconds:g} seconds that it may: narrow it by path, "
                "by a condition that an index answers, or by a smaller limit.",
                limit=self._seconds,
            )
        return now

    def blocking(self, function: Callable[..., T], *args: Any) -> T:
        """Calls a function that blocks, while other requests run; raises as ``tick`` before and behind it."""
        self.rest()
        found = run_blocking(function, *args)
        self.rest()
        return found

    def refuse_rows(self, why: str) -> InvalidInput:
        """Returns the error of a query that would have to look at too many documents."""
        return InvalidInput(
            f"The query would have to look at more than {self.rows} documents, {why}.", limit=self.rows
        )

    def refuse_entries(self) -> InvalidInput:
        """Returns the error of a query by walk that would need more files than one looks at."""
        return InvalidInput(
            "A query of a snapshot, a version or a fork looks at a part of so many files, and can only be "
            "answered page by page in the order of the paths: leave out order_by, include_total, aggregate, "
            "before and offset, or query the directories below one by one.",
            field="path",
        )
