"""The words and signs of operators: those that the parser knows."""

from __future__ import annotations

__all__ = [
    "CONNECTIVES",
    "POSITIONAL_OPTIONS",
    "SIGNS",
    "WORDS",
    "known_words",
]

SIGNS = {
    "=": "eq",
    "==": "eq",
    "!=": "ne",
    "<>": "ne",
    "<": "lt",
    "<=": "lte",
    ">": "gt",
    ">=": "gte",
    "~": "contains",
    "^=": "prefix",
}
"""Operators that are signs, and their names in JSON. ``!~`` is ``not`` of ``~``."""

WORDS: dict[tuple[str, ...], str] = {
    ("contains",): "contains",
    ("starts", "with"): "prefix",
    ("prefix",): "prefix",
    ("similar",): "similar",
    ("similar", "to"): "similar",
    ("fuzzy",): "fuzzy",
    ("sounds", "like"): "phonetic",
    ("phonetic",): "phonetic",
    ("matches",): "match",
    ("match",): "match",
    ("search",): "search",
    ("nearest",): "nearest",
    ("between",): "between",
    ("in",): "in",
    ("exists",): "exists",
    ("missing",): "exists",
    ("is",): "eq",
}
"""Operators that are words; the longest that fits counts."""

POSITIONAL_OPTIONS = {
    "similar": ("threshold",),
    "fuzzy": ("fuzziness", "algorithm"),
    "nearest": ("k",),
}
"""Options that may stand in parentheses without their names, in this order."""

CONNECTIVES = frozenset(("and", "or", "not"))
"""Words that are never fields, unless they are quoted."""


def known_words() -> str:
    """Returns the operators, for messages."""
    signs = "=, !=, <, <=, >, >=, ~, ^="
    return f"{signs}, between, in, is null, exists, similar, fuzzy, sounds like, matches, search"
