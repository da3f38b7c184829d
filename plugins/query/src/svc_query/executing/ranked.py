"""The best rows first: an index that ranks says which come first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc.plugin import Path
from svc_query.api import RankedPredicate
from svc_query.executing.matching import Matching, Row
from svc_query.executing.paging import Page, Paging, behind, key_of, page_of, sorted_rows
from svc_query.ordering import Order
from svc_query.planning.nodes import AndNode, LeafNode

__all__ = ["best_first", "ranked_leaf", "ranked_page"]

_MOST_RANKED = 100_000
_SCORED_AT_ONCE = 1_000
_FIRST_RANKED = 64


def ranked_leaf(matching: Matching, order: Order) -> LeafNode | None:
    """The one leaf whose scores are those of the rows, when an index ranks it."""
    if not order.starts_with_score():
        return None
    node = matching.node
    if isinstance(node, AndNode):
        scored = [child for child in node.children if child.scored]
        if len(scored) != 1:
            return None
        node = scored[0]
    if not isinstance(node, LeafNode) or not node.ranked or node.uncovered or not node.answers:
        return None
    return node


def ranked_page(matching: Matching, paging: Paging, wanted: int) -> Page | None:
    """A page of the best rows, without the list of all that match; None when that is needed after all."""
    if matching.is_collected or paging.reverse or paging.place is not None or 2 * wanted > _MOST_RANKED:
        return None
    leaf = ranked_leaf(matching, paging.order)
    if leaf is None:
        return None
    limit = max(_FIRST_RANKED, 2 * wanted)
    found, complete = _best(matching, leaf, limit, _parts(matching))
    # Those that are as good as the worst that came may have equals that did not come.
    worst = 0.0 if complete else min(found.values(), default=0.0)
    numbers = matching.scope.numbers
    scores = {number: score for number, score in found.items() if number in numbers}
    if leaf is matching.node and not matching.scope.unchecked and len(scores) > wanted:
        # All of them match: those behind the page need not be looked at.
        least = sorted(scores.values(), reverse=True)[wanted - 1]
        scores = {number: score for number, score in scores.items() if score >= least}
    leaf.learn(scores)
    with matching.probe(len(scores)):
        rows = sorted(
            [matching.row(paging.order, match) for match in matching.matches(list(scores))], key=key_of
        )
    sure = [row.match for row in rows if row.match.score > worst]
    if len(sure) < wanted and not complete:
        return None
    return page_of(matching, paging, "best first", sure[:wanted])


def _parts(matching: Matching) -> tuple[Path, ...] | None:
    parts = matching.scope.parts
    return None if parts == ((),) else parts


def best_first(matching: Matching, leaf: LeafNode, paging: Paging, wanted: int) -> Iterator[Row]:
    """The best rows: asks for more and more of them until enough match the rest of the filter."""
    numbers = matching.numbers
    if len(numbers) <= _SCORED_AT_ONCE:
        return iter(sorted_rows(matching, numbers, paging, wanted))
    below = _parts(matching)
    limit = max(_FIRST_RANKED, 2 * wanted)
    while True:
        found, complete = _best(matching, leaf, limit, below)
        numbers_found = [number for number in found if number in numbers]
        leaf.learn({number: found[number] for number in numbers_found})
        rows = [matching.row(paging.order, match) for match in matching.matches(numbers_found)]
        kept = sorted((row for row in rows if behind(row, paging)), key=key_of)
        if complete:
            return iter(kept)
        # Those that are as good as the worst that came may have equals that did not come.
        worst = min(found.values())
        sure = [row for row in kept if row.match.score > worst]
        if len(sure) >= wanted:
            return iter(sure)
        if limit >= _MOST_RANKED:
            return iter(sorted_rows(matching, numbers, paging, wanted))
        limit = min(limit * 4, _MOST_RANKED)


def _best(
    matching: Matching, leaf: LeafNode, limit: int, below: tuple[Path, ...] | None
) -> tuple[dict[int, float], bool]:
    """The best documents of all parts of an index, and whether these are all there are."""
    found: dict[int, float] = {}
    complete = True
    floor = 0.0
    for source in leaf.sources:
        predicate = source.predicate
        assert isinstance(predicate, RankedPredicate), "a ranked leaf has ranked predicates"
        for readers in source.both:

            def ask(
                readers: Any = readers, predicate: RankedPredicate = predicate
            ) -> list[tuple[int, float]]:
                return predicate.best(readers, limit, below=below)

            part = matching.budget.blocking(ask) if source.blocks else ask()
            found.update(part)
            if len(part) >= limit:
                complete = False
                floor = max(floor, part[-1][1])
    if not complete:
        # What one part left out may be better than the worst of another.
        found = {number: score for number, score in found.items() if score >= floor}
    return found, complete
