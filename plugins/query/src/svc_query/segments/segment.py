"""One segment file, opened: looks up terms in it and verifies what it reads.

A file of up to 128 KiB is read whole and all its checksums are verified at once; it holds no file descriptor.
A longer one is mapped into memory: its header and table of contents are verified when it is opened, each
block and bitmap when it is first read. Bytes are copied out of the mapping before they are looked at, so that
nothing refers to it and it can be closed at any moment; using a closed one raises ``FileNotFoundError``, as a
missing file does.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path as FilePath
from typing import TypeVar
from zlib import crc32

from pyroaring import BitMap

from svc.errors import CorruptRecord
from svc.plugin import native_lock
from svc_query.segments.layout import (
    HEADER_SIZE,
    Block,
    bitmap_of,
    bitmap_of_unordered,
    block_of,
    column_of,
    decode_bitmap,
    decode_contents,
    decode_header,
    numbers_of,
)
from svc_query.segments.manifest import SegmentEntry
from svc_query.segments.ranks import RankColumn, is_worth_ranking, terms_among, with_terms

__all__ = ["READ_WHOLE", "Segment"]

READ_WHOLE = 131_072
"""Bytes of the longest file that is read whole rather than mapped."""

RECENT = 16
"""Blocks of a segment that are kept as they were decoded, at most."""

FOUND = 8
"""Terms of a segment whose places are kept, at most."""

FEW_EQUAL = 2
"""Documents that have the same term, on average, at most, where they are put in order without their terms."""

FEW = 4
"""So many documents are rather tested than narrowed further."""

UNREADABLE = (ValueError, IndexError, OverflowError, MemoryError, struct.error)
"""What decoding raises when bytes don't make sense."""

T = TypeVar("T")


class Segment:
    """An opened segment, for any number of threads; the last holder who releases it closes it."""

    def __init__(self, path: FilePath) -> None:
        """Opens a file. Blocks.

        Raises FileNotFoundError, and CorruptRecord where it is no segment, or damaged where it has been
        verified.
        """
        self.path = path
        self._data: mmap | bytes = _open(path)
        self.size = len(self._data)
        self._holders = 1
        self._lock = native_lock()
        try:
            self._read_contents()
            if isinstance(self._data, bytes):
                for number in range(len(self._fences)):
                    self._read_block(number)
                for number in range(len(self._contents.group_offsets)):
                    self._group(number)
        except CorruptRecord as error:
            self.release()
            raise _named(error, path) from error
        except UNREADABLE as error:
            self.release()
            raise _named(CorruptRecord("The segment can't be read.", offset=0), path) from error

    def _read_contents(self) -> None:
        self.header = header = decode_header(self._data[:HEADER_SIZE], self.size)
        self._contents = contents = decode_contents(self._data[header.contents_at :], header)
        self._fences = contents.fences
        self._verified = bytearray(len(contents.offsets))
        self._verified_groups = bytearray(len(contents.group_offsets))
        self._documents: BitMap | None = None
        self._ranks: RankColumn | None = None
        self._recent: dict[int, Block] = {}
        self._found: dict[bytes, tuple[Block, int] | None] = {}

    def expect(self, entry: SegmentEntry, *, ordered: bool) -> None:
        """Compares what was opened with what a manifest says."""
        header = self.header
        there = (self.size, header.documents, header.terms, header.postings, header.ordered)
        if there != (entry.size, entry.documents, entry.terms, entry.postings, ordered):
            raise _named(CorruptRecord("The segment is another one than was expected.", offset=0), self.path)

    def hold(self) -> bool:
        """Counts one more holder; False when it is closed already."""
        with self._lock:
            if not self._holders:
                return False
            self._holders += 1
            return True

    def release(self) -> None:
        """Counts one holder less; with the last the file is closed."""
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
            data, self._data = self._data, b""
            self._recent, self._found = {}, {}
            if isinstance(data, mmap):
                data.close()

    def verify(self) -> None:
        """Reads everything and verifies it."""
        for number in range(len(self._fences)):
            block = self._read_block(number)
            terms = block.terms()
            if terms != sorted(set(terms)) or terms[0] != self._fences[number]:
                raise CorruptRecord("Terms of the segment are out of order.")
            for count, payload in block.payloads():
                bitmap_of(count, payload)
        for number in range(len(self._contents.group_offsets)):
            self._group(number)
        self.documents()

    def documents(self) -> BitMap:
        """Returns the documents that have terms here; not to be changed."""
        if self._documents is None:
            self._documents = self._guard(
                lambda: decode_bitmap(self._contents.documents, self.header.documents)
            )
        return self._documents

    def count(self, term: bytes) -> int:
        """Returns how many documents have a term."""
        return self._guard(lambda: self._count(term))

    def postings(self, term: bytes) -> BitMap | None:
        """Returns the documents of a term, or None when there are none."""
        return self._guard(lambda: self._postings(term))

    def postings_of_any(self, terms: Sequence[bytes]) -> list[BitMap]:
        """Returns bitmaps of the documents of some terms, which are in order."""
        return self._guard(lambda: self._postings_of_any(terms))

    def postings_of_all(self, terms: Sequence[bytes]) -> BitMap | None:
        """Returns the documents that have all of some terms; None when there are none."""
        return self._guard(lambda: self._postings_of_all(terms))

    def terms(self, low: bytes | None, high: bytes | None) -> Iterator[bytes]:
        """Yields the terms of a range in order."""
        start, end = self._guard(
            lambda: (self._position(low, at_end=False), self._position(high, at_end=True))
        )
        for number in range(start[0], min(end[0] + 1, len(self._fences))):
            block = self._guard(lambda number=number: self._block(number))  # type: ignore[misc]
            first = start[1] if number == start[0] else 0
            last = end[1] if number == end[0] else block.size
            yield from self._guard(block.terms)[first:last]

    def count_range(self, low: bytes | None, high: bytes | None) -> int:
        """Returns how many postings a range of terms has."""
        return self._guard(lambda: max(0, self._rank(high) - (self._rank(low) if low is not None else 0)))

    def postings_range(self, low: bytes | None, high: bytes | None) -> list[BitMap]:
        """Returns bitmaps of the documents of a range of terms."""
        return self._guard(lambda: self._postings_range(low, high))

    def scan(
        self, low: bytes | None, high: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yields the terms of a range with their documents."""
        start, end = self._guard(
            lambda: (self._position(low, at_end=False), self._position(high, at_end=True))
        )
        numbers = range(start[0], end[0] + 1)
        for number in reversed(numbers) if reverse else numbers:
            if number >= len(self._fences):
                continue
            yield from self._guard(
                lambda number=number: self._slice(number, start, end, reverse=reverse)  # type: ignore[misc]
            )

    def _slice(
        self, number: int, start: tuple[int, int], end: tuple[int, int], *, reverse: bool
    ) -> Iterable[tuple[bytes, Sequence[int]]]:
        block = self._block(number)
        first = start[1] if number == start[0] else 0
        last = end[1] if number == end[0] else block.size
        indexes = range(first, last)
        return (
            (block.term(index), numbers_of(*block.payload(index)))
            for index in (reversed(indexes) if reverse else indexes)
        )

    def scan_among(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool
    ) -> Iterator[tuple[bytes, BitMap]]:
        """Yields the terms of a range that some documents have, with those; see ``TermReader``."""
        documents = self.documents()
        wanted = documents.intersection_cardinality(among)
        if not wanted:
            return
        start, end = self._guard(
            lambda: (self._position(low, at_end=False), self._position(high, at_end=True))
        )
        if self.header.ordered and is_worth_ranking(wanted, documents, self.header.postings):
            places = self._guard(lambda: self._ranked(documents & among, start, end, reverse=reverse))
            yield from with_terms(places, self._contents.before, self._guarded_block)
            return
        numbers = range(start[0], min(end[0] + 1, len(self._fences)))
        for number in reversed(numbers) if reverse else numbers:
            first = start[1] if number == start[0] else 0
            last = end[1] if number == end[0] else None
            block = self._guard(lambda number=number: self._block(number))  # type: ignore[misc]
            last = block.size if last is None else last
            if first < last:
                yield from terms_among(block, first, last, among, reverse)

    def _ranked(
        self, numbers: BitMap, start: tuple[int, int], end: tuple[int, int], *, reverse: bool
    ) -> list[tuple[int, int]]:
        if self._ranks is None:
            self._ranks = RankColumn(self.documents(), self.blocks())
        return self._ranks.in_order(numbers, self._rank_at(start), self._rank_at(end), reverse=reverse)

    def in_order(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool
    ) -> list[int] | None:
        """Returns some documents in the order of their terms; see ``TermIndexReader.in_order``."""
        documents, header = self.documents(), self.header
        wanted = documents & among
        if not wanted:
            return []
        if (
            not header.ordered
            or header.terms * FEW_EQUAL < header.postings
            or not is_worth_ranking(len(wanted), documents, header.postings)
        ):
            return None

        def find() -> list[tuple[int, int]]:
            start, end = self._position(low, at_end=False), self._position(high, at_end=True)
            return self._ranked(wanted, start, end, reverse=reverse)

        return [number for _, number in self._guard(find)]

    def _guarded_block(self, number: int) -> Block:
        return self._guard(lambda: self._block(number))

    def blocks(self) -> Iterator[Block]:
        """Yields all blocks in order, verified."""
        for number in range(len(self._fences)):
            yield self._guard(lambda number=number: self._read_block(number))  # type: ignore[misc]

    def _count(self, term: bytes) -> int:
        found = self._find(term)
        return found[0].count(found[1]) if found else 0

    def _postings(self, term: bytes) -> BitMap | None:
        found = self._find(term)
        return bitmap_of(*found[0].payload(found[1])) if found else None

    def _find(self, term: bytes) -> tuple[Block, int] | None:
        # What is counted for an estimate is asked for right after.
        known = self._found
        if term in known:
            return known[term]
        found = self._look_up(term)
        if len(known) >= FOUND:
            known = self._found = {}
        if self._holders:
            known[term] = found
        return found

    def _look_up(self, term: bytes) -> tuple[Block, int] | None:
        number = block_of(self._fences, term)
        if number < 0:
            return None
        block = self._block(number)
        index = block.position(term)
        if index == block.size or block.term(index) != term:
            return None
        return block, index

    def _postings_of_any(self, terms: Sequence[bytes]) -> list[BitMap]:
        found: list[BitMap] = []
        raw: list[bytes] = []
        current, block = -1, None
        for term in terms:
            number = block_of(self._fences, term)
            if number < 0:
                continue
            if number != current or block is None:
                current, block = number, self._block(number)
            index = block.position(term)
            if index < block.size and block.term(index) == term:
                count, payload = block.payload(index)
                if len(payload) == 4 * count:
                    raw.append(payload)
                else:
                    found.append(decode_bitmap(payload, count))
        if raw:
            joined = b"".join(raw)
            found.append(bitmap_of_unordered(column_of(joined), self.documents()))
        return found

    def _postings_of_all(self, terms: Sequence[bytes]) -> BitMap | None:
        stored: list[tuple[int, bytes]] = []
        for term in terms:
            found = self._find(term)
            if found is None:
                return None
            stored.append(found[0].payload(found[1]))
        if not stored:
            return None
        stored.sort(key=_count_first)
        left = bitmap_of(*stored[0])
        for count, payload in stored[1:]:
            if len(left) <= FEW:
                break
            left &= bitmap_of(count, payload)
        return left or None

    def _position(self, term: bytes | None, *, at_end: bool) -> tuple[int, int]:
        """Finds the first term that is not less: its block and index, which may be behind the last one."""
        if term is None:
            return (len(self._fences), 0) if at_end else (0, 0)
        number = block_of(self._fences, term)
        if number < 0:
            return 0, 0
        return number, self._block(number).position(term)

    def _rank(self, term: bytes | None) -> int:
        return self._rank_at(self._position(term, at_end=True))

    def _rank_at(self, position: tuple[int, int]) -> int:
        number, index = position
        before = self._contents.before[number]
        return before + self._block(number).before(index) if index else before

    def _postings_range(self, low: bytes | None, high: bytes | None) -> list[BitMap]:
        start, end = self._position(low, at_end=False), self._position(high, at_end=True)
        if start >= end:
            return []
        found: list[BitMap] = []
        raw: list[bytes] = []
        number, first = start
        if first:
            last = end[1] if end[0] == number else None
            self._take(number, first, last, found, raw)
            number += 1
        firsts = self._contents.group_blocks
        group, groups = bisect_left(firsts, number), len(firsts) - 1
        while number < end[0]:
            while group < groups and firsts[group] < number:
                group += 1
            whole = group < groups and firsts[group] == number and firsts[group + 1] <= end[0]
            if whole and self._contents.group_lengths[group]:
                found.append(self._group(group))
                number = firsts[group + 1]
                continue
            self._take(number, 0, None, found, raw)
            number += 1
        if end[1] and number == end[0]:
            self._take(number, 0, end[1], found, raw)
        if raw:
            joined = b"".join(raw)
            found.append(bitmap_of_unordered(column_of(joined), self.documents()))
        return found

    def _take(self, number: int, first: int, last: int | None, found: list[BitMap], raw: list[bytes]) -> None:
        """Adds the documents of some terms of a block: short lists as they are, others as bitmaps."""
        block = self._block(number)
        last = block.size if last is None else last
        plain = block.raw_numbers(first, last)
        if plain is not None:
            raw.append(plain)
            return
        for count, payload in block.payloads(first, last):
            if len(payload) == 4 * count:
                raw.append(payload)
            else:
                found.append(decode_bitmap(payload, count))

    def _block(self, number: int) -> Block:
        # An estimate and the answer look at the same blocks, and so do many queries.
        block = self._recent.get(number)
        if block is None:
            block = self._read_block(number)
            if len(self._recent) >= RECENT:
                self._recent = {}
            if self._holders:
                self._recent[number] = block
        return block

    def _read_block(self, number: int) -> Block:
        contents = self._contents
        data = self._read(contents.offsets[number], contents.lengths[number])
        if not self._verified[number]:
            if crc32(data) != contents.checksums[number]:
                raise CorruptRecord(
                    "A block of the segment fails its checksum.", offset=contents.offsets[number]
                )
            block = Block(data)
            if block.postings != contents.before[number + 1] - contents.before[number]:
                raise CorruptRecord("A block of the segment is another one than was expected.")
            self._verified[number] = 1
            return block
        return Block(data)

    def _group(self, number: int) -> BitMap:
        contents = self._contents
        if not contents.group_lengths[number]:
            return BitMap()
        data = self._read(contents.group_offsets[number], contents.group_lengths[number])
        if not self._verified_groups[number]:
            if crc32(data) != contents.group_checksums[number]:
                raise CorruptRecord(
                    "A bitmap of the segment fails its checksum.", offset=contents.group_offsets[number]
                )
            self._verified_groups[number] = 1
        return decode_bitmap(data)

    def _read(self, offset: int, length: int) -> bytes:
        if offset < HEADER_SIZE or offset + length > self.header.contents_at:
            raise CorruptRecord("The segment names a place outside of itself.", offset=offset)
        return self._data[offset : offset + length]

    def _guard(self, function: Callable[[], T]) -> T:
        try:
            return function()
        except (CorruptRecord, *UNREADABLE) as error:
            if not self._holders:
                raise FileNotFoundError(f"The segment {self.path.name} was closed.") from error
            if isinstance(error, CorruptRecord):
                raise _named(error, self.path) from error
            raise _named(CorruptRecord("The segment can't be read.", offset=0), self.path) from error


def _count_first(stored: tuple[int, bytes]) -> int:
    return stored[0]


def _open(path: FilePath) -> mmap | bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size > READ_WHOLE:
            return mmap(descriptor, size, access=ACCESS_READ)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _named(error: CorruptRecord, path: FilePath) -> CorruptRecord:
    if "file" in error.details:
        return error
    return CorruptRecord(f"{error.message} (file {path.name})", **{**error.details, "file": path.name})
