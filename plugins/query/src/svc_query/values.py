"""Values of fields: what JSON has, converted to the type that a field asks for.

Conversion happens once, when a file is read. What cannot be converted is left out and counted; nothing is
guessed. Null is a value of every type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Final

from svc_query.api import Value

__all__ = ["NOT_CONVERTED", "VALUE_TYPES", "converter"]


class _NotConverted:
    """Stands for a value that its field cannot take."""


NOT_CONVERTED: Final = _NotConverted()

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,1000}\s*", re.ASCII)
_LARGEST_INTEGER = 10**1000
_MOST_NUMBERS = 65_536
_SMALL = 1 << 62
_STAYS: dict[str, type] = {"auto": int, "integer": int, "timestamp": int, "float": float, "boolean": bool}
"""Of which class values may be that stay as they are, if they are not too large."""
_FALSE_AND_TRUE = {"false": False, "true": True}

_Converted = Value | _NotConverted


def converter(value_type: str, maximum_text: int) -> Callable[[Any], _Converted]:
    """Returns what makes a value of a field, or ``NOT_CONVERTED``, of a value that a parser gave."""
    convert = VALUE_TYPES[value_type]
    stays = _STAYS.get(value_type)
    takes_text = value_type in ("auto", "string", "text")

    def convert_and_cut(value: Any) -> _Converted:
        kind = value.__class__
        if kind is str:
            # Nearly all values are short plain texts, or numbers that are what they should be.
            if takes_text and value.isascii() and len(value) <= maximum_text:
                return value  # type: ignore[no-any-return]
        elif kind is stays:
            if -_SMALL < value < _SMALL:
                return value  # type: ignore[no-any-return]
        elif value is None:
            return None
        found = convert(value)
        return _clean(found, maximum_text) if isinstance(found, str) else found

    return convert_and_cut


def _clean(text: str, maximum_text: int) -> str:
    """A text as it can be stored: of bounded length, and without halves of surrogate pairs."""
    if len(text) > maximum_text:
        text = text[:maximum_text]
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _auto(value: Any) -> _Converted:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if -_LARGEST_INTEGER < value < _LARGEST_INTEGER else NOT_CONVERTED
    if isinstance(value, float):
        return value if math.isfinite(value) else NOT_CONVERTED
    if isinstance(value, date):
        return value.isoformat()
    return NOT_CONVERTED


def _string(value: Any) -> _Converted:
    found = _auto(value)
    if isinstance(found, str | _NotConverted):
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    return repr(found)


def _integer(value: Any) -> _Converted:
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else NOT_CONVERTED
    found = NOT_CONVERTED if isinstance(value, bool) else _auto(value)
    if isinstance(found, float):
        return int(found) if found.is_integer() else NOT_CONVERTED
    return found if isinstance(found, int) else NOT_CONVERTED


def _float(value: Any) -> _Converted:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return NOT_CONVERTED
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return NOT_CONVERTED
    return found if math.isfinite(found) else NOT_CONVERTED


def _boolean(value: Any) -> _Converted:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _FALSE_AND_TRUE.get(value.strip().lower(), NOT_CONVERTED)
    return NOT_CONVERTED


def _timestamp(value: Any) -> _Converted:
    """Unix milliseconds: a number is taken for that, a text is ISO 8601, in UTC unless it says otherwise."""
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return NOT_CONVERTED
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        try:
            return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)
        except OverflowError:
            return NOT_CONVERTED
    if isinstance(value, date):
        return _timestamp(datetime(value.year, value.month, value.day, tzinfo=UTC))
    if isinstance(value, float) and math.isfinite(value):
        return round(value)
    return _integer(value)


def _array(value: Any) -> _Converted:
    if not isinstance(value, list | tuple) or not value or len(value) > _MOST_NUMBERS:
        return NOT_CONVERTED
    numbers: list[float] = []
    for item in value:
        number = NOT_CONVERTED if isinstance(item, str) else _float(item)
        if not isinstance(number, float):
            return NOT_CONVERTED
        numbers.append(number)
    return tuple(numbers)


VALUE_TYPES: dict[str, Callable[[Any], _Converted]] = {
    "auto": _auto,
    "string": _string,
    "integer": _integer,
    "float": _float,
    "boolean": _boolean,
    "timestamp": _timestamp,
    "text": _string,
    "array": _array,
}
"""What an entry of ``indexes.json`` may have as ``value_type``, and the conversion to it."""
