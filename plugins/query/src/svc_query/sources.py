"""Sources: the way from a parsed document to the values of a field.

A step is a key, a position, ``""`` for every element or value (each is a value of its own then), or
``"/regex/i"`` for the keys that match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from svc.errors import InvalidInput

__all__ = ["MAXIMUM_LOOKS", "MAXIMUM_STEPS", "Looks", "Source", "TooManyLooks", "compile_source"]

Source = tuple[str | int, ...]
"""The steps, from the root of the document."""

MAXIMUM_STEPS = 32
MAXIMUM_POSITION = 2**31 - 1
"""No array is longer, and rows hold no larger integers than those of 64 bits."""

MAXIMUM_EXPRESSION = 256
_MAXIMUM_KEY = 256
MAXIMUM_LOOKS = 1_000_000
"""What is looked at in one document for all of its fields: values on the way, and keys, which count more."""

_LOOKS_OF_A_KEY = 20
"""A key that is compared with an expression takes 7 us, a step to a value 0.2."""

_EXPRESSION = re.compile(r"/(.+)/(i?)", re.DOTALL)


class TooManyLooks(Exception):
    """The fields of a document would have to be looked for in too many places."""


class Looks:
    """How much may still be looked at in one document."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAXIMUM_LOOKS) -> None:
        self.left = left

    def take(self, count: int) -> None:
        """Counts some."""
        self.left -= count
        if self.left < 0:
            raise TooManyLooks


_Step = Callable[[Any, Looks], Iterable[Any]]


def compile_source(source: Sequence[str | int]) -> Callable[[Any, int, Looks], list[Any]]:
    """Returns what finds the values of a source in a document.

    It is called with (document, how many values at most, how much may be looked at), and raises
    ``TooManyLooks``. Raises InvalidInput for no step, too many, or an expression that is not allowed.
    """
    if not 1 <= len(source) <= MAXIMUM_STEPS:
        raise InvalidInput(f"A source has 1 to {MAXIMUM_STEPS} steps.", field="source")
    steps = [_step(part) for part in source]
    if all(isinstance(part, str) and part and not _EXPRESSION.fullmatch(part) for part in source):
        keys = tuple(str(part) for part in source)
        return lambda document, _, __: _by_keys(document, keys)

    def find(document: Any, most: int, looks: Looks) -> list[Any]:
        return list(islice(_walk(document, steps, 0, looks), most))

    return find


def _by_keys(document: Any, keys: tuple[str, ...]) -> list[Any]:
    """The commonest source, which has one value or none."""
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return []
        document = document[key]
    return [document]


def _walk(value: Any, steps: list[_Step], at: int, looks: Looks) -> Iterator[Any]:
    if at == len(steps):
        yield value
        return
    for found in steps[at](value, looks):
        looks.take(1)
        yield from _walk(found, steps, at + 1, looks)


def _step(part: str | int) -> _Step:
    if isinstance(part, bool) or not isinstance(part, str | int):
        raise InvalidInput("A step of a source is a string or an integer.", field="source")
    if isinstance(part, int):
        if abs(part) > MAXIMUM_POSITION:
            raise InvalidInput(
                f"A position in a source is between -{MAXIMUM_POSITION} and {MAXIMUM_POSITION}.",
                field="source",
            )
        return lambda value, _: value[part : part + 1 or None] if isinstance(value, list) else ()
    if part == "":
        return _everything
    expression = _EXPRESSION.fullmatch(part)
    if expression is None:
        return lambda value, _: (value[part],) if isinstance(value, dict) and part in value else ()
    pattern = _pattern(expression[1], expression[2])
    return lambda value, looks: _matching(value, pattern, looks)


def _everything(value: Any, _: Looks) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def _matching(value: Any, pattern: Any, looks: Looks) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                looks.take(_LOOKS_OF_A_KEY)
                if pattern.search(key[:_MAXIMUM_KEY]):
                    yield item


def _pattern(text: str, flags: str) -> Any:
    """The expression, for an engine whose time grows with the key alone (RE2, Cox 2010)."""
    if len(text) > MAXIMUM_EXPRESSION:
        raise InvalidInput(
            f"An expression in a source may have {MAXIMUM_EXPRESSION} characters.", field="source"
        )
    import re2  # megabytes, for expressions alone

    options = re2.Options()
    options.case_sensitive = not flags
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else ""
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidInput(f"The expression /{text}/ is not valid: {words}.", field="source") from None
