"""Byte ranges (RFC 9110, section 14): ``a-b``, ``a-``, ``-n``, and lists of them.

Ranges that overlap or touch are joined; if several are left, they are sent as ``multipart/byteranges``. A
field that is malformed, of another unit or over ``MAXIMUM_RANGES`` is ignored, as the RFC allows (200).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import falcon

from svc.errors import RangeNotSatisfiable
from svc.pipeline.conditions import if_range_holds

__all__ = ["MAXIMUM_RANGES", "ByteRange", "MultipartRanges", "parse_range", "select_range"]

MAXIMUM_RANGES = 16

_FIELD = re.compile(r"bytes[ \t]*=(.*)", re.IGNORECASE | re.DOTALL)
_SPEC = re.compile(r"[ \t]*(\d*)[ \t]*-[ \t]*(\d*)[ \t]*", re.ASCII)
_HUGE = 10**18


class ByteRange(NamedTuple):
    """Bytes ``start`` to ``start + length - 1`` of a content."""

    start: int
    length: int

    def content_range(self, size: int) -> str:
        """The ``Content-Range`` value of this piece of a content of ``size`` bytes."""
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"


def select_range(
    req: falcon.Request, size: int, etag: str | None, updated_ms: int | None
) -> tuple[ByteRange, ...] | None:
    """Returns the pieces of a content that a GET asks for, or None for the whole; HEAD has no ranges.

    Raises RangeNotSatisfiable where no byte of what is asked for exists (416 with ``Content-Range``).
    """
    value = req.env.get("HTTP_RANGE")
    if value is None or req.method != "GET" or not if_range_holds(req, etag, updated_ms):
        return None
    return parse_range(value, size)


def parse_range(value: str, size: int) -> tuple[ByteRange, ...] | None:
    """Returns the ranges that a ``Range`` field names; None for the whole.

    They come joined where they overlap or touch, in ascending order unless they are apart.
    """
    field = _FIELD.fullmatch(value.strip())
    if field is None:
        return None
    specs = [spec for spec in field.group(1).split(",") if spec.strip(" \t")]
    if not specs or len(specs) > MAXIMUM_RANGES:
        return None
    ranges: list[ByteRange] = []
    for spec in specs:
        match = _SPEC.fullmatch(spec)
        if match is None or not (match.group(1) or match.group(2)):
            return None
        first, last = match.groups()
        if first and last and _number(last) < _number(first):
            return None
        selected = _select(first, last, size)
        if selected is not None:
            ranges.append(selected)
    if not ranges:
        raise RangeNotSatisfiable(f"The content has {size} bytes; none of them is in the range.", size=size)
    return _joined(ranges)


def _select(first: str, last: str, size: int) -> ByteRange | None:
    if not first:
        length = min(_number(last), size)
        return ByteRange(size - length, length) if length else None
    start = _number(first)
    if start >= size:
        return None
    end = min(_number(last), size - 1) if last else size - 1
    return ByteRange(start, end - start + 1)


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= 18 else _HUGE


def _joined(ranges: list[ByteRange]) -> tuple[ByteRange, ...]:
    if len(ranges) == 1:
        return tuple(ranges)
    joined: list[ByteRange] = []
    for piece in sorted(ranges):
        if joined and piece.start <= joined[-1].start + joined[-1].length:
            start = joined[-1].start
            end = max(start + joined[-1].length, piece.start + piece.length)
            joined[-1] = ByteRange(start, end - start)
        else:
            joined.append(piece)
    # Apart from each other, ranges keep the order in which they were asked for (RFC 9110, 15.3.7.2).
    return tuple(ranges) if len(joined) == len(ranges) else tuple(joined)


class MultipartRanges:
    """A ``multipart/byteranges`` body: its media type, its exact length, its bytes piece by piece."""

    def __init__(self, ranges: tuple[ByteRange, ...], size: int, content_type: str) -> None:
        self._boundary = os.urandom(16).hex()
        self._parts = [(piece, self._part_head(piece, size, content_type)) for piece in ranges]
        self._end = f"\r\n--{self._boundary}--\r\n".encode("ascii")

    @property
    def media_type(self) -> str:
        """The value of ``Content-Type``."""
        return f"multipart/byteranges; boundary={self._boundary}"

    @property
    def length(self) -> int:
        """The value of ``Content-Length``."""
        return sum(len(head) + piece.length for piece, head in self._parts) + len(self._end)

    def pieces(self, read: Callable[[int, int], Iterable[bytes]]) -> Iterator[bytes]:
        """Yields the body; ``read(start, length)`` gives the bytes of a part."""
        for piece, head in self._parts:
            yield head
            yield from read(piece.start, piece.length)
        yield self._end

    def _part_head(self, piece: ByteRange, size: int, content_type: str) -> bytes:
        lines = (
            f"\r\n--{self._boundary}",
            f"Content-Type: {content_type}",
            f"Content-Range: {piece.content_range(size)}",
            "",
            "",
        )
        return "\r\n".join(lines).encode("latin-1", "replace")
