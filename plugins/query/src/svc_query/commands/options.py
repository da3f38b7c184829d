"""What the words of a command mean as members of a request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from svc.errors import InvalidInput, UsageError
from svc_query.syntax import FilterSyntaxError, parse_filter

__all__ = ["aggregate_of", "fields_of", "filter_of", "orders_of"]

Document = dict[str, Any]

_DIRECTIONS = ("asc", "desc")


def filter_of(expression: str | None, where: str | None, *, pointed: bool = True) -> Any:
    """Returns the filter that a command was given: as text, as JSON, or both, which means ``and``.

    ``pointed``: an error shows the place, on lines of its own.
    """
    parts = []
    if expression is not None and expression.strip():
        try:
            parts.append(parse_filter(expression))
        except FilterSyntaxError as error:
            if pointed:
                error.message = error.pointed()
            raise
    if where is not None:
        try:
            parts.append(json.loads(where))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"--where takes JSON: {error}", field="where") from None
    if not parts:
        return []
    return parts[0] if len(parts) == 1 else {"and": parts}


def fields_of(given: Iterable[str]) -> list[str]:
    """Returns the names of fields that an option was given, each time one or several parted by commas."""
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def orders_of(given: Iterable[str]) -> list[Document]:
    """Returns ``order_by``: ``year``, ``year:desc``."""
    orders = []
    for text in fields_of(given):
        field, colon, direction = text.rpartition(":")
        if not colon:
            field, direction = text, "asc"
        if direction.lower() not in _DIRECTIONS or not field:
            raise UsageError(f"--order takes FIELD, FIELD:asc or FIELD:desc, not {text!r}.")
        orders.append({"field": field, "direction": direction.lower()})
    return orders


def aggregate_of(
    *,
    count: bool,
    sums: Iterable[str],
    averages: Iterable[str],
    least: Iterable[str],
    greatest: Iterable[str],
    group_by: Iterable[str],
) -> Document | None:
    """Returns ``aggregate``; None when nothing of it was asked for. Groups are counted in any case."""
    members = {
        "sum": fields_of(sums),
        "avg": fields_of(averages),
        "min": fields_of(least),
        "max": fields_of(greatest),
        "group_by": fields_of(group_by),
    }
    given: Document = {name: fields for name, fields in members.items() if fields}
    if count or "group_by" in given:
        given["count"] = True
    return given or None
