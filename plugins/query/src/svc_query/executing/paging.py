"""A page of rows: what is asked for, what is found, and how rows are compared."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

from svc.plugin import Path
from svc_query.executing.matching import Match, Matching, Row
from svc_query.ordering import Key, Order

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Page", "Paging", "behind", "key_of", "page_of", "sorted_rows"]


class Paging(NamedTuple):
    """Which rows are asked for: so many, those that ``skip`` leaves out not counted.

    They begin behind ``place``, or, with ``reverse``, end before it; None: at the beginning.
    """

    order: Order
    rows: int
    skip: int = 0
    place: Key | None = None
    reverse: bool = False


class Page(NamedTuple):
    """Rows in the order of the query: at most as many as were asked for, and whether more follow that way.

    ``stopped_at`` is the path where the search ended before the page was full; the next page goes on there.
    """

    rows: list[Match]
    more: bool
    strategy: str
    stopped_at: Path | None = None


def page_of(matching: Matching, paging: Paging, strategy: str, found: list[Match]) -> Page:
    """Returns the page that the first matches make, one more than the page has if there are more."""
    wanted = paging.rows + paging.skip + 1
    more = len(found) == wanted
    found = found[paging.skip : paging.skip + paging.rows]
    if paging.reverse:
        found.reverse()
    stopped_at = None if more else matching.walked_to
    return Page(found, more or stopped_at is not None, strategy, stopped_at)


def behind(row: Row, paging: Paging) -> bool:
    """Says whether a row stands on the side of the place that is asked for."""
    if paging.place is None:
        return True
    return row.key < paging.place if paging.reverse else row.key > paging.place


def sorted_rows(matching: Matching, numbers: BitMap, paging: Paging, wanted: int | None) -> list[Row]:
    """The first rows of some documents, all of which are looked at."""
    if not matching.narrowed and matching.node.operator != "all":
        matching.require_rows(len(numbers), "because no index answers its filter and they must be sorted")
    matching.require_rows(len(numbers), "to put them in order")
    rows = (matching.row(paging.order, match) for match in matching.matches(numbers))
    kept = (row for row in rows if behind(row, paging))
    if wanted is None:
        return sorted(kept, key=key_of, reverse=paging.reverse)
    pick = heapq.nlargest if paging.reverse else heapq.nsmallest
    return pick(wanted, kept, key=key_of)


def key_of(row: Row) -> Key:
    """Returns what a row is compared by."""
    return row.key
