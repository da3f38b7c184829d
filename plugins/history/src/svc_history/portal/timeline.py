"""A history as a picture: a bar for each change, where its time is between the first and the last."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from svc_history.models import HistoryRow
from svc_history.portal.shown import what_changed

__all__ = ["HEIGHT", "WIDTH", "Bar", "Timeline", "timeline_of"]

WIDTH = 1_000
HEIGHT = 48
_EDGE = 6
_LEAST = 14
_KINDS = ("added", "modified", "deleted")


class Bar(Struct, frozen=True):
    """A change: where its line is, how high, and its kind for the style sheet."""

    x: int
    top: int
    kind: str
    title: str


class Timeline(Struct, frozen=True):
    """The picture; times are those of its ends."""

    bars: list[Bar]
    first_ms: int
    last_ms: int
    width: int = WIDTH
    height: int = HEIGHT


def timeline_of(rows: Sequence[HistoryRow]) -> Timeline | None:
    """Returns the picture of some rows; None where there is nothing to see."""
    times = [row.timestamp for row in rows if row.timestamp]
    if len(times) < 2:
        return None
    first, last = min(times), max(times)
    span = max(1, last - first)
    bars = [
        Bar(
            _EDGE + (row.timestamp - first) * (WIDTH - 2 * _EDGE) // span,
            HEIGHT - _height_of(row),
            row.change_type if row.change_type in _KINDS else "other",
            what_changed(row),
        )
        for row in rows
        if row.timestamp
    ]
    return Timeline(bars, first, last)


def _height_of(row: HistoryRow) -> int:
    """The more changed, the higher; each further doubling by as much as the first."""
    counts = row.changes
    count = 1 if not counts else counts.added + counts.modified + counts.deleted
    return min(HEIGHT, _LEAST + 3 * count.bit_length())
