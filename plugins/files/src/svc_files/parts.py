"""Parts of a content by lines or characters, read piece by piece under a budget."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from svc.errors import InvalidInput, PayloadTooLarge
from svc.plugin import pause

__all__ = ["Budget", "select_characters", "select_lines"]


class Budget:
    """How much one request may still answer with, and still read to find it."""

    def __init__(self, content: int, scanned: int) -> None:
        self._limit = self._content = content
        self._scan_limit = self._scanned = scanned

    @property
    def left(self) -> int:
        """How many more bytes of content there may be."""
        return self._content

    def exceeded(self) -> PayloadTooLarge:
        """Returns the error where there would be more."""
        return PayloadTooLarge(
            f"The answer would hold over {self._limit} bytes of content.", limit=self._limit
        )

    def expect(self, size: int) -> None:
        """Raises PayloadTooLarge when this many more bytes of content would be too many."""
        if size > self._content:
            raise self.exceeded()

    def take(self, size: int) -> None:
        """Counts bytes of content; raises PayloadTooLarge when they are too many."""
        self.expect(size)
        self._content -= size

    def scan(self, size: int) -> None:
        """Counts bytes that are read; raises PayloadTooLarge when they are too many."""
        if size > self._scanned:
            raise PayloadTooLarge(
                f"Finding these parts would take reading over {self._scan_limit} bytes.",
                limit=self._scan_limit,
            )
        self._scanned -= size


def select_lines(pieces: Iterable[bytes], first: int, last: int | None, budget: Budget) -> tuple[bytes, int]:
    """Returns lines with their ends, and the number of the last one; ``first - 1`` when there is none.

    Lines count from 1 and end with a line feed; a last one without it counts. ``last`` is included; None
    means to the end. The budget counts what is read and returned.
    """
    selected: list[bytes] = []
    complete = 0
    for piece in pieces:
        pause()
        budget.scan(len(piece))
        position = 0
        while complete < first - 1:
            remaining = first - 1 - complete
            found = piece.count(b"\n", position)
            if found < remaining:
                complete += found
                position = len(piece)
                break
            position = _behind_line_feeds(piece, position, remaining)
            complete += remaining
        end = len(piece)
        if last is not None and complete >= first - 1:
            remaining = last - complete
            found = piece.count(b"\n", position)
            if found >= remaining:
                end = _behind_line_feeds(piece, position, remaining)
        taken = piece[position:end]
        if taken:
            budget.take(len(taken))
            selected.append(taken)
            complete += taken.count(b"\n")
        if last is not None and complete >= last:
            break
    content = b"".join(selected)
    lines = content.count(b"\n") + (1 if content and not content.endswith(b"\n") else 0)
    return content, first - 1 + lines


def select_characters(pieces: Iterable[bytes], start: int, end: int | None, budget: Budget) -> str:
    """Returns characters of a UTF-8 text, ``start`` (from 0) to before ``end``; None means to the end.

    Raises InvalidInput where the content, as far as it is read, is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    selected: list[str] = []
    position = 0
    try:
        for piece in pieces:
            pause()
            budget.scan(len(piece))
            position = _take_characters(decoder.decode(piece), position, start, end, selected, budget)
            if end is not None and position >= end:
                break
        else:
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise InvalidInput("The file is not text in UTF-8.") from None
    return "".join(selected)


def _take_characters(
    text: str, position: int, start: int, end: int | None, selected: list[str], budget: Budget
) -> int:
    low = max(0, start - position)
    high = len(text) if end is None else max(0, min(len(text), end - position))
    if low < high:
        taken = text[low:high]
        budget.take(len(taken.encode("utf-8")))
        selected.append(taken)
    return position + len(text)


def _behind_line_feeds(piece: bytes, position: int, count: int) -> int:
    """The position behind the ``count``-th line feed from ``position`` on; there are that many."""
    for _ in range(count):
        position = piece.index(b"\n", position) + 1
    return position
