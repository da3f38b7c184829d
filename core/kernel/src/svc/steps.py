"""What a request spends its time with, noted where it happens, for those who observe requests.

Nothing is noted where nobody observes. A step that a native thread does on behalf of a request is not noted.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

__all__ = ["Step", "Steps", "follow_steps", "forget_steps", "present_steps"]

_MOST_STEPS = 100
"""Of one request; what comes behind is left out."""


class Step(NamedTuple):
    """Part of a request: its name, and when it began and ended by ``time.monotonic``."""

    name: str
    began: float
    ended: float


class Steps(list[Step]):
    """The steps of one request, in the order of their ends."""

    def note(self, name: str, began: float, ended: float) -> None:
        """Adds one, from whichever thread."""
        if len(self) < _MOST_STEPS:
            self.append(Step(name, began, ended))


_steps: ContextVar[Steps | None] = ContextVar("svc_steps", default=None)


def follow_steps() -> Steps:
    """Begins with the steps of the request that this greenlet or thread answers from now on."""
    steps = Steps()
    _steps.set(steps)
    return steps


def forget_steps() -> None:
    """Says that the request is answered."""
    _steps.set(None)


def present_steps() -> Steps | None:
    """Returns the steps of the request that is being answered here; None where nobody observes it."""
    return _steps.get()
