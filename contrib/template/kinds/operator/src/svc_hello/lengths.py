"""The operator ``shorter_than``. It asks no index: the driver tests the documents one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from svc_query.api import Leaf, Predicate, QueryOperator, Value

from svc.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["ShorterThan"]


class ShorterThan(QueryOperator):
    """Texts with fewer letters than a number, in fields with an index of the type ``exact``."""

    name = "shorter_than"
    index_types = (("exact",),)

    def compile(self, leaf: Leaf) -> Predicate:
        """Returns the leaf, ready to be asked."""
        if not isinstance(leaf.value, int) or isinstance(leaf.value, bool):
            raise InvalidInput(f"{leaf.field!r} is asked with a whole number.", field="value")
        return ShorterPredicate(leaf.value)


class ShorterPredicate(Predicate):
    """Whether a text is shorter."""

    def __init__(self, letters: int) -> None:
        self._letters = letters

    def test(self, value: Value) -> float | None:
        """Returns 1 for a text that is."""
        return 1.0 if isinstance(value, str) and len(value) < self._letters else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """The index cannot tell."""
        return None

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """The index cannot tell."""
        return None
