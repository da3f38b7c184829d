"""The best rows first: an index that ranks says which come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from svc.plugin import Path
from svc_query.api import RankedPredicate
from svc_query.executing.matching import Match, Matching, Row
from svc_query.executing.paging import Page, Paging, behind, key_of, page_of, sorted_rows
from svc_query.ordering import Order
from svc_query.planning.given import best_of
from svc_query.planning.nodes import AndNode, LeafNode

__all__ = ["best_first", "ranked_leaf", "ranked_page"]

_MOST_RANKED = 100_000
_SCORED_AT_ONCE = 1_000
_FIRST_RANKED = 64
_MOST_EQUAL = 4_096
"""So many of the best are asked for where many are equally good."""


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
    below = _parts(matching)
    limit = max(_FIRST_RANKED, 2 * wanted)
    while True:
        found, complete = _best(matching, leaf, limit, below)
        # Those that are as good as the worst that came may have equals that did not come.
        worst = 0.0 if complete else min(found.values(), default=0.0)
        numbers = matching.scope.numbers
        scores = {number: score for number, score in found.items() if number in numbers and score > worst}
        leaf.learn(scores)
        with matching.probe(len(scores)):
            matches = list(islice(_by_score(matching, paging, scores, wanted), wanted))
        if complete or len(matches) == wanted:
            return page_of(matching, paging, "best first", matches)
        if leaf is not matching.node or limit >= _MOST_EQUAL:
            return None
        limit *= 4


def _by_score(
    matching: Matching, paging: Paging, scores: Mapping[int, float], wanted: int
) -> Iterator[Match]:
    """Yields the matches among some documents, the best first; only those that are taken are looked at."""
    from pyroaring import BitMap

    groups: dict[float, list[int]] = {}
    for number, score in scores.items():
        groups.setdefault(score, []).append(number)
    is_numbered = getattr(matching.snapshot, "is_numbered_by_path", False) and len(paging.order.fields) < 2
    for _, numbers in sorted(groups.items(), reverse=True):
        if is_numbered and len(numbers) > 1:
            # All that differs behind the score is the path.
            among = BitMap(numbers)
            walk = matching.snapshot.in_path_order((), among=among)
            yield from matching.matches((one for _, one in walk if one in among), at_once=wanted)
        else:
            rows = [matching.row(paging.order, match) for match in matching.matches(numbers)]
            yield from (row.match for row in sorted(rows, key=key_of))


def _parts(matching: Matching) -> tuple[Path, ...] | None:
    """Where an index looks for the best; None: everywhere, since most of what it finds is for the query."""
    scope = matching.scope
    if scope.parts == ((),) or 2 * len(scope.numbers) >= len(matching.snapshot.live()):
        return None
    return scope.parts


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

            given = matching.budget.blocking(ask) if source.blocks else ask()
            part = best_of(leaf.operator, predicate, given)
            found.update(part)
            if len(part) >= limit:
                complete = False
                floor = max(floor, part[-1][1])
    if not complete:
        # What one part left out may be better than the worst of another.
        found = {number: score for number, score in found.items() if score >= floor}
    return found, complete
