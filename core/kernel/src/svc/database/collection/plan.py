"""The plan of a sweep: which runs of the log become voids, and carrying it out.

The plan is committed before the first byte is overwritten. So after a crash another process can do everything
again: a header that a power cut tore then means nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from svc.clock import now_ms
from svc.errors import CorruptRecord
from svc.log import RECORD_HEADER_SIZE, CollectableStorage, encode_void

if TYPE_CHECKING:
    from svc.log import LogStorage

__all__ = ["MAXIMUM_RUN", "Plan", "Sweeper", "decode_plan"]

MAXIMUM_RUN = 1 << 30
"""Where a run is longer than so many bytes, the next record begins another."""

_MAGIC = b"SVCPLAN\x01"
_PART = 4096
_BLOCK = 4096
_PUNCH = 64 << 20
"""Bytes that are given back at once: others wait meanwhile who append."""

_RUNS_AT_ONCE = 256
_BYTES_AT_ONCE = 256 << 20


class Plan:
    """Runs of the log, each from the header of a record to the end of one; some bytes of memory a run."""

    def __init__(self) -> None:
        # Parts of some thousand runs: where each begins, and its runs as pairs of gap and length.
        self._begins: list[int] = []
        self._parts: list[bytearray] = []
        self._in_part = 0
        self._end = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, begin: int, end: int) -> None:
        """Adds a run behind those that are there."""
        if not self._parts or self._in_part == _PART:
            self._begins.append(begin)
            self._parts.append(bytearray())
            self._in_part = 0
            self._end = begin
        part = self._parts[-1]
        _append_number(part, (begin - self._end) >> 3)
        _append_number(part, (end - begin) >> 3)
        self._end = end
        self._in_part += 1

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yields (begin, end) of each run."""
        for begin, part in zip(self._begins, self._parts, strict=True):
            yield from _runs_of(begin, part)

    def take_out(self, records: Iterable[tuple[int, int]]) -> None:
        """Takes records (begin, end) out of the runs that hold them."""
        by_part: dict[int, list[tuple[int, int]]] = {}
        for record in records:
            by_part.setdefault(bisect_right(self._begins, record[0]) - 1, []).append(record)
        for number, kept in by_part.items():
            if number >= 0:
                self._take_out_of_part(number, sorted(kept))

    def _take_out_of_part(self, number: int, kept: list[tuple[int, int]]) -> None:
        begin, part = self._begins[number], bytearray()
        end = begin
        for run_begin, run_end in _runs_of(begin, self._parts[number]):
            pieces, rest = [], run_begin
            inside = kept[bisect_left(kept, (run_begin, 0)) : bisect_left(kept, (run_end, 0))]
            for record_begin, record_end in inside:
                if rest < record_begin:
                    pieces.append((rest, record_begin))
                rest = record_end
            if rest < run_end:
                pieces.append((rest, run_end))
            for piece_begin, piece_end in pieces:
                _append_number(part, (piece_begin - end) >> 3)
                _append_number(part, (piece_end - piece_begin) >> 3)
                end = piece_end
        self._parts[number] = part
        if number == len(self._parts) - 1:
            self._in_part = _PART  # What is added later begins a part of its own.

    def encode(self, at_ms: int) -> bytes:
        """Returns the plan's file: no two are alike, so that each is stored anew and whole."""
        content = bytearray(_MAGIC)
        content += at_ms.to_bytes(8, "little")
        position = 0
        for begin, end in self.runs():
            _append_number(content, (begin - position) >> 3)
            _append_number(content, (end - begin) >> 3)
            position = end
        return bytes(content)


def decode_plan(content: bytes) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) of the runs of a plan's file."""
    if content[:8] != _MAGIC:
        raise CorruptRecord("The plan of a collection is not of the expected form.")
    return _runs_of(0, memoryview(content)[16:])


class Sweeper:
    """Makes voids of runs, and gives their space back. Doing a run twice does no harm."""

    def __init__(
        self, storage: LogStorage, sync: Callable[[], None], pause: Callable[[], None] = lambda: None
    ) -> None:
        assert isinstance(storage, CollectableStorage)
        self._storage = storage
        self._sync = sync
        self._pause = pause
        self.can_punch = True

    def sweep(
        self, runs: Iterable[tuple[int, int]], progress: Callable[[int], None] = lambda offset: None
    ) -> None:
        """Sweeps runs; durable when it returns. Blocks."""
        batch: list[tuple[int, int]] = []
        size = 0
        for run in runs:
            batch.append(run)
            size += run[1] - run[0]
            if len(batch) >= _RUNS_AT_ONCE or size >= _BYTES_AT_ONCE:
                self._sweep(batch)
                progress(batch[-1][1])
                self._pause()
                batch, size = [], 0
        if batch:
            self._sweep(batch)
            progress(batch[-1][1])

    def _sweep(self, batch: list[tuple[int, int]]) -> None:
        storage, time_ms = self._storage, now_ms()
        for begin, end in batch:
            storage.overwrite(begin, encode_void(end - begin - RECORD_HEADER_SIZE, time_ms=time_ms))
        for begin, end in batch:
            self._punch(begin + RECORD_HEADER_SIZE, end)
        self._sync()

    def _punch(self, begin: int, end: int) -> None:
        if -(-begin // _BLOCK) >= end // _BLOCK:
            return  # no whole block lies within it
        while begin < end and self.can_punch:
            length = min(end - begin, _PUNCH - begin % _BLOCK)
            self.can_punch = self._storage.punch(begin, length)
            begin += length


def _append_number(content: bytearray, number: int) -> None:
    """Appends a number: seven bits a byte, the lowest first, the top bit set on all but the last."""
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)


def _runs_of(position: int, content: bytearray | memoryview) -> Iterator[tuple[int, int]]:
    number = shift = 0
    begin = -1
    for byte in content:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            continue
        position += number << 3
        if begin < 0:
            begin = position
        else:
            if position - begin < RECORD_HEADER_SIZE:
                raise CorruptRecord("The plan of a collection names a run that is too short.")
            yield begin, position
            begin = -1
        number = shift = 0
