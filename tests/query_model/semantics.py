"""What a query means, as the specification states it: every document is looked at, and nothing is clever."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from query_model import texts

Json = Any
Path = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A file: what is stored of it, and the values of its fields."""

    path: Path
    size: int
    content_type: str
    created: int
    updated: int
    hash: str
    fields: dict[str, list[Json]] = field(default_factory=dict)

    def values(self, name: str) -> list[Json]:
        if not name.startswith("@"):
            return self.fields.get(name, [])
        last = self.path[-1]
        stem, dot, ending = last.rpartition(".")
        found = {
            "@path": "/" + "/".join(self.path),
            "@filename": last,
            "@extension": ending.lower() if dot and stem and ending else None,
            "@content_type": self.content_type,
            "@hash": self.hash,
            "@size": self.size,
            "@created_at": self.created,
            "@updated_at": self.updated,
        }[name]
        return [] if found is None else [found]


Match = tuple[float, frozenset[str]]
"""The score of a document, and the fields of the leaves that it meets."""


def kind(value: Json) -> str:
    """Values of different kinds never compare."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "other"


def equal(left: Json, right: Json) -> bool:
    return kind(left) == kind(right) != "other" and bool(left == right)


def compares(left: Json, right: Json, holds: Callable[[Any, Any], bool]) -> bool:
    return kind(left) == kind(right) and kind(left) in ("number", "string") and holds(left, right)


def leaf_matches(leaf: dict[str, Json], values: Sequence[Json]) -> float | None:
    """The score of a document whose field has these values; None when it does not match."""
    op, wanted = leaf["op"], leaf.get("value")
    if op == "exists":
        return 1.0 if bool(values) is wanted else None
    if op == "ne":
        return 1.0 if values and not any(equal(value, wanted) for value in values) else None
    best: float | None = None
    for value in values:
        score = TESTS[op](value, wanted, leaf)
        if score is not None and (best is None or score > best):
            best = score
    return best


def yes(holds: bool) -> float | None:
    return 1.0 if holds else None


def between(value: Json, low: Json, leaf: dict[str, Json]) -> float | None:
    high = leaf["value2"]
    return yes(compares(value, low, lambda a, b: a >= b) and compares(value, high, lambda a, b: a <= b))


Test = Callable[[Json, Json, dict[str, Json]], float | None]


def of_texts(test: Test) -> Test:
    """Only texts match."""
    return lambda value, wanted, leaf: test(value, wanted, leaf) if isinstance(value, str) else None


TESTS: dict[str, Test] = {
    "eq": lambda value, wanted, _: yes(equal(value, wanted)),
    "in": lambda value, wanted, _: yes(any(equal(value, one) for one in wanted)),
    "gt": lambda value, wanted, _: yes(compares(value, wanted, lambda a, b: a > b)),
    "gte": lambda value, wanted, _: yes(compares(value, wanted, lambda a, b: a >= b)),
    "lt": lambda value, wanted, _: yes(compares(value, wanted, lambda a, b: a < b)),
    "lte": lambda value, wanted, _: yes(compares(value, wanted, lambda a, b: a <= b)),
    "between": between,
    "prefix": lambda value, wanted, _: yes(isinstance(value, str) and value.startswith(wanted)),
    "contains": of_texts(lambda value, wanted, _: yes(texts.contains(value, wanted))),
    "similar": of_texts(texts.similar),
    "fuzzy": of_texts(texts.fuzzy),
    "phonetic": of_texts(lambda value, wanted, _: texts.phonetic(value, wanted)),
    "match": of_texts(texts.best_of),
    "search": of_texts(lambda value, wanted, _: yes(texts.search(value, wanted))),
}


def match(where: Json, row: Row) -> Match | None:
    """Whether a document meets a filter: its score and the fields."""
    if isinstance(where, list):
        return match({"and": where}, row)
    if "and" in where:
        found = [match(part, row) for part in where["and"]]
        if any(part is None for part in found):
            return None
        score = 1.0
        names: frozenset[str] = frozenset()
        for part in found:
            assert part is not None
            score *= part[0]
            names |= part[1]
        return score, names
    if "or" in where:
        some = [part for part in (match(one, row) for one in where["or"]) if part is not None]
        if not some:
            return None
        return max(part[0] for part in some), frozenset().union(*(part[1] for part in some))
    if "not" in where:
        return (1.0, frozenset()) if match(where["not"], row) is None else None
    score_of_leaf = leaf_matches(where, row.values(where["field"]))
    return None if score_of_leaf is None else (score_of_leaf, frozenset((where["field"],)))


KINDS = ("null", "boolean", "number", "string")


def compare_values(left: Json, right: Json) -> int:
    """The order of two values: null, booleans, numbers, strings."""
    one, other = (KINDS.index(kind(value)) for value in (left, right))
    if one != other:
        return -1 if one < other else 1
    return (left > right) - (left < right) if one else 0


def order(
    found: Iterable[tuple[Row, Match]], order_by: Sequence[tuple[str, bool]]
) -> list[tuple[Row, Match]]:
    """The documents in the order of a query: its fields, then the best score, then the path.

    A document with several values counts by its least where the order ascends, by its greatest where it
    descends; one without any comes last.
    """

    def compare(left: tuple[Row, Match], right: tuple[Row, Match]) -> int:
        for name, descending in order_by:
            if name == "@score":
                result = (left[1][0] > right[1][0]) - (left[1][0] < right[1][0])
            elif name == "@path":
                result = (left[0].path > right[0].path) - (left[0].path < right[0].path)
            else:
                one, other = (deciding(side[0].values(name), descending) for side in (left, right))
                if not one or not other:
                    if one or other:
                        return -1 if one else 1
                    continue
                result = compare_values(one[0], other[0])
            if result:
                return -result if descending else result
        if left[1][0] != right[1][0]:
            return -1 if left[1][0] > right[1][0] else 1
        return (left[0].path > right[0].path) - (left[0].path < right[0].path)

    return sorted(found, key=functools.cmp_to_key(compare))


def deciding(values: Sequence[Json], descending: bool) -> list[Json]:
    """The value that a document is ordered by; nothing where it has none."""
    ordered = sorted(values, key=functools.cmp_to_key(compare_values))
    return ordered[-1:] if descending else ordered[:1]


def is_below(path: Path, directory: Path) -> bool:
    return path[: len(directory)] == directory
