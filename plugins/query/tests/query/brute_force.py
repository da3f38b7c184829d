"""What a query means, document by document: the slow way, without any of the planner."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

from svc_query.api import Value

from .memory_snapshot import MemorySnapshot, Path, word_score  # noqa: TID252

KINDS = ("null", "boolean", "number", "text")


def kind_of(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def same(left: Value, right: Value) -> bool:
    return kind_of(left) == kind_of(right) and left == right


def holds(op: str, value: Value, leaf: dict[str, Any]) -> float | None:
    """Whether one value matches, and how well."""
    given = leaf.get("value")
    if op in ("contains", "similar"):
        if not isinstance(value, str) or given.casefold() not in value.casefold():
            return None
        return round(len(given) / len(value), 1) or 0.1 if op == "similar" and value else 1.0
    if op == "search":
        return word_score(given.casefold(), [value])
    if op == "eq":
        found = same(value, given)
    elif op == "in":
        found = any(same(value, one) for one in given)
    elif op == "between":
        found = (
            kind_of(value) == kind_of(given) == kind_of(leaf["value2"]) and given <= value <= leaf["value2"]
        )
    else:
        comparable = kind_of(value) == kind_of(given)
        if kind_of(given) == "null":
            found = comparable and op in ("gte", "lte")
        else:
            found = (
                comparable
                and {
                    "gt": lambda: value > given,
                    "gte": lambda: value >= given,
                    "lt": lambda: value < given,
                    "lte": lambda: value <= given,
                }[op]()
            )
    return 1.0 if found else None


def score_of(snapshot: MemorySnapshot, path: Path, where: Any) -> float | None:
    if isinstance(where, list):
        where = {"and": where}
    if "and" in where:
        product = 1.0
        for one in where["and"]:
            score = score_of(snapshot, path, one)
            if score is None:
                return None
            product *= score
        return product
    if "or" in where:
        scores = [score_of(snapshot, path, one) for one in where["or"]]
        return max((score for score in scores if score is not None), default=None)
    if "not" in where:
        return 1.0 if score_of(snapshot, path, where["not"]) is None else None
    values = values_of(snapshot, path, where["field"])
    op = where["op"]
    if op == "exists":
        return 1.0 if bool(values) is where.get("value", True) else None
    if op == "ne":
        return 1.0 if values and not any(same(value, where["value"]) for value in values) else None
    if op == "match":
        parts = [score_of(snapshot, path, {**where, "op": name}) for name in ("contains", "similar")]
        return max((score for score in parts if score is not None), default=None)
    scores = [holds(op, value, where) for value in values]
    if op == "search" and not snapshot.indexed:
        scores = [None if score is None else 1.0 for score in scores]  # only an index ranks
    return max((score for score in scores if score is not None), default=None)


def values_of(snapshot: MemorySnapshot, path: Path, name: str) -> Sequence[Value]:
    document = next(one for one in snapshot.documents(snapshot.live()) if one.path == path)
    return snapshot.values(document, name)


def compare(left: Value, right: Value) -> int:
    if kind_of(left) != kind_of(right):
        return KINDS.index(kind_of(left)) - KINDS.index(kind_of(right))
    if left is None or left == right:
        return 0
    return -1 if left < right else 1  # type: ignore[operator]


def ordered_rows(
    snapshot: MemorySnapshot, where: Any, order: Sequence[tuple[str, str]], visible: Any, below: Path = ()
) -> list[tuple[Path, float]]:
    """All rows in their order."""
    rows = [
        (path, score)
        for path in sorted(snapshot.files)
        if path[: len(below)] == below
        and visible(path)
        and (score := score_of(snapshot, path, where)) is not None
    ]
    picks = {"asc": lambda one, other: one if compare(one, other) <= 0 else other}
    picks["desc"] = lambda one, other: one if compare(one, other) >= 0 else other

    def deciding(path: Path, name: str, direction: str) -> tuple[bool, Value]:
        values = list(values_of(snapshot, path, name))
        if not values:
            return True, None
        best = values[0]
        for value in values[1:]:
            best = picks[direction](best, value)
        return False, best

    def compared(left: tuple[Path, float], right: tuple[Path, float]) -> int:
        for name, direction in order:
            if name == "@score":
                result = (left[1] > right[1]) - (left[1] < right[1])
            elif name == "@path":
                result = (left[0] > right[0]) - (left[0] < right[0])
            else:
                (lacks, one), (other_lacks, other) = (
                    deciding(row[0], name, direction) for row in (left, right)
                )
                if lacks or other_lacks:
                    if lacks != other_lacks:
                        return 1 if lacks else -1
                    continue
                result = compare(one, other)
            if result:
                return -result if direction == "desc" else result
        if left[1] != right[1]:
            return 1 if left[1] < right[1] else -1
        return (left[0] > right[0]) - (left[0] < right[0])

    return sorted(rows, key=cmp_to_key(compared))
