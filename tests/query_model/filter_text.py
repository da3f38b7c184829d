"""From the JSON of a filter to text: the way back of ``parse_filter``, for tests of the parser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from svc_query.syntax.tokens import is_word
from svc_query.syntax.words import CONNECTIVES, POSITIONAL_OPTIONS

from svc.errors import InvalidInput

__all__ = ["TEXT_WORDS", "field_text", "filter_text", "value_text"]

TEXT_WORDS = {
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "contains": "~",
    "prefix": "^=",
    "similar": "similar",
    "fuzzy": "fuzzy",
    "phonetic": "sounds like",
    "match": "matches",
    "search": "search",
    "nearest": "nearest",
}
"""How operators with one value are written."""

_OR, _AND, _ONE = range(3)
_LEAF = ("field", "op", "value")


def filter_text(where: Any) -> str:
    """Returns a filter as text that ``parse_filter`` reads back.

    A list or a combinator of one filter becomes that filter. What everything matches is ``*``.

    Args:
        where: the JSON of a filter: an object, or an array, which means ``and``.

    Raises:
        InvalidInput: it is none.
    """
    return _filter(where, _OR)


def field_text(name: str) -> str:
    """Returns the name of a field as the text of a filter has it."""
    if is_word(name) and name.lower() not in CONNECTIVES:
        return name
    return "`" + _escaped(name, "`") + "`"


def value_text(value: Any) -> str:
    """Returns a value as the text of a filter has it.

    Raises:
        InvalidInput: JSON has no such value.
    """
    if isinstance(value, str):
        return '"' + _escaped(value, '"') + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, Mapping):
        members = (f"{value_text(str(name))}: {value_text(item)}" for name, item in value.items())
        return "{" + ", ".join(members) + "}"
    if value is not None and not isinstance(value, bool | int | float):
        raise InvalidInput(f"JSON has no value of the type {type(value).__name__}.")
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise InvalidInput(f"JSON has no number {value}.") from None


def _filter(where: Any, binding: int) -> str:
    if isinstance(where, Sequence) and not isinstance(where, str):
        return _combined(where, "and", binding)
    if not isinstance(where, Mapping):
        raise InvalidInput("A filter is an object or an array.")
    if len(where) == 1:
        ((word, parts),) = where.items()
        if word == "not":
            return "not " + _filter(parts, _ONE)
        if word in ("and", "or"):
            if not isinstance(parts, Sequence) or isinstance(parts, str):
                raise InvalidInput(f"'{word}' takes an array of filters.")
            return _combined(parts, word, binding)
    if not isinstance(where.get("field"), str) or not isinstance(where.get("op"), str):
        raise InvalidInput("A filter has 'field' and 'op', or one of 'and', 'or' and 'not'.")
    return _leaf(where)


def _combined(parts: Sequence[Any], word: str, binding: int) -> str:
    if not parts:
        return "*" if word == "and" else "not *"
    if len(parts) == 1:
        return _filter(parts[0], binding)
    own = _AND if word == "and" else _OR
    # A part of the same kind keeps its parentheses, so that the way back gives the same tree.
    text = f" {word} ".join(_filter(part, own + 1) for part in parts)
    return f"({text})" if binding > own else text


def _leaf(leaf: Mapping[str, Any]) -> str:
    field = field_text(leaf["field"])
    readable = _readable(leaf)
    if readable is not None:
        return f"{field} {readable}"
    op = leaf["op"] if is_word(leaf["op"]) else "`" + _escaped(leaf["op"], "`") + "`"
    value = f" {value_text(leaf['value'])}" if "value" in leaf else ""
    return f"{field} :{op}{value}{_options(leaf, ())}"


def _readable(leaf: Mapping[str, Any]) -> str | None:
    """What stands behind the field, if its operator has a form of its own for this."""
    op, value = leaf["op"], leaf.get("value")
    if "value" not in leaf:
        return None
    bare = len(leaf) == 3
    if op == "exists" and bare and isinstance(value, bool):
        return "exists" if value else "missing"
    if op in ("eq", "ne") and bare and value is None:
        return "is null" if op == "eq" else "is not null"
    if op == "in" and bare and isinstance(value, list | tuple):
        return "in (" + ", ".join(map(value_text, value)) + ")"
    if op == "between" and "value2" in leaf:
        bounds = f"{value_text(value)} and {value_text(leaf['value2'])}"
        return f"between {bounds}{_options(leaf, ('value2',))}"
    if op in TEXT_WORDS:
        return f"{TEXT_WORDS[op]} {value_text(value)}{_options(leaf, ())}"
    return None


def _options(leaf: Mapping[str, Any], written: tuple[str, ...]) -> str:
    names = [name for name in leaf if name not in _LEAF and name not in written]
    if not names:
        return ""
    return " (" + ", ".join(_option(leaf, name, names) for name in names) + ")"


def _option(leaf: Mapping[str, Any], name: str, names: list[str]) -> str:
    value = leaf[name]
    positional = POSITIONAL_OPTIONS.get(leaf["op"], ())
    if names == [name] and positional[:1] == (name,):
        if value == "auto" and isinstance(value, str):
            return "auto"
        if not isinstance(value, str):
            return value_text(value)
    shown = name if is_word(name) else "`" + _escaped(name, "`") + "`"
    return f"{shown}: {value_text(value)}"


def _escaped(text: str, quote: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    if quote != '"':
        escaped = escaped.replace('\\"', '"').replace(quote, "\\" + quote)
    return "".join(one if one.isprintable() else _unicode_escape(one) for one in escaped)


def _unicode_escape(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
