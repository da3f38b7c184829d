"""The tokens of a filter's text."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, NamedTuple

from svc.errors import InvalidInput
from svc.plugin import parse_time
from svc_query.syntax.errors import FilterSyntaxError

__all__ = ["MAXIMUM_LENGTH", "Kind", "Token", "is_word", "tokens_of"]

MAXIMUM_LENGTH = 65_536
"""Characters of a filter's text."""


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    NUMBER = "number"
    TIME = "time"
    SIGN = "sign"
    END = "end"


class Token(NamedTuple):
    """One token, and where it begins and ends.

    ``text`` is as it stands there, ``value`` a string without its quotes, a number, Unix milliseconds of a
    time.
    """

    kind: Kind
    text: str
    value: Any
    start: int
    end: int

    @property
    def shown(self) -> str:
        """How a message names it."""
        if self.kind is Kind.END:
            return "the end"
        return repr(self.text) if len(self.text) <= 40 else repr(self.text[:37] + "...")


_BLANKS = re.compile(r"\s*")
_WORD = re.compile(r"[@$\w][\w@$./-]*", re.UNICODE)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?(?![\w.:-])", re.ASCII
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(KiB|MiB|GiB|TiB|KB|MB|GB|TB)?", re.ASCII)
_SIGNS = re.compile(r"==|!=|<>|<=|>=|\^=|!~|[=<>~()\[\]{},:*]")
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "`": "`",
    "/": "/",
}
_UNITS = {
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)},
}
_KINDS_OF_QUOTES = {'"': Kind.STRING, "'": Kind.STRING, "`": Kind.NAME}
_CURLY_QUOTES = "\u201c\u201d\u201e\u2018\u2019"
_MAXIMUM_DIGITS = 400


def is_word(text: str) -> bool:
    """Whether a text can stand for itself as a word."""
    return _WORD.fullmatch(text) is not None and not text[0].isdecimal()


def tokens_of(text: str) -> list[Token]:
    """Returns the tokens of a text; the last one is its end."""
    if len(text) > MAXIMUM_LENGTH:
        raise FilterSyntaxError(
            f"A filter may have {MAXIMUM_LENGTH:,} characters; this one has {len(text):,}.",
            text,
            MAXIMUM_LENGTH,
        )
    found: list[Token] = []
    place = _skip(text, 0)
    while place < len(text):
        token = _token_at(text, place)
        found.append(token)
        place = _skip(text, token.end)
    found.append(Token(Kind.END, "", None, len(text), len(text)))
    return found


def _skip(text: str, place: int) -> int:
    match = _BLANKS.match(text, place)
    assert match is not None, "it matches nothing too"
    return match.end()


def _token_at(text: str, place: int) -> Token:
    first = text[place]
    if first in _KINDS_OF_QUOTES:
        return _quoted(text, place, _KINDS_OF_QUOTES[first])
    if (first.isascii() and first.isdigit()) or (first in "+-" and text[place + 1 : place + 2].isdigit()):
        return _number(text, place)
    word = _WORD.match(text, place)
    if word is not None and not first.isdecimal():
        return Token(Kind.WORD, word[0], None, place, word.end())
    sign = _SIGNS.match(text, place)
    if sign is not None:
        return Token(Kind.SIGN, sign[0], None, place, sign.end())
    if first == "!":
        raise FilterSyntaxError("'!' is no operator: write 'not', '!=' or '!~'.", text, place)
    if first in "&|":
        word_for = "and" if first == "&" else "or"
        raise FilterSyntaxError(f"{first!r} is no operator: write '{word_for}'.", text, place)
    if first in _CURLY_QUOTES:
        raise FilterSyntaxError("Strings stand in straight quotes: \"...\" or '...'.", text, place)
    raise FilterSyntaxError(f"{first!r} has no meaning here.", text, place)


def _number(text: str, place: int) -> Token:
    time = _TIME.match(text, place)
    if time is not None:
        try:
            return Token(Kind.TIME, time[0], parse_time(time[0].upper()), place, time.end())
        except InvalidInput:
            raise FilterSyntaxError(f"There is no such time as {time[0]}.", text, place) from None
    match = _NUMBER.match(text, place)
    if match is None:
        raise FilterSyntaxError("A number is written in the digits 0 to 9.", text, place)
    following = text[match.end() : match.end() + 1]
    if following.isalnum() or following in ("_", ".", "@"):
        raise FilterSyntaxError(
            f"A number ends before {following!r}; a string stands in quotes, a time is 2026-03-01 or "
            "2026-03-01T12:00:00Z.",
            text,
            match.end(),
        )
    if len(match[0]) > _MAXIMUM_DIGITS:
        raise FilterSyntaxError(f"A number may have {_MAXIMUM_DIGITS} characters.", text, place)
    return Token(Kind.NUMBER, match[0], _number_value(match, text, place), place, match.end())


def _number_value(match: re.Match[str], text: str, place: int) -> int | float:
    unit = match[1]
    digits = match[0].removesuffix(unit or "")
    factor = _UNITS[unit] if unit else 1
    if not any(mark in digits for mark in ".eE"):
        return int(digits) * factor
    number = float(digits) * factor
    if number in (float("inf"), float("-inf")):
        raise FilterSyntaxError("This number is too large.", text, place)
    return round(number) if unit else number


def _quoted(text: str, start: int, kind: Kind) -> Token:
    quote = text[start]
    pieces: list[str] = []
    place = start + 1
    while place < len(text):
        one = text[place]
        if one == quote:
            whole = "".join(pieces)
            return Token(
                kind, text[start : place + 1], _whole_characters(whole, text, start), start, place + 1
            )
        if one == "\\":
            piece, place = _escape(text, place)
            pieces.append(piece)
        else:
            pieces.append(one)
            place += 1
    raise FilterSyntaxError(f"The {kind.value} that begins here has no closing {quote}.", text, start)


def _escape(text: str, place: int) -> tuple[str, int]:
    letter = text[place + 1 : place + 2]
    if letter in _ESCAPES:
        return _ESCAPES[letter], place + 2
    if letter == "u":
        digits = text[place + 2 : place + 6]
        if re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
            return chr(int(digits, 16)), place + 6
        raise FilterSyntaxError("\\u takes four hexadecimal digits, as in \\u00e4.", text, place)
    raise FilterSyntaxError(
        "Escapes are \\\\ \\\" \\' \\` \\/ \\n \\t \\r \\b \\f and \\u00e4; a backslash is written \\\\.",
        text,
        place,
    )


def _whole_characters(value: str, text: str, start: int) -> str:
    """A string with surrogate pairs put together, as JSON does."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise FilterSyntaxError("This string has half of a surrogate pair.", text, start) from None
