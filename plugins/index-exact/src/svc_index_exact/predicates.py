"""What the operators of ``exact`` mean, and which terms answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyroaring import BitMap
from svc_query.api import Predicate, TermReader, Value

from svc_index_exact.encoding import NUMBERS, STRINGS, after, encode_string, encode_value, is_exact
from svc_index_exact.operands import Operand, kind_of

__all__ = ["EqualTo", "InRange", "NotEqualTo", "OneOf", "StartsWith"]


class EqualTo(Predicate):
    """A value is equal to one; certain unless its term was cut."""

    def __init__(self, operand: Operand) -> None:
        """Takes what values are compared with."""
        self._operand = operand
        self._kind = kind_of(operand)
        self._term = encode_value(operand)
        self.certain = is_exact(self._term)

    def test(self, value: Value) -> float | None:
        """Compares one value."""
        return 1.0 if value == self._operand and kind_of(value) == self._kind else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts the documents of the term."""
        return _exact(indexes).count(self._term)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents of the term."""
        return _exact(indexes).postings(self._term)

    def matches(self, text: str) -> list[tuple[int, int]]:
        """The whole text matches, or nothing."""
        return [(0, len(text))] if text and text == self._operand else []


class NotEqualTo(EqualTo):
    """The field has values, and none is equal."""

    def test(self, value: Value) -> float | None:
        """Compares one value."""
        return None if super().test(value) else 1.0

    def test_all(self, values: Sequence[Value]) -> float | None:
        """Compares all values."""
        return 1.0 if values and all(self.test(value) for value in values) else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts all documents that have the field."""
        return _exact(indexes).count_range(None, None)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that have the field without those that have the term, unless it was cut."""
        reader = _exact(indexes)
        found = reader.postings_range(None, None)
        if self.certain:
            found -= reader.postings(self._term)
        return found

    def matches(self, text: str) -> list[tuple[int, int]]:
        """Nothing is marked."""
        return []


class InRange(Predicate):
    """A value of the same kind is between two ends; one that is None is open."""

    def __init__(
        self,
        low: float | str | None,
        high: float | str | None,
        *,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
    ) -> None:
        """Takes the ends, which are of one kind; at most one is None."""
        self._low, self._high = low, high
        self._low_inclusive, self._high_inclusive = low_inclusive, high_inclusive
        self._kind = kind_of(high if low is None else low)
        first, behind = STRINGS if self._kind == "string" else NUMBERS
        self.certain = True
        if low is not None:
            first = encode_value(low)
            if not is_exact(first):
                self.certain = False
            elif not low_inclusive:
                first = after(first)
        if high is not None:
            behind = encode_value(high)
            if not is_exact(behind):
                self.certain = False
                behind = after(behind)
            elif high_inclusive:
                behind = after(behind)
        self._range = self.bounds = first, behind

    def test(self, value: Value) -> float | None:
        """Compares one value."""
        if kind_of(value) != self._kind:
            return None
        number: Any = value
        low: Any = self._low
        if low is not None and not (number >= low if self._low_inclusive else number > low):
            return None
        high: Any = self._high
        if high is not None and not (number <= high if self._high_inclusive else number < high):
            return None
        return 1.0

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts the documents of the range."""
        return _exact(indexes).count_range(*self._range)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents of the range."""
        return _exact(indexes).postings_range(*self._range)

    def matches(self, text: str) -> list[tuple[int, int]]:
        """The whole text matches, or nothing."""
        return [(0, len(text))] if text and self.test(text) else []


class OneOf(Predicate):
    """A value is equal to one of several."""

    def __init__(self, operands: Sequence[Operand]) -> None:
        """Takes what values are compared with; any number."""
        self._operands = {(kind_of(operand), operand) for operand in operands}
        self._terms = sorted({encode_value(operand) for operand in operands})
        self.certain = all(map(is_exact, self._terms))
        self._found: tuple[TermReader, BitMap] | None = None

    def test(self, value: Value) -> float | None:
        """Compares one value."""
        return 1.0 if (kind_of(value), value) in self._operands else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts the documents; where there are many values, by finding them, which is kept for later."""
        reader = _exact(indexes)
        if len(self._terms) <= 16:
            return sum(reader.count(term) for term in self._terms)
        return len(self._documents(reader))

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that have one of the terms."""
        return self._documents(_exact(indexes)).copy()

    def _documents(self, reader: TermReader) -> BitMap:
        if self._found is None or self._found[0] is not reader:
            self._found = reader, reader.postings_of_any(self._terms)
        return self._found[1]

    def matches(self, text: str) -> list[tuple[int, int]]:
        """The whole text matches, or nothing."""
        return [(0, len(text))] if text and self.test(text) else []


class StartsWith(Predicate):
    """A string begins with another."""

    def __init__(self, start: str) -> None:
        """Takes the beginning."""
        self._start = start
        term = encode_string(start)
        self.certain = is_exact(term)
        # No byte of UTF-8 is FF: behind this term stands the first string that begins otherwise.
        self._range = self.bounds = term, term + b"\xff"

    def test(self, value: Value) -> float | None:
        """Compares one value."""
        return 1.0 if isinstance(value, str) and value.startswith(self._start) else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts the documents of the range of terms."""
        return _exact(indexes).count_range(*self._range)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents of the range of terms."""
        return _exact(indexes).postings_range(*self._range)

    def matches(self, text: str) -> list[tuple[int, int]]:
        """The beginning is marked."""
        return [(0, len(self._start))] if self._start and text.startswith(self._start) else []


def _exact(indexes: Mapping[str, Any]) -> TermReader:
    reader: TermReader = indexes["exact"]
    return reader
