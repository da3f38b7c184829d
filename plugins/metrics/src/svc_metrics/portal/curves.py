"""Small curves as SVG, drawn by the server: points, and no script."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Curve", "Point", "curve_of"]

WIDTH = 240.0
HEIGHT = 64.0
_EDGE = 4.0
_AGES_MIN = (15, 5, 1)
_NAMES = ("15m", "5m", "1m")


class Point(Struct, frozen=True):
    """A point of a curve.

    Attributes:
        x, y: where it stands.
        value: what it says.
        minutes: over how many last minutes that is the mean.
    """

    x: float
    y: float
    value: float
    minutes: int


class Curve(Struct, frozen=True):
    """Means over the last 15, 5 and 1 minutes, from left to right.

    Attributes:
        points: those that are known.
        line: the points as an attribute of ``polyline`` takes them.
        peak_y: where the line of the highest minute stands; None where it is not known.
        peak: the highest minute.
    """

    points: list[Point]
    line: str
    peak_y: float | None
    peak: float | None


def curve_of(rates: dict[str, float | None]) -> Curve | None:
    """Returns the curve of a rate; None where nothing is known, as without a background process."""
    known = [(age, value) for age, value in zip(_AGES_MIN, map(rates.get, _NAMES), strict=True)]
    told = [(age, value) for age, value in known if value is not None]
    if not told:
        return None
    peak = rates.get("peak_1m")
    top = max([value for _, value in told] + [peak or 0.0]) or 1.0

    def height(value: float) -> float:
        return round(HEIGHT - _EDGE - (HEIGHT - 2 * _EDGE) * value / top, 1)

    oldest = _AGES_MIN[0] - _AGES_MIN[-1]
    points = [
        Point(
            round(_EDGE + (WIDTH - 2 * _EDGE) * (_AGES_MIN[0] - age) / oldest, 1), height(value), value, age
        )
        for age, value in told
    ]
    line = " ".join(f"{one.x},{one.y}" for one in points)
    return Curve(points, line, None if peak is None else height(peak), peak)
