"""The documents that match: narrowed by indexes, tested where those do not suffice, seen by the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from svc.plugin import Path
from svc_query.executing.budget import Budget
from svc_query.executing.visibility import Scope
from svc_query.ordering import Key, Order
from svc_query.planning.nodes import Node
from svc_query.snapshot import Document, Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Match", "Matching", "ProbeFailed", "Row"]

_BATCH = 256
_FIRST_BATCH = 32


class ProbeFailed(Exception):
    """Too many documents were tested without an index."""


class Match(NamedTuple):
    """A document that matches, and how well."""

    document: Document
    score: float


class Row(NamedTuple):
    """A match in its place."""

    key: Key
    match: Match


class Matching:
    """The documents of one query; ``tested`` counts those that were looked at and tested.

    ``walked_to`` is the path where a walk ended because it had looked at too many documents.
    """

    def __init__(self, snapshot: Snapshot, node: Node, scope: Scope, budget: Budget) -> None:
        from pyroaring import BitMap

        self.snapshot = snapshot
        self.node = node
        self.scope = scope
        self.budget = budget
        for leaf in node.leaves():
            leaf.look = budget.look
        self._is_ranked = any(leaf.ranked for leaf in node.leaves())
        self.tested = 0
        self.walked_to: Path | None = None
        # Documents of the tail are at hand: no table need be asked for them.
        self._at_hand = {} if snapshot.knows_tail else {one.id: one for one in snapshot.tail()}
        self.tail = BitMap(list(self._at_hand)) & scope.numbers if self._at_hand else BitMap()
        self._probing: int | None = None
        self._numbers: BitMap | None = None
        self._exact = False
        self._checked = not scope.unchecked
        self._narrowed = True

    @property
    def numbers(self) -> BitMap:
        """The documents that match, and unless ``exact``, some that do not; not to be changed."""
        self._collect()
        assert self._numbers is not None, "it was collected"
        return self._numbers

    @property
    def exact(self) -> bool:
        """Whether all of ``numbers`` match; the caller may still have to be asked for."""
        self._collect()
        return self._exact

    @property
    def settled(self) -> bool:
        """Whether ``numbers`` are the answer: all match, and the caller may read all."""
        return self.exact and self._checked

    @property
    def narrowed(self) -> bool:
        """Whether an index left fewer than there are."""
        self._collect()
        return self._narrowed

    def _collect(self) -> None:
        if self._numbers is not None:
            return
        flushed = self.scope.numbers - self.tail if self.tail else self.scope.numbers
        found, self._exact = self.node.collect(flushed, self.budget)
        self._narrowed = self._exact or len(found) < len(flushed)
        if self.tail:
            tail = self.tail
            if self._exact:
                # Only where the rest is certain: else all are tested anyway, as far as they are asked for.
                self._numbers, self._exact = tail, False
                tail = type(found)([one.document.id for one in self.matches(tail)])
                self._exact = True
            found = found | tail
        self._numbers = found

    def matches(self, numbers: Iterable[int], *, at_once: int = _FIRST_BATCH) -> Iterator[Match]:
        """Yields those of some of ``numbers`` that match and that the caller may read, in the order given.

        ``at_once`` documents are taken before the first match is given.
        """
        rest = iter(numbers)
        # With scores that differ from 1, a document is tested although it is known to match.
        if self._exact and not self.node.scored:
            yield from self._certain(rest)
        elif not self._is_ranked:
            for number in rest:
                match = self._tested(number)
                if match is not None:
                    yield match
        else:
            yield from self._in_batches(rest, min(at_once, _BATCH))

    def _in_batches(self, numbers: Iterator[int], size: int) -> Iterator[Match]:
        """Yields those that match; an index that ranks is asked for the scores of many at once."""
        from pyroaring import BitMap

        while batch := list(islice(numbers, size)):
            size = _BATCH
            self.node.prepare(BitMap(batch), self.budget)
            for number in batch:
                match = self._tested(number)
                if match is not None:
                    yield match

    def _tested(self, number: int) -> Match | None:
        self.budget.tick()
        document = self._at_hand.get(number) or self.snapshot.document(number)
        if document is None or not self.scope.admits(number, document.path):
            return None
        self.tested += 1
        if self._probing is not None and self.tested > self._probing:
            raise ProbeFailed
        score = self.node.score(number, document, self.snapshot)
        return None if score is None else Match(document, score)

    def _certain(self, numbers: Iterator[int]) -> Iterator[Match]:
        """Yields those of documents that are known to match which are for the caller."""
        tick, find, at_hand, scope = self.budget.tick, self.snapshot.document, self._at_hand, self.scope
        for number in numbers:
            tick()
            document = at_hand.get(number) or find(number)
            if document is not None and scope.admits(number, document.path):
                yield Match(document, 1.0)

    @contextmanager
    def probe(self, most: int) -> Iterator[None]:
        """Takes all documents for possible matches in a block, and asks no index; only before ``numbers``.

        Where more than ``most`` have to be tested, ``ProbeFailed`` is raised.
        """
        self._numbers, self._exact, self._narrowed = self.scope.numbers, False, False
        self._probing = self.tested + most
        try:
            yield
        finally:
            self._numbers, self._probing = None, None

    @property
    def is_collected(self) -> bool:
        """Whether the indexes have been asked."""
        return self._numbers is not None

    def settle(self) -> BitMap:
        """Tests everything that is not certain, and returns the documents that match and may be read.

        Raises InvalidInput where no index leaves few enough documents.
        """
        from pyroaring import BitMap

        if not self.settled:
            if not self.narrowed:
                self.require_rows(len(self.numbers), "because no index answers its filter")
            found = BitMap([one.document.id for one in self.matches(self.numbers)])
            self._numbers, self._exact, self._checked = found, True, True
            self.scope = self.scope._replace(unchecked=BitMap())
        return self.numbers

    def require_rows(self, count: int, why: str) -> None:
        """Makes sure that a query may look at so many documents."""
        if count > self.budget.rows:
            raise self.budget.refuse_rows(why)

    def row(self, order: Order, match: Match) -> Row:
        """Returns a match in its place."""
        document = match.document
        deciding = order.deciding(lambda name: self.snapshot.values(document, name))
        return Row(order.key(deciding, match.score, document.path), match)
