"""The rows of a page, in order: four ways to find them, of which the cheapest is taken.

- In the order of the paths: the documents are walked in that order and tested, or a few are sorted.
- In the order of an index over the first field of the order: its terms are walked.
- Best first: an index that ranks says which come first.
- Everything that matches is looked at, and the first are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from svc.plugin import Path
from svc_query.api import MAXIMUM_TERM_BYTES, TermIndexType, Value
from svc_query.executing.matching import Match, Matching, ProbeFailed, Row
from svc_query.executing.paging import Page, Paging, behind, key_of, page_of, sorted_rows
from svc_query.executing.ranked import best_first, ranked_leaf, ranked_page
from svc_query.ordering import SCORE, Order, OrderField, sort_key
from svc_query.planning.nodes import AndNode, LeafNode, Node
from svc_query.snapshot import Coverage, FieldIndex

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["choose_strategy", "find_page"]

# What a step of each way costs, in microseconds; their ratios are what counts.
_PATH_STEP = 0.06
_TERM_STEP = 0.06
_PATH_READ = 2.0
_DOCUMENT = 12.0
_FEW = 64
_MANY = 2_000
"""Among fewer documents the indexes are asked at once."""
_MOST_PROBED = 200
_WIDE = 4
_MISSING = (1,)
_SURELY_WHOLE = 200
"""Texts of so many characters have terms that are not cut."""
_Bounds: TypeAlias = tuple[bytes | None, bytes | None]


def find_page(matching: Matching, coverage: Coverage, paging: Paging) -> Page:
    """Returns a page of the matches."""
    wanted = paging.rows + paging.skip + 1
    page = ranked_page(matching, paging, wanted) or _probed(matching, coverage, paging, wanted)
    if page is not None:
        return page
    matching.walked_to = None
    strategy, matches = choose_strategy(matching, coverage, paging)
    return page_of(matching, paging, strategy, list(islice(matches(), wanted)))


def _probed(matching: Matching, coverage: Coverage, paging: Paging, wanted: int) -> Page | None:
    """A page of a filter that many documents match: found in order, without the indexes' lists of all."""
    node, total = matching.node, len(matching.scope.numbers)
    expected = wanted * total / max(1, node.estimate)
    if matching.is_collected or node.scored or (not node.children and not isinstance(node, LeafNode)):
        return None
    if (
        (total < _MANY and _reach(node) <= _WIDE * total)
        or expected > _MOST_PROBED / 2
        or len(matching.tail) > _MOST_PROBED / 2
    ):
        return None
    direction = paging.order.path_direction(scored=False)
    index = None if direction else _order_index(matching, coverage, paging.order, 0)
    if not direction and index is None:
        return None
    try:
        with matching.probe(_MOST_PROBED):
            if index is None:
                matches = _walk_paths(matching, matching.numbers, paging, direction)
            else:
                bounds = _known_bounds(matching, index)
                matches = _matches(_by_terms(matching, coverage, index, bounds, paging))
            found = list(islice(matches, wanted))
    except ProbeFailed:
        return None
    matching.walked_to = None
    if len(found) < wanted:
        return None
    return page_of(matching, paging, "path order" if index is None else "index order", found)


def _reach(node: Node) -> int:
    """How many documents the narrowest index of a filter would list."""
    if isinstance(node, AndNode):
        return min((_reach(child) for child in node.children), default=0)
    return node.reach if isinstance(node, LeafNode) else 0


def choose_strategy(
    matching: Matching, coverage: Coverage, paging: Paging
) -> tuple[str, Callable[[], Iterator[Match]]]:
    """Returns the name of the cheapest way to find a page, and what yields matches from its first on."""
    order = paging.order
    numbers = matching.numbers
    wanted = paging.rows + paging.skip + 1

    def sort() -> Iterator[Match]:
        return _matches(sorted_rows(matching, numbers, paging, wanted))

    direction = order.path_direction(scored=matching.node.scored)
    if direction:
        if getattr(matching.snapshot, "is_numbered_by_path", False):
            return "path order", lambda: _walk_paths(matching, numbers, paging, direction)
        passed = wanted * len(matching.scope.numbers) / max(1, len(numbers))
        if len(numbers) * _PATH_READ < passed * _PATH_STEP and len(numbers) <= matching.budget.rows:
            return "sort", lambda: _sorted_by_path(matching, numbers, paging, direction)
        return "path order", lambda: _walk_paths(matching, numbers, paging, direction)
    leaf = None if paging.reverse else ranked_leaf(matching, order)
    if leaf is not None:
        return "best first", lambda: _matches(best_first(matching, leaf, paging, wanted))
    index = _order_index(matching, coverage, order, 0)
    if index is not None:
        bounds = _known_bounds(matching, index)
        if _walks_terms(matching, index, bounds, len(numbers), wanted):
            return "index order", lambda: _matches(_by_terms(matching, coverage, index, bounds, paging))
    return "sort", sort


def _matches(rows: Iterable[Row]) -> Iterator[Match]:
    return (row.match for row in rows)


# -- in the order of the paths ---------------------------------------------------------------------


def _walk_paths(matching: Matching, numbers: BitMap, paging: Paging, direction: int) -> Iterator[Match]:
    backward = (direction < 0) != paging.reverse
    place: Path | None = None if paging.place is None else paging.place[-1]
    walk = _in_path_order(matching, numbers, place, backward)
    return matching.matches(walk, at_once=paging.rows + paging.skip + 1)


def _sorted_by_path(matching: Matching, numbers: BitMap, paging: Paging, direction: int) -> Iterator[Match]:
    """Matches in the order of their paths, of a few documents; only as many as are taken are looked at."""
    backward = (direction < 0) != paging.reverse
    place: Path | None = None if paging.place is None else paging.place[-1]
    found: list[tuple[Path, int]] = []
    for path, number in matching.snapshot.paths_of(numbers):
        matching.budget.step()
        if place is None or (path < place if backward else place < path):
            found.append((path, number))
    found.sort(reverse=backward)
    return matching.matches((number for _, number in found), at_once=paging.rows + paging.skip + 1)


def _in_path_order(matching: Matching, numbers: BitMap, place: Path | None, backward: bool) -> Iterator[int]:
    """The numbers in the order of their paths; ends where too many would have to be tested."""
    snapshot, budget = matching.snapshot, matching.budget
    limited = not matching.exact and not matching.narrowed
    given = 0
    parts = matching.scope.parts
    for part in reversed(parts) if backward else parts:
        after = None
        if place is not None:
            if place[: len(part)] == part:
                after = place
            elif (part > place) is backward:
                continue
        for path, number in snapshot.in_path_order(part, after=after, reverse=backward, among=numbers):
            budget.step()
            if number not in numbers:
                continue
            if limited and given >= budget.rows:
                return
            given += 1
            matching.walked_to = path if limited and given >= budget.rows else None
            yield number


# -- in the order of an index ----------------------------------------------------------------------


def _order_index(matching: Matching, coverage: Coverage, order: Order, depth: int) -> FieldIndex | None:
    """An index whose terms stand in the order of one of the fields, and that knows all its values."""
    if depth >= len(order.fields) or not matching.snapshot.indexed:
        return None
    name = order.fields[depth].name
    use = coverage.fields.get(name)
    if name == SCORE or use is None or not use.everywhere:
        return None
    found = [
        one
        for one in matching.snapshot.indexes(name)
        if isinstance(one.type, TermIndexType) and one.type.ordered and one.type.name in use.index_types
    ]
    if len(found) != 1 or found[0].untaken:
        return None
    return found[0] if hasattr(found[0].reader, "documents") else None


def _known_bounds(matching: Matching, index: FieldIndex) -> _Bounds:
    """Between which terms the values lie that rows are ordered by, as far as the filter says."""
    reader, node = index.reader, matching.node
    low: bytes | None = None
    high: bytes | None = None
    for leaf in node.children if isinstance(node, AndNode) else (node,):
        if not isinstance(leaf, LeafNode) or leaf.field != index.field or len(leaf.sources) != 1:
            continue
        source = leaf.sources[0]
        if source.predicate.bounds is None or list(source.readers.values()) != [reader] or leaf.uncovered:
            continue
        first, last = source.predicate.bounds
        low = first if low is None else low if first is None else max(low, first)
        high = last if high is None else high if last is None else min(high, last)
    if (low, high) == (None, None) or reader.count_range(None, None) != len(reader.documents()):
        # A document with several values may match by one and be ordered by another.
        return None, None
    return low, high


def _walks_terms(matching: Matching, index: FieldIndex, bounds: _Bounds, count: int, wanted: int) -> bool:
    """Whether walking the terms costs less than to look at all of so many documents."""
    walking = wanted * (index.reader.count_range(*bounds) / max(1, count)) * _TERM_STEP + wanted * _DOCUMENT
    return count > matching.budget.rows or walking < count * _DOCUMENT


def _by_terms(
    matching: Matching, coverage: Coverage, index: FieldIndex, bounds: _Bounds, paging: Paging
) -> Iterator[Row]:
    """All rows from a place on: those of the index, then those without a value, and the tail among them."""
    numbers = matching.numbers - matching.tail if matching.tail else matching.numbers
    flushed = _Level(matching, coverage, index, bounds, 0).rows(numbers, paging)
    if not matching.tail:
        return flushed
    tail = matching.numbers & matching.tail
    rows = sorted_rows(matching, tail, paging, None) if tail else []
    return heapq.merge(rows, flushed, key=key_of, reverse=paging.reverse)


class _Level(Struct, frozen=True):
    """An index over one field of the order, for documents that are the same by the fields before it."""

    matching: Matching
    coverage: Coverage
    index: FieldIndex
    bounds: _Bounds
    depth: int

    def rows(self, numbers: BitMap, paging: Paging) -> Iterator[Row]:
        """Rows of some documents from a place on: those of the index, then those without a value."""
        first: Iterable[Row] = self._term_rows(numbers, paging)
        last: Iterable[Row] = self._missing_rows(numbers, paging)
        return chain(*((last, first) if paging.reverse else (first, last)))

    def _term_rows(self, numbers: BitMap, paging: Paging) -> Iterator[Row]:
        field = paging.order.fields[self.depth]
        backward = field.descending != paging.reverse
        place = self._place(paging, backward)
        if place is None:
            return
        low, high, here = place
        in_order = getattr(self.index.reader, "in_order", None) if self.depth == 0 else None
        lists = None if in_order is None else in_order(low, high, numbers, reverse=backward)
        if lists is not None:
            yield from _listed_rows(self.matching, self.index, lists, paging)
            return
        for term, group in self.index.reader.scan_among(low, high, numbers, reverse=backward):
            self.matching.budget.step()
            if not group:
                continue
            whole = len(term) < MAXIMUM_TERM_BYTES
            # Behind the term of the place every row is one of the page.
            rest = paging if term == here or not whole else paging._replace(place=None)
            rows = self._same_value(group, rest) if whole else _all_rows(self.matching, group, rest)
            for row in rows:
                if behind(row, rest) and _decides(self.matching, self.index, field, row, term):
                    yield row

    def _missing_rows(self, numbers: BitMap, paging: Paging) -> Iterator[Row]:
        missing = numbers - self.index.reader.documents()
        if not missing:
            return
        if paging.place is not None and paging.place[self.depth] != _MISSING:
            if paging.reverse:
                return
            paging = paging._replace(place=None)
        for row in self._same_value(missing, paging):
            if behind(row, paging):
                yield row

    def _same_value(self, group: BitMap, paging: Paging) -> Iterator[Row]:
        """Rows that are the same by this field: in the order of the paths or of the next index."""
        matching, order, depth = self.matching, paging.order, self.depth + 1
        if len(group) > _FEW:
            direction = Order(order.fields[depth:]).path_direction(scored=matching.node.scored)
            if direction:
                return _same_but_for_paths(matching, group, paging, direction)
            index = _order_index(matching, self.coverage, order, depth)
            if index is not None:
                bounds = _known_bounds(matching, index)
                if _walks_terms(matching, index, bounds, len(group), paging.rows + paging.skip + 1):
                    return _Level(matching, self.coverage, index, bounds, depth).rows(group, paging)
        return iter(_all_rows(matching, group, paging))

    def _place(
        self, paging: Paging, backward: bool
    ) -> tuple[bytes | None, bytes | None, bytes | None] | None:
        """Where the walk begins and ends, and the term of the page's place; None: nowhere."""
        low, high = self.bounds
        here: bytes | None = None
        if paging.place is not None:
            part = paging.place[self.depth]
            if part != _MISSING:
                here = _term_of(self.index, _value_of(part[1], paging.order.fields[self.depth].descending))
            elif not paging.reverse:
                return None
        if here is not None and backward:
            high = here + b"\0" if high is None else min(high, here + b"\0")
        elif here is not None:
            low = here if low is None else max(low, here)
        if low is not None and high is not None and low >= high:
            return None
        return low, high, here


def _all_rows(matching: Matching, group: BitMap, paging: Paging) -> list[Row]:
    matching.require_rows(len(group), "because they have the same value of a field of order_by")
    rows = (matching.row(paging.order, match) for match in matching.matches(group))
    return sorted(rows, key=key_of, reverse=paging.reverse)


def _same_but_for_paths(matching: Matching, group: BitMap, paging: Paging, direction: int) -> Iterator[Row]:
    """Rows that differ by their paths alone, in that order: walked where they are many."""
    walking = (paging.rows + paging.skip) * len(matching.scope.numbers) / len(group) * _PATH_STEP
    if len(group) <= matching.budget.rows and len(group) * _DOCUMENT < walking:
        yield from _all_rows(matching, group, paging)
        return
    place: Path | None = None if paging.place is None else paging.place[-1]
    walk = _in_path_order(matching, group, place, (direction < 0) != paging.reverse)
    for match in matching.matches(walk, at_once=paging.rows + paging.skip + 1):
        yield matching.row(paging.order, match)


def _listed_rows(
    matching: Matching, index: FieldIndex, lists: Sequence[Sequence[int]], paging: Paging
) -> Iterator[Row]:
    """Rows of documents in the order of their one value; only those that are taken are looked at."""
    sources = [(matching.row(paging.order, match) for match in matching.matches(one)) for one in lists]
    rows = heapq.merge(*sources, key=_first_of_key, reverse=paging.reverse)
    for _, group in groupby(rows, key=lambda row: _value_group(index, row, paging)):
        for row in sorted(group, key=key_of, reverse=paging.reverse):
            if behind(row, paging):
                yield row


def _first_of_key(row: Row) -> Any:
    return row.key[0]


def _value_group(index: FieldIndex, row: Row, paging: Paging) -> Any:
    """What rows have in common whose terms are the same: the value, or as much of it as terms have."""
    value = _value_of(row.key[0][1], paging.order.fields[0].descending)
    if isinstance(value, str) and len(value) > _SURELY_WHOLE:
        return _term_of(index, value)
    return row.key[0]


def _decides(matching: Matching, index: FieldIndex, field: OrderField, row: Row, term: bytes) -> bool:
    """Whether a term is that of the value which a document is ordered by, and not of another one of it."""
    values = matching.snapshot.values(row.match.document, field.name)
    if len(values) <= 1:
        return True
    return term == _term_of(index, (max if field.descending else min)(values, key=sort_key))


def _term_of(index: FieldIndex, value: Value) -> bytes | None:
    assert isinstance(index.type, TermIndexType), "only such a one is walked"
    term = next(iter(index.type.terms(value, index.options)), None)
    return None if term is None else term[:MAXIMUM_TERM_BYTES]


def _value_of(part: Any, descending: bool) -> Value:
    """The value that a part of a key was made of."""
    kind, value = part.key if descending else part
    found: Value = None if kind == 0 else value
    return found
