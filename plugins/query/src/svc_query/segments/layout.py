"""The bytes of a segment: its header, its table of contents, and blocks of terms.

Everything is little-endian. Each function here turns bytes into values or values into bytes and touches no
file. What does not fit together raises ``CorruptRecord``; slices of bytes can't reach out of bounds.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from zlib import crc32

import msgspec
from pyroaring import BitMap

from svc.errors import CorruptRecord

__all__ = [
    "BLOCK_BYTES",
    "BLOCK_TERMS",
    "FORMAT",
    "GROUP_POSTINGS",
    "HEADER_SIZE",
    "RAW_POSTINGS",
    "Block",
    "Contents",
    "Header",
    "bitmap_of",
    "bitmap_of_unordered",
    "block_of",
    "column_of",
    "decode_bitmap",
    "decode_contents",
    "decode_header",
    "encode_block",
    "encode_contents",
    "encode_header",
    "encode_numbers",
    "encode_postings",
    "numbers_of",
]

MAGIC = b"svcterms"
FORMAT = 1
HEADER_SIZE = 64
BLOCK_TERMS = 256
"""Terms of a block, at most. A block is what is verified and decoded at once."""
BLOCK_BYTES = 65_536
"""A block is closed when its terms and postings are this long."""
GROUP_POSTINGS = 2_048
"""In an ordered index, a group of blocks that has so many postings gets a bitmap of its own."""
RAW_POSTINGS = 32
"""Lists that are shorter are kept as they are; of others a bitmap, where that is shorter."""

_MANY = 1_024
"""So many numbers of one container (65,536) are brought into order by a full one."""

_HEADER = struct.Struct("<8sIIQQQQQI")
_CHECKSUM = struct.Struct("<I")
_BLOCK = struct.Struct("<HHH")
_CONTENTS = struct.Struct("<IIII")
_ORDERED = 1
_ASCENDING = 2
_WIDE = 1
_SINGLE = 2
_SWAPPED = sys.byteorder == "big"


class Header(msgspec.Struct, frozen=True):
    """The first 64 bytes of a segment.

    Attributes:
        ordered: whether groups have bitmaps.
        ascending: whether each term has one document, and their numbers increase with the terms.
        documents: how many have terms here.
        terms: how many different ones.
        postings: pairs of term and document.
        contents_at: where the table of contents begins.
        contents_length: its bytes; the file ends behind it.
        contents_checksum: CRC-32 of it.
    """

    ordered: bool
    ascending: bool
    documents: int
    terms: int
    postings: int
    contents_at: int
    contents_length: int
    contents_checksum: int


class Contents(msgspec.Struct, frozen=True):
    """The table of contents of a segment, by columns.

    Attributes:
        offsets: of each block.
        before: postings before each block, and behind the last.
        lengths: bytes of each block.
        checksums: CRC-32 of each block.
        fences: the first term of each block.
        group_offsets: of the bitmap of each group.
        group_lengths: bytes of it; 0 where the group is one term, which needs none.
        group_checksums: CRC-32 of it.
        group_blocks: the first block of each group, and the number of blocks.
        documents: bitmap of the documents, as stored.
    """

    offsets: array[int]
    before: array[int]
    lengths: array[int]
    checksums: array[int]
    fences: list[bytes]
    group_offsets: array[int]
    group_lengths: array[int]
    group_checksums: array[int]
    group_blocks: array[int]
    documents: bytes


def encode_header(header: Header) -> bytes:
    """Returns the 64 bytes."""
    checked = _HEADER.pack(
        MAGIC,
        FORMAT,
        (_ORDERED if header.ordered else 0) | (_ASCENDING if header.ascending else 0),
        header.documents,
        header.terms,
        header.postings,
        header.contents_at,
        header.contents_length,
        header.contents_checksum,
    )
    return checked + _CHECKSUM.pack(crc32(checked))


def decode_header(data: bytes, size: int) -> Header:
    """Reads the header of a file.

    Raises CorruptRecord where it is no segment of this format, is damaged, or has another length.
    """
    if len(data) != HEADER_SIZE or not data.startswith(MAGIC):
        raise CorruptRecord("The file is no segment of an index.", offset=0)
    if _CHECKSUM.unpack_from(data, HEADER_SIZE - 4)[0] != crc32(data[:-4]):
        raise CorruptRecord("The header of the segment fails its checksum.", offset=0)
    _, number, flags, documents, terms, postings, at, length, checksum = _HEADER.unpack_from(data)
    if number != FORMAT:
        raise CorruptRecord(f"The segment has format {number}; this program reads format {FORMAT}.", offset=0)
    if flags & ~(_ORDERED | _ASCENDING) or at < HEADER_SIZE or at + length != size:
        raise CorruptRecord("The file is not as long as its header says.", offset=0)
    return Header(
        bool(flags & _ORDERED), bool(flags & _ASCENDING), documents, terms, postings, at, length, checksum
    )


def encode_contents(contents: Contents) -> bytes:
    """Returns the table of contents as it is stored."""
    fences = b"".join(contents.fences)
    return b"".join(
        (
            _CONTENTS.pack(
                len(contents.offsets), len(contents.group_offsets), len(fences), len(contents.documents)
            ),
            _column_bytes(contents.offsets),
            _column_bytes(contents.before),
            _column_bytes(contents.lengths),
            _column_bytes(contents.checksums),
            _column_bytes(array("I", accumulate(map(len, contents.fences)))),
            _column_bytes(contents.group_offsets),
            _column_bytes(contents.group_lengths),
            _column_bytes(contents.group_checksums),
            _column_bytes(contents.group_blocks),
            fences,
            contents.documents,
        )
    )


def decode_contents(data: bytes, header: Header) -> Contents:
    """Reads the table of contents."""
    if crc32(data) != header.contents_checksum or len(data) < _CONTENTS.size:
        raise _contents_damage(header)
    blocks, groups, fence_bytes, document_bytes = _CONTENTS.unpack_from(data)
    expected = _CONTENTS.size + 8 * (2 * blocks + 1) + 12 * blocks + 16 * groups + 4 * (groups + 1)
    if expected + fence_bytes + document_bytes != len(data):
        raise _contents_damage(header)
    at = _CONTENTS.size
    columns = []
    for code, count in zip("QQIIIQIII", _column_counts(blocks, groups), strict=True):
        width = 8 if code == "Q" else 4
        columns.append(_column(code, data[at : at + width * count]))
        at += width * count
    offsets, before, lengths, checksums, ends, group_offsets, group_lengths, group_checksums, firsts = columns
    contents = Contents(
        offsets,
        before,
        lengths,
        checksums,
        _pieces(data[at : at + fence_bytes], ends),
        group_offsets,
        group_lengths,
        group_checksums,
        firsts,
        data[at + fence_bytes :],
    )
    if before[0] or before[-1] != header.postings or firsts[-1] != (blocks if groups else 0):
        raise _contents_damage(header)
    return contents


class Block:
    """Up to 256 terms in order, with their postings; decodes what it is asked for."""

    __slots__ = ("_counts", "_data", "_ends", "_payload_at", "_payload_ends", "_terms_at", "prefix", "size")

    def __init__(self, data: bytes) -> None:
        """Takes the bytes of a block, verified."""
        self._data = data
        size, flags, prefix = _BLOCK.unpack_from(data)
        code, width = ("I", 4) if flags & _WIDE else ("H", 2)
        at = _BLOCK.size + prefix
        self.size: int = size
        self.prefix = data[_BLOCK.size : at]
        column = width * size
        self._ends = _column(code, data[at : at + column])
        at += column
        self._counts: array[int] | None = None
        self._payload_ends: array[int] | None = None
        if not flags & _SINGLE:
            self._counts = _column(code, data[at : at + column])
            self._payload_ends = _column(code, data[at + column : at + 2 * column])
            at += 2 * column
        self._terms_at = at
        self._payload_at = at + self._ends[-1]
        expected = self._payload_at + (self._payload_ends[-1] if self._payload_ends else 4 * size)
        if expected != len(data):
            raise CorruptRecord("The parts of a block of a segment don't fit together.")

    @property
    def postings(self) -> int:
        """How many pairs of term and document the block has."""
        return self.size if self._counts is None else self._counts[-1]

    def term(self, index: int) -> bytes:
        """Returns one term."""
        ends, at = self._ends, self._terms_at
        start = ends[index - 1] if index else 0
        return self.prefix + self._data[at + start : at + ends[index]]

    def terms(self) -> list[bytes]:
        """Returns all terms, in order."""
        data, at, prefix = self._data, self._terms_at, self.prefix
        if not prefix:
            return _pieces(data[at : self._payload_at], self._ends)
        found, start = [], at
        for end in self._ends:
            found.append(prefix + data[start : at + end])
            start = at + end
        return found

    def position(self, term: bytes) -> int:
        """Returns the index of the first term that is not less than one; ``size`` when all are."""
        prefix = self.prefix
        if not term.startswith(prefix):
            return self.size if term > prefix else 0
        wanted = term[len(prefix) :]
        data, ends, at = self._data, self._ends, self._terms_at
        low, high = 0, self.size
        while low < high:
            middle = (low + high) >> 1
            start = ends[middle - 1] if middle else 0
            if data[at + start : at + ends[middle]] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def before(self, index: int) -> int:
        """Returns how many postings stand before a term of the block."""
        if self._counts is None or not index:
            return index
        return self._counts[index - 1]

    def owner(self, posting: int) -> int:
        """Returns the index of the term that a posting of the block belongs to."""
        return posting if self._counts is None else bisect_right(self._counts, posting)

    def count(self, index: int) -> int:
        """Returns how many documents have a term."""
        counts = self._counts
        if counts is None:
            return 1
        return counts[index] - (counts[index - 1] if index else 0)

    def payload(self, index: int) -> tuple[int, bytes]:
        """Returns how many documents have a term, and its postings as they are stored."""
        at = self._payload_at
        counts, ends = self._counts, self._payload_ends
        if counts is None or ends is None:
            return 1, self._data[at + 4 * index : at + 4 * index + 4]
        if not index:
            return counts[0], self._data[at : at + ends[0]]
        return counts[index] - counts[index - 1], self._data[at + ends[index - 1] : at + ends[index]]

    def payloads(self, first: int = 0, last: int | None = None) -> list[tuple[int, bytes]]:
        """Returns what ``payload`` does for a slice of terms."""
        data, at = self._data, self._payload_at
        last = self.size if last is None else last
        counts, ends = self._counts, self._payload_ends
        if counts is None or ends is None:
            return [(1, data[start : start + 4]) for start in range(at + 4 * first, at + 4 * last, 4)]
        found = []
        before, start = (counts[first - 1], at + ends[first - 1]) if first else (0, at)
        for count, end in zip(counts[first:last], ends[first:last], strict=True):
            found.append((count - before, data[start : at + end]))
            before, start = count, at + end
        return found

    def raw_numbers(self, start: int, end: int) -> bytes | None:
        """Returns the documents of a slice of terms when all are kept as plain numbers; else None."""
        at = self._payload_at
        counts, ends = self._counts, self._payload_ends
        if counts is None or ends is None:
            return self._data[at + 4 * start : at + 4 * end]
        if start >= end:
            return b""
        before, first = (counts[start - 1], ends[start - 1]) if start else (0, 0)
        # A bitmap is always shorter than the plain numbers.
        if ends[end - 1] - first != 4 * (counts[end - 1] - before):
            return None
        return self._data[at + first : at + ends[end - 1]]


def encode_block(terms: Sequence[bytes], counts: Sequence[int] | None, payloads: Sequence[bytes]) -> bytes:
    """Returns a block of at least one term, in order.

    ``counts`` are the documents of each; None when each has one. ``payloads`` are of each, as
    ``encode_postings`` returned them; or all in one piece.
    """
    size = len(terms)
    prefix = _common_prefix(terms[0], terms[-1])
    text = b"".join(terms) if not prefix else b"".join([term[len(prefix) :] for term in terms])
    ends = list(accumulate([len(term) - len(prefix) for term in terms]))
    payload = b"".join(payloads)
    columns = [ends]
    if counts is not None:
        columns += [list(accumulate(counts)), list(accumulate(map(len, payloads)))]
    wide = any(column[-1] > 0xFFFF for column in columns)
    flags = (_WIDE if wide else 0) | (_SINGLE if counts is None else 0)
    parts = [_BLOCK.pack(size, flags, len(prefix)), prefix]
    parts += [_column_bytes(array("I" if wide else "H", column)) for column in columns]
    return b"".join([*parts, text, payload])


def encode_numbers(numbers: Iterable[int]) -> bytes:
    """Returns documents as they stand in a short list."""
    return _column_bytes(array("I", numbers))


def encode_postings(numbers: Sequence[int] | BitMap) -> bytes:
    """Returns the documents of one term, in increasing order, as they are stored."""
    count = len(numbers)
    if count < RAW_POSTINGS:
        return encode_numbers(numbers)
    bitmap = numbers if isinstance(numbers, BitMap) else BitMap(array("I", numbers))
    bitmap.run_optimize()
    stored = bitmap.serialize()
    return stored if len(stored) < 4 * count else encode_numbers(numbers)


def bitmap_of(count: int, payload: bytes) -> BitMap:
    """Returns the documents of one term."""
    if len(payload) == 4 * count:
        return BitMap(column_of(payload))
    return decode_bitmap(payload, count)


def bitmap_of_unordered(numbers: array[int], known: BitMap) -> BitMap:
    """Returns the bitmap of plain numbers in any order.

    What is inserted into a container of few members moves those behind it; a full one takes a number at once.
    So the even ones are found by adding all to the odd ones of the whole range, and the odd ones likewise.
    """
    if len(numbers) < _MANY or not known:
        return BitMap(numbers)
    first, last = known.min() & ~0xFFFF, known.max() | 0xFFFF
    if ((last - first) >> 16) + 1 > len(numbers) // _MANY:
        return BitMap(numbers)
    found = BitMap()
    for others in (_every_other(first, last), _every_other(first + 1, last)):
        part = others.copy()
        part.update(numbers)
        part -= others
        found |= part
    return found


@lru_cache(maxsize=32)
def _every_other(first: int, last: int) -> BitMap:
    return BitMap(range(first, last + 1, 2))


def decode_bitmap(stored: bytes, count: int | None = None) -> BitMap:
    """Returns a bitmap that was stored."""
    try:
        bitmap = BitMap.deserialize(stored)
    except (ValueError, IndexError) as error:
        raise CorruptRecord("A bitmap of a segment can't be read.") from error
    if count is not None and len(bitmap) != count:
        raise CorruptRecord("A bitmap of a segment has another number of members than its block says.")
    return bitmap


def numbers_of(count: int, payload: bytes) -> Sequence[int]:
    """Returns the documents of one term in increasing order."""
    if len(payload) == 4 * count:
        return _column("I", payload)
    return decode_bitmap(payload, count).to_array()


def block_of(fences: Sequence[bytes], term: bytes) -> int:
    """Returns the block in which a term stands if it does; -1 when it is before the first."""
    return bisect_right(fences, term) - 1


def column_of(payload: bytes) -> array[int]:
    """Returns the documents of a short list as it is stored."""
    return _column("I", payload)


def _column(code: str, data: bytes) -> array[int]:
    column = array(code)
    column.frombytes(data)
    if _SWAPPED:
        column.byteswap()
    return column


def _column_bytes(column: array[int]) -> bytes:
    if _SWAPPED:
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _column_counts(blocks: int, groups: int) -> tuple[int, ...]:
    return (blocks, blocks + 1, blocks, blocks, blocks, groups, groups, groups, groups + 1)


def _common_prefix(first: bytes, last: bytes) -> bytes:
    for index, (left, right) in enumerate(zip(first, last, strict=False)):
        if left != right:
            return first[:index]
    return first[: len(last)]


def _pieces(data: bytes, ends: Sequence[int]) -> list[bytes]:
    found, start = [], 0
    for end in ends:
        found.append(data[start:end])
        start = end
    return found


def _contents_damage(header: Header) -> CorruptRecord:
    return CorruptRecord("The table of contents of the segment is damaged.", offset=header.contents_at)
