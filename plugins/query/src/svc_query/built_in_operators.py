"""The driver's own operators: ``exists`` and ``match``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from svc.errors import InvalidInput
from svc_query.api import Leaf, Predicate, QueryOperator, Value

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["BUILT_IN_OPERATORS", "Exists", "ExistsPredicate", "Match"]


class ExistsPredicate(Predicate):
    """Whether a document has the field; the planner knows where to look."""

    certain = True

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def test(self, value: Value) -> float | None:
        """Any value is one, null too."""
        return 1.0 if self.wanted else None

    def test_all(self, values: Sequence[Value]) -> float | None:
        """A document has the field when it has a value of it."""
        return 1.0 if bool(values) is self.wanted else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """The planner looks at all indexes over the field instead."""
        return None

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """The planner looks at all indexes over the field instead."""
        return None


class Exists(QueryOperator):
    """``exists``: the document has the field (``true``), or has it not (``false``); null counts as having."""

    name = "exists"
    index_types = ((),)
    needs_value = False

    def compile(self, leaf: Leaf) -> Predicate:
        """Returns the leaf, ready to be asked; without a value it asks whether the field is there."""
        wanted = True if leaf.value is None else leaf.value
        if not isinstance(wanted, bool):
            raise InvalidInput("The value of 'exists' is true or false.", field="where.value")
        return ExistsPredicate(wanted)


class Match(QueryOperator):
    """``match``: the best of ``contains``, ``similar``, ``fuzzy`` and ``phonetic``, as indexes allow.

    The planner makes an OR of the parts. This class says what it needs.
    """

    name = "match"
    index_types = (("trigram", "phonetic"), ("trigram",), ("phonetic",))
    parts = ("contains", "similar", "fuzzy", "phonetic")

    def compile(self, leaf: Leaf) -> Predicate:
        """Refuses: the planner takes the parts."""
        raise InvalidInput(
            f"The operator 'match' on the field {leaf.field!r} needs one of its parts.", field="where.op"
        )


BUILT_IN_OPERATORS: tuple[QueryOperator, ...] = (Exists(), Match())
