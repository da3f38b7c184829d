"""Compare-and-swap: what a state decided is committed only while that state holds, else decided anew."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from svc.errors import Conflict, PreconditionFailed

__all__ = ["attempt"]

T = TypeVar("T")

ATTEMPTS = 100
_LONGEST_PAUSE_S = 0.05


def attempt(work: Callable[[], T], what: str) -> T:
    """Runs work that reads a state and commits under the condition that it still holds; blocks.

    Args:
        work: called again while its commit finds another state (``PreconditionFailed``).
        what: what changes all the time, for the error.

    Raises:
        Conflict: the state never held still.
    """
    for number in range(ATTEMPTS):
        try:
            return work()
        except PreconditionFailed:
            # The others that lost the same race go at different times.
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE_S, 0.001 * 2**number)))
    raise Conflict(f"{what} changes all the time; try again.")
