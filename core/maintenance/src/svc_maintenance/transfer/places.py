"""A sorted set of offsets in the log, kept on disk if it is too large for memory.

Offsets are added in any order, also repeatedly, and come back ascending: a log is read once, front to back.
"""

from __future__ import annotations

import contextlib
import heapq
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from types import TracebackType
from typing import IO, Self

from svc.errors import InsufficientStorage
from svc.log.creation import FULL

__all__ = ["PlaceSet", "storing", "without"]

_RUN = 1 << 15
_WIDTH = 12
_PIECE = _WIDTH * 4096


@contextlib.contextmanager
def storing() -> Iterator[None]:
    """Says of temporary data what is said of all others when the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise InsufficientStorage("There is no space left for temporary data.") from error


class PlaceSet:
    """A set of (offset, stored length); memory is bounded, the rest lies in an unnamed temporary file."""

    def __init__(self, run: int = _RUN) -> None:
        self._run = run
        self._young: set[int] = set()
        self._file: IO[bytes] | None = None
        self._ends: list[int] = [0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, offset: int, stored_length: int) -> None:
        """Adds a place; one that is there costs nothing."""
        self._young.add(offset << 32 | stored_length)
        if len(self._young) >= self._run:
            self._write_out()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yields (offset, stored length) ascending, each once; may be asked for again."""
        runs: list[Iterator[int]] = [self._read_run(start, end) for start, end in pairwise(self._ends)]
        runs.append(iter(sorted(self._young)))
        last = -1
        for packed in heapq.merge(*runs) if len(runs) > 1 else runs[0]:
            if packed != last:
                last = packed
                yield packed >> 32, packed & 0xFFFFFFFF

    def close(self) -> None:
        """Gives the temporary file back."""
        self._young.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_out(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="svc-places-")  # noqa: SIM115
        packed = b"".join([one.to_bytes(_WIDTH, "big") for one in sorted(self._young)])
        with storing():
            self._file.seek(self._ends[-1])
            self._file.write(packed)
            self._file.flush()
        self._ends.append(self._ends[-1] + len(packed))
        self._young.clear()

    def _read_run(self, position: int, end: int) -> Iterator[int]:
        assert self._file is not None
        while position < end:
            self._file.seek(position)
            piece = self._file.read(min(_PIECE, end - position))
            position += len(piece)
            for at in range(0, len(piece), _WIDTH):
                yield int.from_bytes(piece[at : at + _WIDTH], "big")


def without(places: PlaceSet, others: PlaceSet) -> Iterator[tuple[int, int]]:
    """Yields the places of one set that are not in another, ascending."""
    others_left = iter(others)
    other = next(others_left, None)
    for place in places:
        while other is not None and other < place:
            other = next(others_left, None)
        if place != other:
            yield place
