"""A document on its way between processes: JSON, and never more than so much of it.

Whoever reads a document trusts nobody: it counts values and levels in the encoded bytes, before anything is
made of them. Counting runs at the speed of ``bytes.count``; only where texts are full of commas and brackets
are they cut out first.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from itertools import accumulate, takewhile
from typing import Any, NamedTuple, TypeVar

import msgspec

__all__ = [
    "MAXIMUM_DEPTH",
    "MAXIMUM_DOCUMENT_VALUES",
    "Encoded",
    "TooLarge",
    "decode_document",
    "encode_document",
    "encode_in_part",
]

MAXIMUM_DEPTH = 100
"""Levels of lists and dictionaries in a document."""

MAXIMUM_DOCUMENT_VALUES = 500_000
"""Values of a document, lists and dictionaries among them."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ENCODER = msgspec.json.Encoder(decimal_format="number")
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


T = TypeVar("T")


class TooLarge(ValueError):
    """A document is larger, deeper or has more values than one may have."""


class TooManyValues(TooLarge):
    """A document has more values than one may have."""


def encode_document(document: Any, maximum: int) -> bytes:
    """Returns what a parser gave, as JSON within the limits.

    Dates, times and durations become ISO 8601, bytes base64, sets and tuples lists, keys strings; a number
    that is not finite becomes null, half of a surrogate pair a question mark.

    Raises TooLarge, TypeError for values that JSON does not have, and RecursionError for what contains
    itself.
    """
    try:
        encoded = _ENCODER.encode(document)
    except (TypeError, ValueError, OverflowError):
        # What JSON has no form for is rare, and worth the slow way.
        encoded = _ENCODER.encode(_Plain().value(document, 0))
    _check(encoded, maximum)
    return encoded


class Encoded(NamedTuple):
    """What a parser gave, by ``encode_document``; why that is not all; what encoding it guessed."""

    document: bytes
    part: str
    guess: str


def encode_in_part(document: Any, maximum: int) -> Encoded:
    """Returns what a parser gave. Of more values than a document may have the first are taken."""
    from svc_query.parsers import Guessed, InPart

    part = guess = ""
    while isinstance(document, (InPart, Guessed)):
        if isinstance(document, InPart):
            document, part = document.document, f"{document.reason} {part}".strip()
        else:
            document, guess = document.document, document.encoding
    try:
        return Encoded(encode_document(document, maximum), part, guess)
    except TooManyValues as error:
        cut = _Plain(cuts=True).value(document, 0)
        return Encoded(encode_document(cut, maximum), f"{part} {error}: the rest is left out".strip(), guess)


def decode_document(encoded: bytes, maximum: int) -> Any:
    """Returns the document of encoded bytes, which may come from a child that somebody has taken over.

    Raises TooLarge for more than a document may be, and ValueError for what is not JSON.
    """
    _check(encoded, maximum)
    return decode_checked(encoded)


def decode_checked(encoded: bytes) -> Any:
    """Returns the document of bytes that ``encode_document`` has just given."""
    try:
        return _DECODER.decode(encoded)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def _check(encoded: bytes, maximum: int) -> None:
    if len(encoded) > maximum:
        raise TooLarge(f"What is in it takes more than {maximum:,} bytes")
    if _openings(encoded) <= MAXIMUM_DEPTH and _values(encoded) <= MAXIMUM_DOCUMENT_VALUES:
        return
    bare = _STRING.sub(b"", encoded)
    if _values(bare) > MAXIMUM_DOCUMENT_VALUES:
        raise TooManyValues(f"It has more than {MAXIMUM_DOCUMENT_VALUES:,} values")
    steps = map(_STEPS.__getitem__, bare.translate(None, _NOT_BRACKETS))
    if max(accumulate(steps), default=0) > MAXIMUM_DEPTH:
        raise TooLarge(f"It nests more than {MAXIMUM_DEPTH} levels deep")


def _openings(encoded: bytes) -> int:
    return encoded.count(b"[") + encoded.count(b"{")


def _values(encoded: bytes) -> int:
    return 1 + encoded.count(b",") + _openings(encoded)


class _Plain:
    """Copies a document into values that JSON has; with ``cuts`` no more than a document may have."""

    def __init__(self, *, cuts: bool = False) -> None:
        self._left = MAXIMUM_DOCUMENT_VALUES
        self._cuts = cuts

    def value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 and not self._cuts:
            raise TooManyValues(f"It has more than {MAXIMUM_DOCUMENT_VALUES:,} values")
        if depth > MAXIMUM_DEPTH:
            raise TooLarge(f"It nests more than {MAXIMUM_DEPTH} levels deep")
        if isinstance(value, Mapping):
            return {_key(key): self.value(item, depth + 1) for key, item in self._taken(value.items())}
        if isinstance(value, (list, tuple, AbstractSet)):
            return [self.value(item, depth + 1) for item in self._taken(value)]
        return _plain_leaf(value)

    def _taken(self, items: Iterable[T]) -> Iterator[T]:
        return takewhile(lambda _: self._left > 0 or not self._cuts, items)


def _plain_leaf(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(str(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 64 else _large(int(value))
    if isinstance(value, (float, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dt.timedelta):
        return msgspec.to_builtins(value)
    raise TypeError(f"it gave a value of the type {type(value).__name__}, which JSON does not have")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _encodable(str(key))
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, (int, float, dt.date, dt.time)):
        return str(key)
    if isinstance(key, bytes):
        return base64.b64encode(key).decode("ascii")
    raise TypeError(f"it gave a key of the type {type(key).__name__}, which JSON does not have")


def _large(value: int) -> Any:
    """An integer beyond 64 bits: its digits, as far as they are a number that anybody means."""
    if value.bit_length() > 1024:
        raise TypeError("it gave an integer of more than 300 digits")
    return msgspec.Raw(str(value).encode("ascii"))


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
