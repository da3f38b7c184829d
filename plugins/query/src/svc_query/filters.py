"""Filters as callers write them: checked for their form, and nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from svc.errors import InvalidInput

__all__ = ["MAXIMUM_LEAVES", "MAXIMUM_NESTING", "And", "Filter", "LeafFilter", "Not", "Or", "parse_filter"]

MAXIMUM_NESTING = 32
"""How deep ``and``, ``or`` and ``not`` may stand in one another."""
MAXIMUM_LEAVES = 1_000

_NAMES = frozenset({"@path", "@filename", "@extension"})
"""The fields whose values are names of paths."""
_COMBINATORS = ("and", "or", "not")


class LeafFilter(msgspec.Struct, frozen=True):
    """One condition; ``has_value`` tells a value of None from none, ``options`` are all other members."""

    field: str
    op: str
    value: Any
    has_value: bool
    options: Mapping[str, Any]


class And(msgspec.Struct, frozen=True):
    """All must match; without children everything does."""

    children: tuple[Filter, ...]


class Or(msgspec.Struct, frozen=True):
    """At least one must match; without children nothing does."""

    children: tuple[Filter, ...]


class Not(msgspec.Struct, frozen=True):
    """Matches the documents that its child does not."""

    child: Filter


Filter: TypeAlias = LeafFilter | And | Or | Not


def parse_filter(value: Any) -> Filter:
    """Returns the filter that a ``where`` spells; an array at the top is an AND.

    Raises InvalidInput for another form, for one that nests deeper than 32 or has over 1,000 conditions.
    """
    parser = _Parser()
    if isinstance(value, list):
        return And(tuple(parser.parse(one, 0) for one in value))
    return parser.parse(value, 0)


class _Parser:
    def __init__(self) -> None:
        self._leaves = 0

    def parse(self, value: Any, depth: int) -> Filter:
        if not isinstance(value, dict):
            raise _malformed("A filter is an object: a condition with field and op, or one of and, or, not.")
        present = [name for name in _COMBINATORS if name in value]
        if not present:
            return self._leaf(value)
        if len(value) != 1:
            raise _malformed(f"A filter with {present[0]!r} has no other members.")
        depth += 1
        if depth > MAXIMUM_NESTING:
            raise InvalidInput(
                f"A filter nests at most {MAXIMUM_NESTING} deep.", field="where", limit=MAXIMUM_NESTING
            )
        inner = value[present[0]]
        if present[0] == "not":
            return Not(self.parse(inner, depth))
        if not isinstance(inner, list):
            raise _malformed(f"What stands under {present[0]!r} is an array of filters.")
        children = tuple(self.parse(one, depth) for one in inner)
        return And(children) if present[0] == "and" else Or(children)

    def _leaf(self, value: dict[str, Any]) -> LeafFilter:
        for name in ("field", "op"):
            text = value.get(name)
            if text is None:
                raise InvalidInput(f"A condition needs {name!r}.", field=f"where.{name}")
            if not isinstance(text, str) or not text:
                raise InvalidInput(f"The member {name!r} of a condition is a text.", field=f"where.{name}")
        self._leaves += 1
        if self._leaves > MAXIMUM_LEAVES:
            raise InvalidInput(
                f"A filter has at most {MAXIMUM_LEAVES} conditions.", field="where", limit=MAXIMUM_LEAVES
            )
        options = {name: one for name, one in value.items() if name not in ("field", "op", "value")}
        operand = value.get("value")
        if value["field"] in _NAMES:
            operand, options = _composed(operand), _composed(options)
        return LeafFilter(value["field"], value["op"], operand, "value" in value, options)


def _composed(value: Any) -> Any:
    """A value with its texts in the Unicode form of paths."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_composed(one) for one in value]
    if isinstance(value, dict):
        return {name: _composed(one) for name, one in value.items()}
    return value


def _malformed(message: str) -> InvalidInput:
    return InvalidInput(message, field="where")
