"""The terms of the documents that no flush has taken in, in memory: what a segment would say of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from pyroaring import BitMap

from svc_query.api import MAXIMUM_TERM_BYTES
from svc_query.segments.layout import bitmap_of_unordered

__all__ = ["TermTail"]


class _Sorted(NamedTuple):
    """Terms in order, with their documents in one list."""

    terms: list[bytes]
    ends: list[int]
    numbers: array[int]


class TermTail:
    """A set of terms with their documents; grows, and answers meanwhile.

    Answers like ``svc_query.segments.segment.Segment``, to stand among the segments of a reader.
    """

    size = 0

    def __init__(self) -> None:
        self._documents = BitMap()
        self._having: dict[bytes, array[int]] = {}
        self._terms: list[bytes] = []
        self._sorted: _Sorted | None = None

    def add(self, number: int, terms: Iterable[bytes]) -> None:
        """Adds a document; numbers increase."""
        having = self._having
        found = {term[:MAXIMUM_TERM_BYTES] for term in terms}
        for term in found:
            numbers = having.get(term)
            if numbers is None:
                having[term] = array("I", (number,))
            else:
                numbers.append(number)
        if found:
            self._documents.add(number)
            self._sorted = None

    def documents(self) -> BitMap:
        """Returns the documents that have terms; not to be changed."""
        return self._documents

    def count(self, term: bytes) -> int:
        """Returns how many documents have a term."""
        return len(self._having.get(term, ()))

    def postings(self, term: bytes) -> BitMap | None:
        """Returns the documents of a term, or None when there are none."""
        numbers = self._having.get(term)
        return None if numbers is None else BitMap(numbers)

    def postings_of_any(self, terms: Sequence[bytes]) -> list[BitMap]:
        """Returns bitmaps of the documents of some terms."""
        found = map(self.postings, terms)
        return [bitmap for bitmap in found if bitmap is not None]

    def postings_of_all(self, terms: Sequence[bytes]) -> BitMap | None:
        """Returns the documents that have all of some terms; None when there are none."""
        stored = [self._having.get(term, ()) for term in terms]
        if not stored:
            return None
        stored.sort(key=len)
        left = BitMap(stored[0])
        for numbers in stored[1:]:
            if not left:
                return None
            left &= BitMap(numbers)
        return left or None

    def terms(self, low: bytes | None, high: bytes | None) -> Iterator[bytes]:
        """Yields the terms of a range in order."""
        ordered = self._in_order()
        first, last = _places(ordered, low, high)
        return iter(ordered.terms[first:last])

    def count_range(self, low: bytes | None, high: bytes | None) -> int:
        """Returns how many postings a range of terms has."""
        ordered = self._in_order()
        first, last = _places(ordered, low, high)
        return max(0, ordered.ends[last] - ordered.ends[first])

    def postings_range(self, low: bytes | None, high: bytes | None) -> list[BitMap]:
        """Returns bitmaps of the documents of a range of terms."""
        ordered = self._in_order()
        first, last = _places(ordered, low, high)
        if first >= last:
            return []
        return [
            bitmap_of_unordered(ordered.numbers[ordered.ends[first] : ordered.ends[last]], self._documents)
        ]

    def scan(
        self, low: bytes | None, high: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yields the terms of a range with their documents."""
        ordered = self._in_order()
        terms, ends, numbers = ordered
        places = range(*_places(ordered, low, high))
        for place in reversed(places) if reverse else places:
            yield terms[place], numbers[ends[place] : ends[place + 1]]

    def scan_among(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool
    ) -> Iterator[tuple[bytes, BitMap]]:
        """Yields the terms of a range that some documents have, with those."""
        ordered = self._in_order()
        terms, ends, numbers = ordered
        first, last = _places(ordered, low, high)
        if first >= last or not BitMap(numbers[ends[first] : ends[last]]) & among:
            return
        places = range(first, last)
        for place in reversed(places) if reverse else places:
            found = [number for number in numbers[ends[place] : ends[place + 1]] if number in among]
            if found:
                yield terms[place], BitMap(found)

    def in_order(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool
    ) -> list[int] | None:
        """Returns some documents in the order of their terms; None where one may have several terms."""
        if len(self._in_order().numbers) != len(self._documents):
            return None
        found = self.scan_among(low, high, among, reverse=reverse)
        return [number for _, numbers in found for number in numbers]

    def _in_order(self) -> _Sorted:
        """The terms as they are now; what was returned is not changed by what is added later."""
        found = self._sorted
        if found is None:
            having = self._having
            terms = self._terms
            if len(terms) < len(having):
                # The first ones are in order already, which the sort makes use of.
                known = set(terms)
                terms = self._terms = sorted([*terms, *(term for term in having if term not in known)])
            ends = [0, *accumulate([len(having[term]) for term in terms])]
            numbers = array("I")
            for term in terms:
                numbers.extend(having[term])
            found = self._sorted = _Sorted(terms, ends, numbers)
        return found


def _places(ordered: _Sorted, low: bytes | None, high: bytes | None) -> tuple[int, int]:
    terms = ordered.terms
    first = 0 if low is None else bisect_left(terms, low)
    last = len(terms) if high is None else bisect_left(terms, high)
    return first, max(first, last)
