"""Places in the log: what the id of an event says.

An id is the number of the commit and that of the event within it, both of fixed width, so that ids compare
as texts do: ``000000000042.000001``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from svc.errors import InvalidInput

__all__ = ["BEGINNING", "LAST_NUMBER", "Place", "parse_place"]

LAST_NUMBER = 999_999
"""Stands behind every event of a commit."""

_ID = re.compile(r"([0-9]{1,12})(?:\.([0-9]{6}))?", re.ASCII)


class Place(NamedTuple):
    """Right behind an event; how far somebody has read.

    Attributes:
        sequence: number of the commit.
        number: of the event in its commit, from 1; ``LAST_NUMBER`` behind all of them.
    """

    sequence: int
    number: int = LAST_NUMBER

    def __str__(self) -> str:
        return f"{self.sequence:012d}.{self.number:06d}"


BEGINNING = Place(0)


def parse_place(text: str) -> Place:
    """Returns the place of an id; the number of a commit alone stands behind all of its events."""
    match = _ID.fullmatch(text)
    if match is None:
        raise InvalidInput(
            "The id of an event is the number of a commit, a dot and six digits, as events have it.",
            field="last_event_id",
        )
    return Place(int(match[1]), LAST_NUMBER if match[2] is None else int(match[2]))
