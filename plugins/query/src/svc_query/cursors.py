"""Cursors: the place of a row in the order of a query, and the commit that the page was made at.

A page may end where its caller may see nothing, so a cursor is sealed: it tells nothing of the place. It
works in every copy of the database.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence

import msgspec
from blake3 import blake3

from svc.errors import InvalidInput
from svc.plugin import Path, seal, unseal
from svc_query.api import Value
from svc_query.ordering import COMPARED_CHARACTERS, Key, Order

__all__ = ["Cursors", "Place"]

_VERSION = 1
_MOST_BYTES = 1 << 16
_PURPOSE = "query"


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A place in an order, at the commit ``sequence``; ``version`` is of the layout.

    ``deciding`` has for each field of the order the kind of its value, and the value as a text.
    """

    version: int
    order: str
    sequence: int
    deciding: list[tuple[str, str]]
    score: float
    path: tuple[str, ...]


class Cursors:
    """Makes and reads the cursors of one order.

    The id of the database is random, and only root is told it, so that it serves as a secret.
    """

    def __init__(self, database_id: bytes, order: Order) -> None:
        self._id = database_id
        self._order = order

    def encode(self, deciding: Sequence[tuple[bool, Value]], score: float, path: Path, sequence: int) -> str:
        """Returns the cursor of a row or of a place without one."""
        name = _digest(self._order.name)
        text = _ENCODER.encode(
            Place(_VERSION, name, sequence, [_spelled(*one) for one in deciding], score, path)
        )
        sealed = seal(self._id, text, _PURPOSE)
        return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii")

    def decode(self, cursor: str, field: str) -> Key:
        """Returns the key of a cursor's place."""
        place = self._opened(cursor)
        if place is None:
            raise InvalidInput("The cursor is not one that a query gave.", field=field)
        if place.order != _digest(self._order.name) or len(place.deciding) != len(self._order.fields):
            raise InvalidInput("The cursor is of a query in another order.", field=field)
        try:
            deciding = [_read(*one) for one in place.deciding]
        except (ValueError, KeyError):
            raise InvalidInput("The cursor is not one that a query gave.", field=field) from None
        return self._order.key(deciding, place.score, place.path)

    def _opened(self, cursor: str) -> Place | None:
        if len(cursor) > _MOST_BYTES:
            return None
        try:
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            data = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        text = unseal(self._id, data, _PURPOSE)
        if not text:
            return None
        try:
            place = _DECODER.decode(text)
        except msgspec.DecodeError:
            return None
        return place if place.version == _VERSION else None


def _spelled(missing: bool, value: Value) -> tuple[str, str]:
    """A value as texts: JSON has neither all integers nor all floats."""
    if missing:
        return "missing", ""
    if value is None:
        return "null", ""
    if isinstance(value, bool):
        return "boolean", "1" if value else "0"
    if isinstance(value, int):
        return "integer", hex(value)
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, str):
        return "string", value[:COMPARED_CHARACTERS]
    return "array", " ".join(float(one).hex() for one in value)


def _read(kind: str, text: str) -> tuple[bool, Value]:
    return kind == "missing", _READERS[kind](text)


_READERS: dict[str, Callable[[str], Value]] = {
    "missing": lambda _: None,
    "null": lambda _: None,
    "boolean": lambda text: text == "1",
    "integer": lambda text: int(text, 16),
    "float": float.fromhex,
    "string": lambda text: text,
    "array": lambda text: tuple(float.fromhex(one) for one in text.split()),
}


def _digest(name: str) -> str:
    return blake3(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Place)
