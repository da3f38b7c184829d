"""The operators of the index type ``exact``."""

from __future__ import annotations

from typing import Any, ClassVar

from svc_query.api import Leaf, Predicate, QueryOperator

from svc.errors import InvalidInput
from svc_index_exact.operands import check_operand, check_ordered, kind_of
from svc_index_exact.predicates import EqualTo, InRange, NotEqualTo, OneOf, StartsWith

__all__ = ["MAXIMUM_VALUES", "OPERATORS"]

MAXIMUM_VALUES = 10_000
"""Values that ``in`` takes."""


class ExactOperator(QueryOperator):
    """One that the index type ``exact`` answers."""

    index_types: ClassVar[tuple[tuple[str, ...], ...]] = (("exact",),)


class EqualOperator(ExactOperator):
    """A value is equal."""

    name: ClassVar[str] = "eq"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string, a number, a boolean or null."""
        return EqualTo(check_operand(leaf, leaf.value))


class NotEqualOperator(ExactOperator):
    """The field has values, and none is equal."""

    name: ClassVar[str] = "ne"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string, a number, a boolean or null."""
        return NotEqualTo(check_operand(leaf, leaf.value))


class GreaterOperator(ExactOperator):
    """A value is greater."""

    name: ClassVar[str] = "gt"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string or a number."""
        return InRange(check_ordered(leaf, leaf.value), None, low_inclusive=False)


class GreaterOrEqualOperator(ExactOperator):
    """A value is greater or equal."""

    name: ClassVar[str] = "gte"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string or a number."""
        return InRange(check_ordered(leaf, leaf.value), None)


class LessOperator(ExactOperator):
    """A value is less."""

    name: ClassVar[str] = "lt"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string or a number."""
        return InRange(None, check_ordered(leaf, leaf.value), high_inclusive=False)


class LessOrEqualOperator(ExactOperator):
    """A value is less or equal."""

    name: ClassVar[str] = "lte"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string or a number."""
        return InRange(None, check_ordered(leaf, leaf.value))


class BetweenOperator(ExactOperator):
    """A value is in a range; both ends belong to it."""

    name: ClassVar[str] = "between"
    options: ClassVar[frozenset[str]] = frozenset({"value2"})

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes two strings or two numbers."""
        if "value2" not in leaf.options:
            raise InvalidInput(f"{leaf.field}: between takes value and value2.", field="value2")
        low = check_ordered(leaf, leaf.value)
        high = check_ordered(leaf, leaf.options["value2"], "value2")
        if kind_of(low) != kind_of(high):
            raise InvalidInput(f"{leaf.field}: between takes two numbers or two strings.", field="value2")
        return InRange(low, high)


class InOperator(ExactOperator):
    """A value is equal to one of several."""

    name: ClassVar[str] = "in"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes an array of up to 10,000 strings, numbers, booleans and nulls."""
        values: Any = leaf.value
        if not isinstance(values, (list, tuple)):
            raise InvalidInput(f"{leaf.field}: in takes an array of values.", field="value")
        if len(values) > MAXIMUM_VALUES:
            raise InvalidInput(f"{leaf.field}: in takes at most {MAXIMUM_VALUES} values.", field="value")
        return OneOf([check_operand(leaf, value) for value in values])


class PrefixOperator(ExactOperator):
    """A string begins with another."""

    name: ClassVar[str] = "prefix"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string; a field of timestamps has none that could begin with it."""
        if leaf.value_type == "timestamp":
            raise InvalidInput(
                f"{leaf.field} holds timestamps, which are numbers: they have no prefix. Ask with gte and "
                "lt, or between.",
                field="value",
            )
        if not isinstance(leaf.value, str):
            raise InvalidInput(f"{leaf.field}: prefix takes a string.", field="value")
        return StartsWith(leaf.value)


OPERATORS: tuple[type[QueryOperator], ...] = (
    EqualOperator,
    NotEqualOperator,
    GreaterOperator,
    GreaterOrEqualOperator,
    LessOperator,
    LessOrEqualOperator,
    BetweenOperator,
    InOperator,
    PrefixOperator,
)
"""All of them."""
