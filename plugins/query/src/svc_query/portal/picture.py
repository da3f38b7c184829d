"""The plan of a query as a picture: a tree of its steps, with bars for the rows and the time of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log10
from typing import Any

from msgspec import Struct

__all__ = ["Picture", "Step", "picture_of"]

ROW = 46
INDENT = 24
BOX = 330
BAR = 150
_MOST_STEPS = 200
_LONGEST = 40


class Step(Struct, frozen=True):
    """A step, and where it stands.

    Attributes:
        x: of its box.
        y: of its box.
        parent_y: of the box above that it belongs to; None for the first.
        title: what it does.
        text: how.
        rows: how many it found, or at most has, as a text.
        time: how long it took; empty where that was not measured.
        rows_width: of the bar of its rows.
        time_width: of the bar of its time.
    """

    x: int
    y: int
    parent_y: int | None
    title: str
    text: str
    rows: str
    time: str
    rows_width: float
    time_width: float


class Picture(Struct, frozen=True):
    """The steps from the top, and the size of the picture."""

    steps: list[Step]
    width: int
    height: int
    bars: int


def picture_of(plan: Mapping[str, Any]) -> Picture:
    """Returns the picture of a plan."""
    nodes = list(_walk(plan, 0, None, [0]))[:_MOST_STEPS]
    slowest = max((node.get("duration_ms") or 0 for node, *_ in nodes), default=0)
    most = max((_rows(node) or 0 for node, *_ in nodes), default=0)
    bars = BOX + INDENT * max(depth for _, depth, *_ in nodes) + 16
    steps = [
        Step(
            x=depth * INDENT,
            y=place * ROW,
            parent_y=None if parent is None else parent * ROW,
            title=_cut(f"{node['operator']} {node.get('field') or ''}".strip()),
            text=_cut(_how(node)),
            rows=_rows_text(node),
            time="" if node.get("duration_ms") is None else f"{node['duration_ms']:,} ms",
            rows_width=_logarithm(_rows(node) or 0, most),
            time_width=BAR * (node.get("duration_ms") or 0) / slowest if slowest else 0,
        )
        for node, depth, place, parent in nodes
    ]
    return Picture(steps, bars + 2 * BAR + 40, len(steps) * ROW, bars)


def _walk(
    node: Mapping[str, Any], depth: int, parent: int | None, count: list[int]
) -> Iterator[tuple[Mapping[str, Any], int, int, int | None]]:
    place = count[0]
    count[0] += 1
    yield node, depth, place, parent
    for child in node.get("children") or ():
        yield from _walk(child, depth + 1, place, count)


def _rows(node: Mapping[str, Any]) -> int | None:
    actual = node.get("actual_rows")
    return node.get("estimated_rows") if actual is None else actual


def _rows_text(node: Mapping[str, Any]) -> str:
    actual, estimated = node.get("actual_rows"), node.get("estimated_rows")
    if actual is not None:
        return f"{actual:,} found"
    return "" if estimated is None else f"at most {estimated:,}"


def _how(node: Mapping[str, Any]) -> str:
    parts = [str(node["strategy"])] if node.get("strategy") else []
    if node.get("index") == "walk":
        parts.append("file by file, no index")
    elif node.get("index"):
        parts.append(f"by the index {node['index']}")
    return ", ".join(parts)


def _logarithm(value: int, most: int) -> float:
    """A bar by powers of ten: a step that finds a hundredth of another is seen, too."""
    return BAR * log10(value + 1) / log10(most + 1) if most else 0


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
