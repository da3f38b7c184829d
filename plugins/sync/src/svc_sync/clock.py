"""The hybrid clock: virtual times that follow the wall clock and never go back.

A virtual time has 63 bits: Unix milliseconds, then 16 bits that count within one. A commit is later than all
that its node has seen, so that what replaces something is later than what it replaces.
"""

from __future__ import annotations

from svc.errors import InvalidInput

__all__ = ["MAXIMUM_AHEAD_MS", "MAXIMUM_VT", "check_received", "milliseconds_of", "next_vt", "vt_of"]

MAXIMUM_VT = (1 << 63) - 1
MAXIMUM_AHEAD_MS = 366 * 86_400_000
"""A year. A clock that is further ahead would win over everybody until then."""

_COUNTER_BITS = 16


def next_vt(now_ms: int, last: int) -> int:
    """Returns the virtual time of the next commit.

    Args:
        now_ms: the wall clock.
        last: the greatest virtual time that this node has given or received.
    """
    return max(vt_of(now_ms), last + 1)


def vt_of(time_ms: int) -> int:
    """Returns the first virtual time of a millisecond."""
    return time_ms << _COUNTER_BITS


def milliseconds_of(vt: int) -> int:
    """Returns the wall-clock time that a virtual time stands for."""
    return vt >> _COUNTER_BITS


def check_received(vt: int, now_ms: int) -> None:
    """Refuses a virtual time of another node that is more than a year ahead, or none at all.

    Raises:
        InvalidInput: this node would have to give such times from then on, and could not go back.
    """
    if not 0 <= vt <= MAXIMUM_VT or milliseconds_of(vt) > now_ms + MAXIMUM_AHEAD_MS:
        raise InvalidInput(
            "A write of another node has a time more than a year ahead: set the clock of that node.", vt=vt
        )
