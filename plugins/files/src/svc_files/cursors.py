"""Cursors of listings: the last name or path of a page, as an opaque text.

A cursor names a place in an order, not a row: pages go on from it although the row it came from may be
gone, and never repeat or skip a row that did not change.
"""

from __future__ import annotations

import base64
import binascii

from svc.errors import InvalidInput
from svc.paths import Path

__all__ = ["decode_cursor", "encode_cursor"]

_VERSION = "1"


def encode_cursor(place: Path) -> str:
    """Returns the cursor of a place: segments below the listed directory."""
    text = "/".join((_VERSION, *place))
    return base64.urlsafe_b64encode(text.encode("utf-8")).rstrip(b"=").decode("ascii")


def decode_cursor(cursor: str) -> Path:
    """Returns the place of a cursor.

    Raises:
        InvalidInput: no listing gave this cursor.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        version, *place = base64.b64decode(padded, altchars=b"-_", validate=True).decode("utf-8").split("/")
    except (ValueError, binascii.Error):
        version, place = "", []
    if version != _VERSION or not all(place):
        raise InvalidInput("The cursor is not one that a listing gave.", field="after")
    return tuple(place)
