"""What a leaf compares with: values of one of the kinds that compare."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from svc_query.api import Leaf

from svc.errors import InvalidInput

__all__ = ["Operand", "check_operand", "check_ordered", "kind_of"]

Operand = None | bool | int | float | str


def kind_of(value: object) -> str | None:
    """Returns the kind of a value; only values of one kind compare. None: it compares with nothing."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "number"
    if isinstance(value, float):
        return None if math.isnan(value) else "number"
    return "null" if value is None else None


def check_operand(leaf: Leaf, value: Any, member: str = "value") -> Operand:
    """Returns a value that can be equal to others; a time as Unix milliseconds where the field has times.

    Raises:
        InvalidInput: it is an object, an array or not a number, or no time where one is expected.
    """
    if kind_of(value) is None:
        raise InvalidInput(
            f"{leaf.field}: {leaf.op} compares with a string, a number, a boolean or null.",
            field=member,
        )
    if leaf.value_type == "timestamp" and isinstance(value, str):
        return _milliseconds(leaf, value, member)
    found: Operand = value
    return found


def check_ordered(leaf: Leaf, value: Any, member: str = "value") -> int | float | str:
    """Returns a value that can be less or greater than others.

    Raises:
        InvalidInput: it is neither a number nor a string, or no time where one is expected.
    """
    if kind_of(value) not in {"number", "string"}:
        raise InvalidInput(f"{leaf.field}: {leaf.op} takes a number or a string.", field=member)
    found: Any = check_operand(leaf, value, member)
    return found  # type: ignore[no-any-return]


def _milliseconds(leaf: Leaf, text: str, member: str) -> int:
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        past = time - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{leaf.field}: {leaf.op} takes a time as ISO 8601 has it, or Unix milliseconds.", field=member
        ) from error
    return past.days * 86_400_000 + past.seconds * 1_000 + past.microseconds // 1_000
