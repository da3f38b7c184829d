"""The order of rows: total, whatever the documents hold.

Values of different kinds stand in this order: null, false, true, numbers, texts by code points, arrays. A
document with several values is ordered by the smallest of them, downward by the largest; one without any
comes last in both directions. Behind the fields of the query come the score, best first, and the path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import total_ordering
from typing import Any, NamedTuple, TypeAlias

from svc.plugin import Path
from svc_query.api import Value

__all__ = ["COMPARED_CHARACTERS", "SCORE", "Key", "Order", "OrderField", "sort_key"]

SCORE = "@score"
_OF_THE_ROW = (SCORE, "@path")  # paths are ordered segment by segment, not as texts

COMPARED_CHARACTERS = 2_000
"""Texts that are the same so far are the same to an order."""

Key: TypeAlias = tuple[Any, ...]
"""What rows are compared by: one part for each field of the order, the score downward, the path."""


def sort_key(value: Value) -> tuple[int, Any]:
    """Returns what a value is compared with others by, of whatever kind they are."""
    if isinstance(value, str):
        return 3, value[:COMPARED_CHARACTERS]
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, tuple):
        return 4, value
    return 2, value


@total_ordering
class _Downward:
    """Compares the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Downward) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Downward) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


class OrderField(NamedTuple):
    """One field of an order."""

    name: str
    descending: bool = False


class Order:
    """The order of a query: the fields that decide. What stands behind ``@path`` decides nothing."""

    def __init__(self, fields: Sequence[OrderField] = ()) -> None:
        kept: list[OrderField] = []
        for field in fields:
            if field.name not in {one.name for one in kept}:
                kept.append(field)
            if field.name == "@path":
                break
        self.fields = tuple(kept)

    @property
    def name(self) -> str:
        """A text that two orders share when they are the same."""
        return ",".join(f"{'-' if field.descending else '+'}{field.name}" for field in self.fields)

    def path_direction(self, *, scored: bool) -> int:
        """Returns 1 or -1 when the order is that of the paths or its reverse, else 0."""
        if self.fields:
            first = self.fields[0]
            if first.name == SCORE and not scored:
                return Order(self.fields[1:]).path_direction(scored=False)
            return 0 if first.name != "@path" else -1 if first.descending else 1
        return 0 if scored else 1

    def starts_with_score(self) -> bool:
        """Whether the best come first, before any other field has a say."""
        return not self.fields or self.fields[0] == OrderField(SCORE, descending=True)

    def deciding(self, values_of: Callable[[str], Sequence[Value]]) -> list[tuple[bool, Value]]:
        """Returns for each field whether the document lacks it, and the value that it is ordered by."""
        found: list[tuple[bool, Value]] = []
        for name, descending in self.fields:
            if name in _OF_THE_ROW:
                found.append((False, None))
                continue
            values = values_of(name)
            if not values:
                found.append((True, None))
            elif len(values) == 1:
                found.append((False, values[0]))
            else:
                found.append((False, (max if descending else min)(values, key=sort_key)))
        return found

    def key(self, deciding: Sequence[tuple[bool, Value]], score: float, path: Path) -> Key:
        """Returns the key of a row."""
        parts: list[Any] = []
        for (name, descending), (missing, value) in zip(self.fields, deciding, strict=True):
            if missing:
                parts.append((1,))
                continue
            part: Any = sort_key(value)
            if name in _OF_THE_ROW:
                part = score if name == SCORE else path
            parts.append((0, _Downward(part) if descending else part))
        parts += (-score, path)
        return tuple(parts)
