"""The index type ``initial``, whose terms are first letters, and the operator that asks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from svc_query.api import Leaf, Predicate, QueryOperator, TermIndexType, Value

from svc.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["HasInitial", "InitialIndexType"]


def initial_of(value: Value) -> bytes | None:
    """Returns the term of a value; None for what is no text."""
    if not isinstance(value, str) or not value:
        return None
    return value[0].casefold().encode("utf-8", "surrogatepass")


class InitialIndexType(TermIndexType):
    """The first letter of each text, small letters and capitals alike."""

    name = "initial"
    format = 1

    def terms(self, value: Value, options: Mapping[str, Any]) -> Iterable[bytes]:
        """Returns the first letter."""
        term = initial_of(value)
        return () if term is None else (term,)


class HasInitial(QueryOperator):
    """Texts that begin with a letter."""

    name = "has_initial"
    index_types = (("initial",),)

    def compile(self, leaf: Leaf) -> Predicate:
        """Returns the leaf, ready to be asked."""
        term = initial_of(leaf.value)
        if term is None or len(leaf.value) != 1:
            raise InvalidInput(f"{leaf.field!r} is asked with one letter.", field="value")
        return InitialPredicate(term)


class InitialPredicate(Predicate):
    """Whether a text begins with a letter."""

    # A document that has the term matches: none need be looked at.
    certain = True

    def __init__(self, term: bytes) -> None:
        self._term = term

    def test(self, value: Value) -> float | None:
        """Returns 1 for a text that does."""
        return 1.0 if initial_of(value) == self._term else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Returns how many documents there are."""
        return indexes["initial"].count(self._term)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents."""
        return indexes["initial"].postings(self._term)
