"""Lists that come in pages, and arrays that are read while they come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from svc_client.models import Page

__all__ = ["ArrayReader", "all_items"]

T = TypeVar("T")

_BLANKS = re.compile(r"[\s,]*")


def all_items(page_of: Callable[[str | None], Page[T]]) -> Iterator[T]:
    """Yields the items of all pages; a page is asked for when the one before it has been used up."""
    after: str | None = None
    while True:
        page = page_of(after)
        yield from page.items
        after = page.next_cursor
        if after is None:
            return


class ArrayReader:
    """Reads ``{"<head>": [...], <members>}`` while it comes, so that memory holds one item at a time.

    ``members`` are complete when the items have been read to their end.
    """

    def __init__(self, pieces: Iterable[bytes], head: str) -> None:
        self._pieces = iter(pieces)
        self._head = head
        self._text = ""
        self._rest = b""
        self._decode = msgspec.json.Decoder().decode
        self._scan = json.JSONDecoder().raw_decode
        self.members: dict[str, Any] = {}

    def items(self) -> Iterator[Any]:
        """Yields the items of the array; ValueError where the document is not of this form, or ends early."""
        start = json.dumps({self._head: []}, separators=(",", ":"))[:-2]
        self._fill(len(start))
        if not self._text.startswith(start):
            raise ValueError("another document")
        place = len(start)
        while True:
            place = self._skip(place)
            if self._text.startswith("]", place):
                break
            item, place = self._item(place)
            yield item
        while self._more():
            pass
        if self._rest:
            raise ValueError("the document is not UTF-8")
        self.members = self._decode("{" + self._text[place + 1 :].lstrip(", \n"))

    def _item(self, place: int) -> tuple[Any, int]:
        while True:
            try:
                # Items are objects, which end themselves; a number could go on in the next piece.
                return self._scan(self._text, place)
            except json.JSONDecodeError:
                self._text = self._text[place:]
                place = 0
                if not self._more():
                    raise

    def _skip(self, place: int) -> int:
        while True:
            match = _BLANKS.match(self._text, place)
            assert match is not None
            place = match.end()
            if place < len(self._text):
                return place
            self._text = ""
            place = 0
            if not self._more():
                raise ValueError("the document ends early")

    def _fill(self, size: int) -> None:
        while len(self._text) < size and self._more():
            pass

    def _more(self) -> bool:
        piece = next(self._pieces, None)
        if piece is None:
            return False
        text, self._rest = _whole_characters(self._rest + piece)
        self._text += text
        return True


def _whole_characters(content: bytes) -> tuple[str, bytes]:
    """The text of as many whole UTF-8 characters as there are, and the bytes that begin another."""
    for cut in range(min(4, len(content) + 1)):
        try:
            end = len(content) - cut
            return content[:end].decode(), content[end:]
        except UnicodeDecodeError:
            continue
    raise ValueError("the document is not UTF-8")
