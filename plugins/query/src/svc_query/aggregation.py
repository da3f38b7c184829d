"""Aggregates: counts, exact sums, averages, smallest and largest values, of all matches or of groups.

A document with several values adds all of them, and belongs to the group of each. Only numbers are summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from svc.errors import InvalidInput
from svc_query.api import Value
from svc_query.executing.matching import Match, Matching
from svc_query.ordering import OrderField, sort_key

__all__ = ["COUNT", "Aggregates", "Groups", "aggregate_all", "aggregate_groups"]

COUNT = "@count"
"""What groups may be ordered by beside their own fields."""
_MOST_GROUPS = 100_000
_MOST_COMBINATIONS = 10_000
_MISSING = object()


class Aggregates(NamedTuple):
    """What is asked for, most of it fields; ``groups`` are those whose values make groups."""

    counts: bool = False
    sums: tuple[str, ...] = ()
    averages: tuple[str, ...] = ()
    smallest: tuple[str, ...] = ()
    largest: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """All fields whose values are needed."""
        return frozenset((*self.sums, *self.averages, *self.smallest, *self.largest, *self.groups))


class Groups(NamedTuple):
    """A page of groups."""

    groups: list[dict[str, Any]]
    more: bool
    total: int


def aggregate_all(matching: Matching, wanted: Aggregates) -> dict[str, Any]:
    """Returns the aggregates of all matches.

    Raises ServiceUnavailable after the time of the query, and InvalidInput where no index leaves few enough
    documents.
    """
    numbers = matching.numbers
    if not wanted.fields and matching.settled:
        return {"count": len(numbers)}
    _require_narrow(matching)
    totals = _Totals(wanted)
    for match in matching.matches(numbers):
        totals.add(_values(matching, match, wanted.fields))
    return totals.result()


def aggregate_groups(
    matching: Matching, wanted: Aggregates, order: Sequence[OrderField], limit: int, offset: int
) -> Groups:
    """Returns a page of the groups, in the order of their keys unless another is asked for.

    Raises as ``aggregate_all``; InvalidInput also for too many groups.
    """
    _require_narrow(matching)
    found: dict[tuple[Any, ...], tuple[tuple[Any, ...], _Totals]] = {}
    for match in matching.matches(matching.numbers):
        values = _values(matching, match, wanted.fields)
        for key, shown in _keys(values, wanted.groups):
            totals = found.get(key)
            if totals is None:
                if len(found) >= _MOST_GROUPS:
                    raise InvalidInput(
                        f"The query makes more than {_MOST_GROUPS} groups; narrow it.",
                        field="aggregate.group_by",
                        limit=_MOST_GROUPS,
                    )
                totals = found[key] = shown, _Totals(wanted)
            totals[1].add(values)
    keys = sorted(found)
    for name, descending in reversed(order):
        if name == COUNT:
            keys.sort(key=lambda key: found[key][1].count, reverse=descending)
        else:
            place = wanted.groups.index(name)
            keys.sort(key=lambda key: key[place], reverse=descending)
            if descending:  # without a value is last in both directions
                keys.sort(key=lambda key: key[place] == _LAST)
    page = []
    for key in keys[offset : offset + limit]:
        shown, totals_of = found[key]
        members = {
            name: value for name, value in zip(wanted.groups, shown, strict=True) if value is not _MISSING
        }
        page.append({"key": members, **totals_of.result()})
    return Groups(page, offset + limit < len(keys), len(keys))


_LAST = (9, 0)


def _require_narrow(matching: Matching) -> None:
    if not matching.exact and not matching.narrowed:
        matching.require_rows(len(matching.numbers), "because no index answers its filter")


def _values(matching: Matching, match: Match, fields: Iterable[str]) -> dict[str, Sequence[Value]]:
    return {name: matching.snapshot.values(match.document, name) for name in fields}


def _keys(
    values: Mapping[str, Sequence[Value]], groups: Sequence[str]
) -> Iterable[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The groups of a document: what they are compared by, and what is shown."""
    if len(groups) == 1:
        own = values[groups[0]]
        if len(own) == 1:
            return (((sort_key(own[0]),), (own[0],)),)
    choices: list[list[tuple[Any, Any]]] = []
    combinations = 1
    for name in groups:
        distinct = {sort_key(value): value for value in values[name]}
        choices.append(list(distinct.items()) or [(_LAST, _MISSING)])
        combinations *= len(choices[-1])
    if combinations > _MOST_COMBINATIONS:
        raise InvalidInput(
            f"A document belongs to more than {_MOST_COMBINATIONS} groups; group by fewer fields.",
            field="aggregate.group_by",
            limit=_MOST_COMBINATIONS,
        )
    return ((tuple(key for key, _ in one), tuple(value for _, value in one)) for one in product(*choices))


class _Totals:
    __slots__ = ("_extremes", "_sums", "_wanted", "count")

    def __init__(self, wanted: Aggregates) -> None:
        self._wanted = wanted
        self.count = 0
        self._sums = {name: _Sum() for name in (*wanted.sums, *wanted.averages)}
        self._extremes: dict[tuple[str, bool], tuple[Any, Value]] = {}

    def add(self, values: Mapping[str, Sequence[Value]]) -> None:
        self.count += 1
        for name, total in self._sums.items():
            for value in values[name]:
                total.add(value)
        for names, largest in ((self._wanted.smallest, False), (self._wanted.largest, True)):
            for name in names:
                for value in values[name]:
                    if value is not None:
                        self._compare(name, largest, value)

    def _compare(self, name: str, largest: bool, value: Value) -> None:
        key = sort_key(value)
        best = self._extremes.get((name, largest))
        if best is None or (key > best[0] if largest else key < best[0]):
            self._extremes[name, largest] = key, value

    def result(self) -> dict[str, Any]:
        """What the answer says; without a number an average is null, without a value an extreme is."""
        wanted = self._wanted
        answer: dict[str, Any] = {}
        if wanted.counts:
            answer["count"] = self.count
        if wanted.sums:
            answer["sum"] = {name: self._sums[name].total() for name in wanted.sums}
        if wanted.averages:
            answer["avg"] = {name: self._sums[name].average() for name in wanted.averages}
        for member, names, largest in (("min", wanted.smallest, False), ("max", wanted.largest, True)):
            if names:
                answer[member] = {name: self._extremes.get((name, largest), (0, None))[1] for name in names}
        return answer


class _Sum:
    """An exact sum of integers and floats: what is rounded is the result, once."""

    __slots__ = ("count", "floats", "integers", "rounded")

    def __init__(self) -> None:
        self.count = 0
        self.integers = 0
        self.floats: list[float] = []
        self.rounded = False

    def add(self, value: Value) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        self.count += 1
        if isinstance(value, int):
            self.integers += value
            return
        self.rounded = True
        # Shewchuk's partial sums, as math.fsum keeps them: their sum is exact, and they stay few.
        kept = 0
        for partial in self.floats:
            larger, smaller = (value, partial) if abs(value) >= abs(partial) else (partial, value)
            high = larger + smaller
            low = smaller - (high - larger)
            if low:
                self.floats[kept] = low
                kept += 1
            value = high
        self.floats[kept:] = [value]

    def total(self) -> int | float | None:
        if not self.rounded:
            return self.integers
        return _rounded(self._exact())

    def average(self) -> float | None:
        if not self.count:
            return None
        exact = self._exact()
        return None if exact is None else _rounded(exact / self.count)

    def _exact(self) -> Fraction | None:
        if not all(map(math.isfinite, self.floats)):
            return None
        return sum(map(Fraction, self.floats), Fraction(self.integers))


def _rounded(value: Fraction | None) -> float | None:
    """The nearest float; None beyond their range, for JSON has no infinity."""
    if value is None:
        return None
    try:
        return float(value)
    except OverflowError:
        return None
