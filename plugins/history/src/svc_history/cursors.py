"""Cursors of pages: the last row of a page, as an opaque text; new commits come in front of it."""

from __future__ import annotations

import base64
import binascii

from svc.errors import InvalidInput

__all__ = ["decode_cursor", "encode_cursor", "number_of"]

_VERSION = "1"
_SEPARATOR = "\x1f"


def encode_cursor(kind: str, *parts: str) -> str:
    """Returns the cursor of a place in an order of some kind."""
    text = _SEPARATOR.join((_VERSION, kind, *parts))
    return base64.urlsafe_b64encode(text.encode("utf-8")).rstrip(b"=").decode("ascii")


def decode_cursor(cursor: str, *kinds: tuple[str, int]) -> tuple[str, ...]:
    """Returns kind and parts of a cursor."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("utf-8")
    except (ValueError, binascii.Error):
        text = ""
    version, *rest = text.split(_SEPARATOR)
    if version != _VERSION or not rest or (rest[0], len(rest) - 1) not in kinds:
        raise InvalidInput("The cursor is not one that a page of this kind gave.", field="after")
    return tuple(rest)


def number_of(part: str) -> int:
    """Returns the number that a part of a cursor is."""
    if not (part.isascii() and part.isdigit()) or len(part) > 19 or int(part) >= 1 << 63:
        raise InvalidInput("The cursor is not one that a page of this kind gave.", field="after")
    return int(part)
