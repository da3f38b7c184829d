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

__all__ = ["MAXIMUM_STEPS", "Source", "compile_source"]

Source = tuple[str | int, ...]
"""The steps, from the root of the document."""

MAXIMUM_STEPS = 32
MAXIMUM_POSITION = 2**31 - 1
"""No array is longer, and rows hold no larger integers than those of 64 bits."""

MAXIMUM_EXPRESSION = 256
_MAXIMUM_KEY = 256
_EXPRESSION = re.compile(r"/(.+)/(i?)", re.DOTALL)
# What can make the engine try again and again: a repetition of what holds a repetition, many choices one
# behind the other, and references back.
_REPEATED_GROUP = re.compile(r"\)\s*[*+{?]")
_EXTENSION = re.compile(r"\\[1-9]|\(\?(?!:)")
_MOST = (("*+{", 2), ("?", 6), ("(", 4), ("|", 16))

_Step = Callable[[Any], Iterable[Any]]


def compile_source(source: Sequence[str | int]) -> Callable[[Any, int], list[Any]]:
    """Returns what finds the values of a source in a document.

    Args:
        source: the steps.

    Returns:
        A function of (document, how many values at most).

    Raises:
        InvalidInput: it has no step, too many, or an expression that is not allowed.
    """
    if not 1 <= len(source) <= MAXIMUM_STEPS:
        raise InvalidInput(f"A source has 1 to {MAXIMUM_STEPS} steps.", field="source")
    steps = [_step(part) for part in source]
    if all(isinstance(part, str) and part and not _EXPRESSION.fullmatch(part) for part in source):
        keys = tuple(str(part) for part in source)
        return lambda document, _: _by_keys(document, keys)

    def find(document: Any, most: int) -> list[Any]:
        return list(islice(_walk(document, steps, 0), most))

    return find


def _by_keys(document: Any, keys: tuple[str, ...]) -> list[Any]:
    """The commonest source, which has one value or none."""
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return []
        document = document[key]
    return [document]


def _walk(value: Any, steps: list[_Step], at: int) -> Iterator[Any]:
    if at == len(steps):
        yield value
        return
    for found in steps[at](value):
        yield from _walk(found, steps, at + 1)


def _step(part: str | int) -> _Step:
    if isinstance(part, bool) or not isinstance(part, str | int):
        raise InvalidInput("A step of a source is a string or an integer.", field="source")
    if isinstance(part, int):
        if abs(part) > MAXIMUM_POSITION:
            raise InvalidInput(
                f"A position in a source is between -{MAXIMUM_POSITION} and {MAXIMUM_POSITION}.",
                field="source",
            )
        return lambda value: value[part : part + 1 or None] if isinstance(value, list) else ()
    if part == "":
        return _everything
    expression = _EXPRESSION.fullmatch(part)
    if expression is None:
        return lambda value: (value[part],) if isinstance(value, dict) and part in value else ()
    pattern = _pattern(expression[1], expression[2])
    return lambda value: _matching(value, pattern)


def _everything(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def _matching(value: Any, pattern: re.Pattern[str]) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str) and pattern.search(key[:_MAXIMUM_KEY]):
                yield item


def _pattern(text: str, flags: str) -> re.Pattern[str]:
    if len(text) > MAXIMUM_EXPRESSION:
        raise InvalidInput(
            f"An expression in a source may have {MAXIMUM_EXPRESSION} characters.", field="source"
        )
    if _EXTENSION.search(text) or _REPEATED_GROUP.search(text):
        raise InvalidInput(
            f"The expression /{text}/ may not repeat groups, refer back or look around.", field="source"
        )
    for signs, most in _MOST:
        if sum(text.count(sign) for sign in signs) > most:
            raise InvalidInput(
                f"The expression /{text}/ may have {most} of {' '.join(signs)} at most.", field="source"
            )
    try:
        return re.compile(text, re.IGNORECASE if flags else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidInput(f"The expression /{text}/ is not valid: {error}.", field="source") from None
