"""The nodes of a plan: each narrows documents by its indexes, and says whether one matches, and how well."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from svc_query.api import LibraryReader, Predicate, RankedPredicate, Value
from svc_query.built_in_operators import ExistsPredicate
from svc_query.executing.budget import Budget
from svc_query.planning.given import documents_of, score_of, scores_of
from svc_query.snapshot import Document, Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["AllNode", "AndNode", "LeafNode", "Node", "NotNode", "OrNode", "PresenceNode", "Source"]

_FEW = 32
"""To look at so many documents costs less than to ask one more index."""
_MOST_TESTED = 10_000
_WIDE = 32
"""To list so many documents by an index costs as much as to look at one."""


def _nothing() -> None:
    """Stands for a budget that is not there."""


class Node(ABC):
    """One node of a plan; of one query, which may ask it again and again.

    Attributes:
        operator: what it does.
        estimate: how many documents match, at most, as far as the indexes know.
        scored: whether scores differ from 1.
        actual: documents that it left, where its indexes were asked.
        passed: numbers of documents that were tested and matched.
        seconds: what it took, where it was asked.
    """

    operator = ""
    scored = False

    def __init__(self, children: Sequence[Node] = ()) -> None:
        self.children = tuple(children)
        self.estimate = 0
        self.actual: int | None = None
        self.passed: set[int] = set()
        self.seconds = 0.0

    @abstractmethod
    def collect(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        """Narrows documents, all of them known to the indexes and not to be changed, by the indexes.

        Returns those of them that may match, and whether all of them do.
        """

    @abstractmethod
    def score(self, number: int, document: Document, snapshot: Snapshot) -> float | None:
        """Returns how well a document matches; None when it does not. ``prepare`` has seen its number."""

    def prepare(self, numbers: BitMap, budget: Budget) -> None:
        """Asks libraries for the scores of some documents."""
        for child in self.children:
            child.prepare(numbers, budget)

    def leaves(self) -> Iterator[LeafNode]:
        """Yields the leaves at and below this node, also those under a NOT."""
        for child in self.children:
            yield from child.leaves()

    def matched_leaves(self, number: int, document: Document, snapshot: Snapshot) -> Iterator[LeafNode]:
        """Yields the leaves by which a document matches: not those under a NOT, nor of an AND that fails."""
        if self.score(number, document, snapshot) is not None:
            for child in self.children:
                yield from child.matched_leaves(number, document, snapshot)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Counts the time of a block as this node's."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - began


class Source(NamedTuple):
    """What one set of indexes answers of a leaf; the predicate is made for their options.

    ``readers`` are by the name of the index type; ``tails`` are of libraries, what was not flushed, else
    None.
    """

    predicate: Predicate
    readers: Mapping[str, Any]
    tails: Mapping[str, Any] | None = None

    @property
    def blocks(self) -> bool:
        """Whether it is to be asked in a thread."""
        return any(isinstance(one, LibraryReader) and one.blocks for one in self.readers.values())

    @property
    def both(self) -> Iterator[Mapping[str, Any]]:
        """What was flushed, and what was not."""
        yield self.readers
        if self.tails is not None:
            yield self.tails


class LeafNode(Node):
    """A condition.

    ``predicates`` are what tests a document: one, or one for each set of options. ``sources`` are the indexes
    that answer it; empty: documents are tested one by one. ``answers`` says whether they know all documents
    but the ``uncovered``, which have the field and are in none of these indexes.

    Attributes:
        reach: how many documents the indexes have for it, at most, wherever these stand.
        look: called before each test of a document: ``Budget.look``.
    """

    def __init__(
        self,
        field: str,
        operator: str,
        predicates: Sequence[Predicate],
        sources: Sequence[Source] = (),
        *,
        uncovered: BitMap | None = None,
        answers: bool = False,
    ) -> None:
        super().__init__()
        self.field = field
        self.operator = operator
        self.predicates = tuple(predicates)
        self.sources = tuple(sources)
        self.uncovered = uncovered
        self.answers = answers
        self.scored = any(predicate.scored for predicate in predicates)
        self.ranked = bool(sources) and all(isinstance(one, RankedPredicate) for one in predicates)
        self.reach = 0
        self.look: Callable[[], None] = _nothing
        self._scores: dict[int, float] = {}
        self._known: BitMap | None = None

    @property
    def index(self) -> str | None:
        """Names of the index types that answer it; None where documents are tested one by one."""
        if not self.answers:
            return None
        return "+".join(sorted({name for source in self.sources for name in source.readers})) or "presence"

    def collect(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        """Asks the indexes."""
        if not self.answers or self._is_wider_than(within):
            return within, False
        with self.timed():
            found, exact = self._candidates(within, budget)
            self.actual = len(found)
        return found, exact

    def _is_wider_than(self, within: BitMap) -> bool:
        """Whether to look at some documents costs less than to ask the indexes for all that they have."""
        return not self.ranked and len(within) <= _MOST_TESTED and self.reach > _WIDE * len(within)

    def _candidates(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        from pyroaring import BitMap

        total: BitMap | None = None
        exact = True
        for source in self.sources:
            predicate = source.predicate
            exact = exact and predicate.certain
            for readers in source.both:
                budget.look()
                if source.blocks:
                    found = budget.blocking(predicate.candidates, readers)
                else:
                    found = predicate.candidates(readers)
                found = documents_of(self.operator, predicate, found)
                if found is None:
                    return within, False
                total = found if total is None else total | found
        total = BitMap() if total is None else total & within
        if self.uncovered:
            rest = self.uncovered & within
            if rest:
                return total | rest, False
        return total, exact

    def prepare(self, numbers: BitMap, budget: Budget) -> None:
        """Asks for the scores of those that are not known yet."""
        if not self.ranked:
            return
        fresh = numbers if self._known is None else numbers - self._known
        if not fresh:
            return
        with self.timed():
            for source in self.sources:
                assert isinstance(source.predicate, RankedPredicate), "a ranked leaf has ranked predicates"
                for readers in source.both:
                    if source.blocks:
                        found = budget.blocking(source.predicate.scores, readers, fresh)
                    else:
                        found = source.predicate.scores(readers, fresh)
                    self.learn(found)
        self._known = fresh.copy() if self._known is None else self._known | fresh

    def learn(self, scores: Mapping[int, float]) -> None:
        """Takes in scores that were asked for elsewhere."""
        from pyroaring import BitMap

        self._scores.update(scores_of(self.operator, self.predicates[0], scores))
        known = BitMap(list(scores))
        self._known = known if self._known is None else self._known | known

    def score(self, number: int, document: Document, snapshot: Snapshot) -> float | None:
        """Tests the values of the field, or takes the score that the index gave."""
        if self.ranked and not (self.uncovered and number in self.uncovered):
            found = self._scores.get(number)
        else:
            self.look()
            found = self.test(snapshot.values(document, self.field))
        if found is not None:
            self.passed.add(number)
        return found

    def test(self, values: Sequence[Value]) -> float | None:
        """Returns the score of a document that has these values of the field."""
        if len(self.predicates) == 1:
            score = self.predicates[0].test_all(values)
            return None if score is None else score_of(self.operator, self.predicates[0], score)
        found = ((one, one.test_all(values)) for one in self.predicates)
        return max(
            (score_of(self.operator, one, score) for one, score in found if score is not None), default=None
        )

    def leaves(self) -> Iterator[LeafNode]:
        """Yields itself."""
        yield self

    def matched_leaves(self, number: int, document: Document, snapshot: Snapshot) -> Iterator[LeafNode]:
        """Yields itself when the document matches."""
        if self.score(number, document, snapshot) is not None:
            yield self


class PresenceNode(LeafNode):
    """``exists``: looks at all indexes over the field."""

    def __init__(self, field: str, predicate: ExistsPredicate, present: BitMap | None) -> None:
        super().__init__(field, "exists", (predicate,), answers=present is not None)
        self._wanted = predicate.wanted
        self._present = present

    def _candidates(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        assert self._present is not None, "asked only where an index tells"
        return (within & self._present if self._wanted else within - self._present), True


class AllNode(Node):
    """Every document matches."""

    operator = "all"

    def collect(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        """Leaves all."""
        return within, True

    def score(self, number: int, document: Document, snapshot: Snapshot) -> float | None:
        """Always 1."""
        return 1.0


class AndNode(Node):
    """All children must match; their scores are multiplied. The cheapest are asked first."""

    operator = "and"

    def __init__(self, children: Sequence[Node]) -> None:
        super().__init__(children)
        self.scored = any(child.scored for child in children)
        self._ordered = sorted(self.children, key=lambda child: child.estimate)

    def collect(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        """Intersects, until so few are left that they are looked at sooner than another index."""
        exact = True
        with self.timed():
            for place, child in enumerate(self._ordered):
                if not within:
                    exact = True
                    break
                if place and len(within) <= _FEW:
                    exact = False
                    break
                within, sure = child.collect(within, budget)
                exact = exact and sure
            self.actual = len(within)
        return within, exact or not within

    def score(self, number: int, document: Document, snapshot: Snapshot) -> float | None:
        """The product of all."""
        product = 1.0
        for child in self._ordered:
            score = child.score(number, document, snapshot)
            if score is None:
                return None
            product *= score
        return product


class OrNode(Node):
    """One child must match; the best score counts."""

    operator = "or"

    def __init__(self, children: Sequence[Node], operator: str = "or") -> None:
        super().__init__(children)
        self.operator = operator
        self.scored = any(child.scored for child in children)

    def collect(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        """Unites."""
        from pyroaring import BitMap

        total, exact = BitMap(), True
        with self.timed():
            for child in self.children:
                found, sure = child.collect(within, budget)
                total, exact = total | found, exact and sure
            self.actual = len(total)
        return total, exact

    def score(self, number: int, document: Document, snapshot: Snapshot) -> float | None:
        """The best of all."""
        best: float | None = None
        for child in self.children:
            score = child.score(number, document, snapshot)
            if score is not None and (best is None or score > best):
                best = score
                if best == 1.0:
                    break
        return best


class NotNode(Node):
    """The child must not match."""

    operator = "not"

    def __init__(self, child: Node) -> None:
        super().__init__((child,))

    def collect(self, within: BitMap, budget: Budget) -> tuple[BitMap, bool]:
        """Takes away what the child has for certain."""
        with self.timed():
            found, sure = self.children[0].collect(within, budget)
            if sure:
                within = within - found
            self.actual = len(within)
        return within, sure

    def score(self, number: int, document: Document, snapshot: Snapshot) -> float | None:
        """1, when the child does not match."""
        return 1.0 if self.children[0].score(number, document, snapshot) is None else None

    def matched_leaves(self, number: int, document: Document, snapshot: Snapshot) -> Iterator[LeafNode]:
        """None: what did not match is no reason."""
        return iter(())
