"""Two texts side by side: which lines stand beside each other, and which words of them differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from msgspec import Struct

from svc.plugin import matching_blocks, pause
from svc_history.models import TextLine

__all__ = ["Cell", "SideRow", "side_by_side"]

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_WORDS = 300
_MOST_PAIRS = 500
_EFFORT = 2_000
_PAUSE_EVERY = 8

Part = tuple[str, bool]
"""A piece of a line, and whether the other side has another."""


class Cell(Struct, frozen=True):
    """A line of one side."""

    number: int
    parts: list[Part]
    is_changed: bool


class SideRow(Struct, frozen=True):
    """What stands beside each other; ``skips``: lines that are equal were left out before it."""

    before: Cell | None
    after: Cell | None
    skips: bool


def side_by_side(lines: Sequence[TextLine]) -> list[SideRow]:
    """Returns the rows of a comparison; words are compared in a bounded number of lines."""
    rows: list[SideRow] = []
    removed: list[TextLine] = []
    added: list[TextLine] = []
    pairs = 0
    last = (0, 0)
    for line in (*lines, None):
        if line is not None and (line.before is None or line.after is None):
            (removed if line.after is None else added).append(line)
            continue
        for old, new in zip_longest(removed, added):
            pairs += bool(old and new)
            if pairs % _PAUSE_EVERY == 0:
                pause()
            rows.append(_row_of(old, new, last, compares=pairs <= _MOST_PAIRS))
            last = (old and old.before) or last[0], (new and new.after) or last[1]
        removed, added = [], []
        if line is not None and line.before is not None and line.after is not None:
            skips = (line.before, line.after) != (last[0] + 1, last[1] + 1)
            whole = [(line.text, False)]
            rows.append(SideRow(Cell(line.before, whole, False), Cell(line.after, whole, False), skips))
            last = line.before, line.after
    return rows


def _row_of(old: TextLine | None, new: TextLine | None, last: tuple[int, int], *, compares: bool) -> SideRow:
    left = [(old.text, False)] if old else []
    right = [(new.text, False)] if new else []
    if old and new and compares:
        left, right = _marked(old.text, new.text)
    before = Cell(old.before, left, True) if old and old.before else None
    after = Cell(new.after, right, True) if new and new.after else None
    skips = (before is not None and before.number != last[0] + 1) or (
        after is not None and after.number != last[1] + 1
    )
    return SideRow(before, after, skips)


def _marked(old: str, new: str) -> tuple[list[Part], list[Part]]:
    """Both lines in pieces; in whole where they have nothing in common, or are long."""
    left, right = _WORD.findall(old), _WORD.findall(new)
    if max(len(left), len(right)) > _MOST_WORDS:
        return [(old, False)], [(new, False)]
    blocks = matching_blocks(left, right, effort=_EFFORT)
    if not any(left[block.before + place].strip() for block in blocks for place in range(block.length)):
        return [(old, False)], [(new, False)]
    left_parts: list[Part] = []
    right_parts: list[Part] = []
    i = j = 0
    for start, start_after, length in (*blocks, (len(left), len(right), 0)):
        left_parts += _parts(left[i:start], left[start : start + length])
        right_parts += _parts(right[j:start_after], right[start_after : start_after + length])
        i, j = start + length, start_after + length
    return left_parts, right_parts


def _parts(different: list[str], equal: list[str]) -> list[Part]:
    return [(text, mark) for text, mark in (("".join(different), True), ("".join(equal), False)) if text]
