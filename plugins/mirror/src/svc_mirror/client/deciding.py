"""What is to be done at a path: a function of what stands here, what stands there, and what stood at both.

Who changed nothing follows. A change beats a deletion. Of two changes the server's keeps the name, and this
machine's is set aside under another one, from where it is stored as a new file.
"""

from __future__ import annotations

from enum import Enum

from svc_mirror.client.values import Standing

__all__ = ["Action", "decide"]


class Action(Enum):
    """A step at one path."""

    SETTLE = "settle"
    """Both sides are alike: note that."""
    DELETE_THERE = "delete on the server"
    DELETE_HERE = "delete here"
    SET_ASIDE = "set aside"
    FETCH = "fetch"
    STORE = "store"
    KEEP = "keep here"
    """It was changed here, and nothing is sent."""


def decide(here: Standing, base: Standing, there: Standing, *, down_only: bool = False) -> list[Action]:
    """Returns the steps, in their order.

    Args:
        here: what stands on this machine.
        base: what both had when they were alike last.
        there: what the server has.
        down_only: nothing is sent: what was deleted here comes again, and what was changed here stays.
    """
    if here == there:
        return [] if base == here else [Action.SETTLE]
    if here == base or (here is None and (down_only or there != base)):
        return _replaced(here, there, Action.DELETE_HERE, Action.FETCH)
    if there == base or there is None:
        if down_only:
            return [Action.KEEP]
        return _replaced(there, here, Action.DELETE_THERE, Action.STORE)
    return [Action.SET_ASIDE, Action.FETCH]


def _replaced(old: Standing, new: Standing, delete: Action, make: Action) -> list[Action]:
    steps = []
    if old is not None and (new is None or old[0] is not new[0]):
        steps.append(delete)
    if new is not None:
        steps.append(make)
    return steps
