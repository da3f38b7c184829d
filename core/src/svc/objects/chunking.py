"""Cuts a stream into content-defined chunks, so that an insertion moves no boundary far from it.

FastCDC (Xia et al., USENIX ATC 2016, with normalized chunking) through pyfastcdc. Contents of up to
64 KiB stay whole. The parameters are part of the format: the same bytes give the same chunks on every
machine, and so the same hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyfastcdc
from pyfastcdc import FastCDC

from svc.errors import InternalError

__all__ = [
    "AVERAGE_CHUNK",
    "MAXIMUM_CHUNK",
    "MINIMUM_CHUNK",
    "WHOLE_LIMIT",
    "Chunker",
    "Readable",
]

MINIMUM_CHUNK = 16 * 1024
AVERAGE_CHUNK = 64 * 1024
MAXIMUM_CHUNK = 256 * 1024
WHOLE_LIMIT = 64 * 1024
"""Contents of at most this many bytes are one chunk."""

_WINDOW = 1024 * 1024


class Readable(Protocol):
    """Anything that gives bytes piece by piece."""

    def read(self, size: int = ..., /) -> bytes:
        """Returns at most ``size`` bytes; empty at the end."""
        ...


class Chunker:
    """Takes a stream piece by piece and gives its chunks; holds at most about 1.3 MiB."""

    def __init__(self) -> None:
        _require_native_implementation()
        self._cdc = FastCDC(
            avg_size=AVERAGE_CHUNK,
            min_size=MINIMUM_CHUNK,
            max_size=MAXIMUM_CHUNK,
            normalized_chunking=1,
            seed=0,
        )
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yields the chunks that are certain after this piece.

        A boundary is certain once a maximum chunk's worth of bytes lies behind its start.
        """
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size >= _WINDOW:
            yield from self._cut(self._size - MAXIMUM_CHUNK)

    def finish(self) -> Iterator[bytes]:
        """Yields the last chunks."""
        yield from self._cut(self._size)

    def _cut(self, certain: int) -> Iterator[bytes]:
        window = b"".join(self._pieces)
        used = 0
        for chunk in self._cdc.cut_buf(window):
            if used >= certain:
                break
            yield window[chunk.offset : chunk.offset + chunk.length]
            used = chunk.offset + chunk.length
        self._pieces = [window[used:]]
        self._size = len(window) - used


def _require_native_implementation() -> None:
    """Pyfastcdc falls back to Python, a hundred times slower, without a word; say it instead."""
    if not FastCDC.__module__.startswith(f"{pyfastcdc.__name__}.cy"):
        raise InternalError("The compiled part of pyfastcdc is missing: reinstall it from a wheel.")
