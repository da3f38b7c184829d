"""The clock that records are dated by."""

from __future__ import annotations

import sys
import time

from svc.errors import ServiceUnavailable

__all__ = ["now_ms", "require_clock"]

_UNREADABLE = "The clock of this machine stands behind the year 2261, the last that this program can tell"


def require_clock() -> None:
    """Ends the program where the clock cannot be read; called before the imports that look at it."""
    try:
        time.time_ns()
    except OverflowError:
        sys.stderr.write(f"svc: {_UNREADABLE}: set it, and try again.\n")
        raise SystemExit(ServiceUnavailable.exit_code) from None


def now_ms() -> int:
    """Returns the time, Unix milliseconds; never negative.

    Raises ServiceUnavailable before 1970, which no record can hold, and behind 2261, which Python can't tell.
    """
    try:
        now = time.time_ns() // 1_000_000
    except OverflowError:
        raise ServiceUnavailable(f"{_UNREADABLE}: set it, and try again.") from None
    if now < 0:
        raise ServiceUnavailable("The clock of this machine stands before 1970: set it, and try again.")
    return now
