"""What is said of a view, a job or a plugin that failed, and how long to wait before it is tried again."""

from __future__ import annotations

from svc.errors import SvcError
from svc.findings import describe_failure
from svc.log.creation import FULL

__all__ = ["LONGEST_WAIT_S", "describe_failure", "trace_of", "wait_after"]

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0


def trace_of(error: BaseException) -> BaseException | None:
    """Returns what the log shall print the trace of: nothing, where the sentence says it all."""
    if isinstance(error, OSError):
        return None if error.errno in FULL else error
    return None if isinstance(error, SvcError) and error.status != 500 else error


def wait_after(failures: int, first_s: float = FIRST_WAIT_S, longest_s: float = LONGEST_WAIT_S) -> float:
    """Returns the seconds to wait after so many failures in a row: twice as long each time, bounded."""
    return min(longest_s, first_s * 2.0 ** min(failures - 1, 32))
