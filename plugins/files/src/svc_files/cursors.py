"""Cursors of listings: the place where a page ended, as an opaque text.

A cursor names a place in an order, not a row: pages go on from it although the row it came from may be gone,
and never repeat or skip a row that did not change.

A page may end where nothing is shown to its caller. The cursor of one who does not see everything is
therefore sealed: it tells nothing of the place, and works in every copy of the database.
"""

from __future__ import annotations

import base64
import binascii

from svc.errors import InvalidInput
from svc.plugin import Path, seal, unseal

__all__ = ["Cursors"]

_VERSION = "1"
_PURPOSE = "files"


class Cursors:
    """Makes and reads the cursors of one caller, ``sealed`` where they may tell nothing of their place.

    The id of the database is random, and only root is told it, so that it serves as a secret.
    """

    def __init__(self, database_id: bytes, *, sealed: bool) -> None:
        self._id = database_id
        self._sealed = sealed

    def encode(self, place: Path, skip: int = 0) -> str:
        """Returns the cursor of a place: segments below the listed directory."""
        text = _text_of(place, skip)
        if not self._sealed:
            return _printable(text)
        return _printable(b"\0" + seal(self._id, text, _PURPOSE))

    def decode(self, cursor: str) -> tuple[Path, int]:
        """Returns the place of a cursor, and how many rows are still to be left out."""
        data = _bytes_of(cursor)
        if data[:1] != b"\0":
            return _parsed(data)
        text = unseal(self._id, data[1:], _PURPOSE)
        if text is None:
            raise _foreign()
        return _parsed(text)


def _text_of(place: Path, skip: int) -> bytes:
    return "/".join((f"{_VERSION}+{skip}" if skip else _VERSION, *place)).encode("utf-8")


def _parsed(data: bytes) -> tuple[Path, int]:
    try:
        head, *place = data.decode("utf-8").split("/")
    except ValueError:
        raise _foreign() from None
    version, plus, skip = head.partition("+")
    well_formed = skip.isascii() and skip.isdigit() and len(skip) <= 18 if plus else True
    if version != _VERSION or not well_formed or not all(place):
        raise _foreign()
    return tuple(place), int(skip or 0)


def _printable(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes_of(cursor: str) -> bytes:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _foreign() from None


def _foreign() -> InvalidInput:
    return InvalidInput("The cursor is not one that a listing gave.", field="after")
