"""Cuts a stream into content-defined chunks, so that an insertion moves no boundary far from it.

FastCDC (Xia et al., USENIX ATC 2016, with normalized chunking) through pyfastcdc; up to 64 KiB stay whole.
The parameters are part of the format: the same bytes give the same chunks, and so hashes, everywhere.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Protocol

import pyfastcdc
from pyfastcdc import FastCDC

from svc.errors import InternalError
from svc.hashing import Hash, ObjectKind, hash_object
from svc.objects.expected_chunks import ExpectedChunks

__all__ = [
    "AVERAGE_CHUNK",
    "MAXIMUM_CHUNK",
    "MINIMUM_CHUNK",
    "WHOLE_LIMIT",
    "Chunker",
    "Readable",
    "Window",
]

MINIMUM_CHUNK = 16 * 1024
AVERAGE_CHUNK = 64 * 1024
MAXIMUM_CHUNK = 256 * 1024
WHOLE_LIMIT = 64 * 1024
"""Contents of at most this many bytes are one chunk."""

_WINDOW = 1024 * 1024
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class Readable(Protocol):
    """Anything that gives bytes piece by piece."""

    def read(self, size: int = ..., /) -> bytes:
        """Returns at most ``size`` bytes; empty at the end."""
        ...


class Window:
    """Up to 1 MiB of a stream, with room in front for what the window before it left over."""

    __slots__ = ("_view", "size")

    def __init__(self) -> None:
        # Pages that nothing was written to take no memory: an upload that stops early costs what it sent.
        self._view = memoryview(mmap.mmap(-1, MAXIMUM_CHUNK + _WINDOW, flags=_PRIVATE))
        self.size = 0

    @property
    def room(self) -> memoryview:
        """Where the next bytes go; of no length when it is full. Who fills it adds to ``size``."""
        return self._view[MAXIMUM_CHUNK + self.size :]

    def behind(self, rest: bytes) -> memoryview:
        """Returns what is in it, with the rest of the window before it in front."""
        begin = MAXIMUM_CHUNK - len(rest)
        self._view[begin:MAXIMUM_CHUNK] = rest
        return self._view[begin : MAXIMUM_CHUNK + self.size]


class Chunker:
    """Cuts a stream window by window, holding at most 256 KiB; ``expected`` chunks need not be cut."""

    def __init__(self, *, system: bool = False, expected: ExpectedChunks | None = None) -> None:
        self._system = system
        self._expected = expected
        _require_native_implementation()
        self._cdc = FastCDC(
            avg_size=AVERAGE_CHUNK,
            min_size=MINIMUM_CHUNK,
            max_size=MAXIMUM_CHUNK,
            normalized_chunking=1,
            seed=0,
        )
        self._rest = b""

    def cut(self, window: Window, *, is_last: bool = False) -> Iterator[tuple[Hash, memoryview]]:
        """Yields the chunks that are certain after this window, each behind its hash.

        They are parts of the window, good until it is filled anew. A boundary is certain once a maximum
        chunk's worth of bytes lies behind its start, or the end of the stream.
        """
        view = window.behind(self._rest)
        certain = len(view) if is_last else len(view) - MAXIMUM_CHUNK
        expected = self._expected
        chunks = None
        used = 0
        while used < certain:
            match = None if expected is None else expected.match(view[used:])
            if match is not None:
                hash, length = match
                chunks = None  # whoever cuts goes on behind it
            else:
                if chunks is None:
                    chunks = self._cdc.cut_buf(view[used:])
                length = next(chunks).length
                hash = hash_object(ObjectKind.CHUNK, view[used : used + length], self._system)
                if expected is not None:
                    expected.note(hash)
            yield hash, view[used : used + length]
            used += length
        self._rest = bytes(view[used:])


def _require_native_implementation() -> None:
    """Pyfastcdc falls back to Python, a hundred times slower, without a word; say it instead."""
    if not FastCDC.__module__.startswith(f"{pyfastcdc.__name__}.cy"):
        raise InternalError("The compiled part of pyfastcdc is missing: reinstall it from a wheel.")
