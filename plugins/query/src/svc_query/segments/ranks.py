"""Some documents in the order of their terms: by walking the terms, or by where each document has its term.

The latter is made in memory, by whoever asks for it first: 4 bytes and some 50 ns for each document. On the
disk it would cost as many bytes in every ordered index, and time of indexing, whether anybody asks or not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from pyroaring import BitMap

from svc_query.segments.layout import Block, bitmap_of, column_of, numbers_of

__all__ = ["RankColumn", "is_worth_ranking", "terms_among", "with_terms"]

_MOST = 1 << 20
"""Making it for so many documents takes some 50 ms, during which nobody else gets a turn."""
_WALKED = 16
"""To put *n* documents in order costs by *n*, to walk to the first twenty by 1/*n*: where the square of *n*
is so many times the postings, the walk has become the cheaper one."""
_SPARSE = 4


def is_worth_ranking(wanted: int, documents: BitMap, postings: int) -> bool:
    """Whether some documents of a segment come sooner in order by their places than by walking the terms."""
    if postings > _MOST or postings != len(documents) or wanted * wanted > _WALKED * postings:
        return False
    return bool(documents.max() - documents.min() < _SPARSE * postings)


class RankColumn:
    """The place of each document in the order of the terms; each has one term."""

    def __init__(self, documents: BitMap, blocks: Iterable[Block]) -> None:
        self._first = first = documents.min()
        self._places = places = array("I", bytes(4 * (documents.max() - first + 1)))
        place = 0
        for block in blocks:
            for number in _numbers_of_block(block):
                places[number - first] = place
                place += 1

    def in_order(self, numbers: BitMap, low: int, high: int, *, reverse: bool) -> list[tuple[int, int]]:
        """Returns (place, number) of those in the places from ``low`` to before ``high``, by their places."""
        places, first = self._places, self._first
        found = [(places[number - first], number) for number in numbers]
        return sorted([pair for pair in found if low <= pair[0] < high], reverse=reverse)


def with_terms(
    pairs: Sequence[tuple[int, int]], before: Sequence[int], block_at: Callable[[int], Block]
) -> Iterator[tuple[bytes, BitMap]]:
    """Yields (term, documents) of what ``in_order`` returned."""
    term, numbers = b"", BitMap()
    here, block = -1, None
    for place, number in pairs:
        at = bisect_right(before, place) - 1
        if at != here or block is None:
            here, block = at, block_at(at)
        found = block.term(block.owner(place - before[at]))
        if found != term and numbers:
            yield term, numbers
            numbers = BitMap()
        term = found
        numbers.add(number)
    if numbers:
        yield term, numbers


def terms_among(
    block: Block, first: int, last: int, among: BitMap, reverse: bool
) -> Iterator[tuple[bytes, BitMap]]:
    """Yields the terms of a slice of a block that some documents have; where none do, one without any."""
    plain = block.raw_numbers(first, last)
    indexes = range(first, last)
    if plain is None:
        for index in reversed(indexes) if reverse else indexes:
            yield block.term(index), bitmap_of(*block.payload(index)) & among
        return
    column = column_of(plain)
    hits = BitMap(column) & among
    if not hits:
        yield block.term(first), hits
        return
    order = range(len(column))
    places = (place for place in (reversed(order) if reverse else order) if column[place] in hits)
    if len(column) == len(indexes):
        # Each term has one document.
        for place in places:
            yield block.term(first + place), BitMap((column[place],))
        return
    before = block.before(first)
    for index, some in groupby(places, lambda place: block.owner(before + place)):
        yield block.term(index), BitMap([column[place] for place in some])


def _numbers_of_block(block: Block) -> Iterable[int]:
    plain = block.raw_numbers(0, block.size)
    if plain is not None:
        return column_of(plain)
    return [number for posting in block.payloads() for number in numbers_of(*posting)]
