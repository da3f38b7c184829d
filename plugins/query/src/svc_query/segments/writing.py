"""Writes a segment front to back, a block at a time."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path as FilePath
from zlib import crc32

from pyroaring import BitMap

from svc_query.segments.layout import (
    BLOCK_BYTES,
    BLOCK_TERMS,
    GROUP_POSTINGS,
    HEADER_SIZE,
    Contents,
    Header,
    bitmap_of,
    column_of,
    encode_block,
    encode_contents,
    encode_header,
)
from svc_query.segments.manifest import SegmentEntry, new_name

__all__ = ["BlockBuffer", "SegmentFile"]


class SegmentFile:
    """A segment that is being written. Until ``finish`` it has another name; ``abandon`` removes it.

    The header is written last, so that a file that was cut short is none.
    """

    def __init__(self, directory: FilePath, *, ordered: bool) -> None:
        """Makes the directory, where it is missing, and the file."""
        directory.mkdir(parents=True, exist_ok=True)
        self.name = new_name()
        self._directory = directory
        self._part = directory / f"{self.name}.part"
        self._ordered = ordered
        self._file = self._part.open("xb", buffering=1 << 18)
        self._file.write(bytes(HEADER_SIZE))
        self._at = HEADER_SIZE
        self._offsets, self._before = array("Q"), array("Q", [0])
        self._lengths, self._checksums = array("I"), array("I")
        self._fences: list[bytes] = []
        self._group_offsets, self._group_lengths = array("Q"), array("I")
        self._group_checksums, self._group_blocks = array("I"), array("I", [0])
        self._terms = 0
        self._group_terms = 0
        self._group_raw: list[bytes] = []
        self._group_bitmaps: list[BitMap] = []
        self._ascending, self._last = ordered, -1

    def write_block(
        self, terms: Sequence[bytes], counts: Sequence[int] | None, payloads: Sequence[bytes]
    ) -> None:
        """Writes a block of terms, in order and at least one, behind those that came before.

        ``counts`` are the documents of each; None when each has one. ``payloads`` are postings as they are
        stored: of each term, or in one piece when each has one.
        """
        data = encode_block(terms, counts, payloads)
        self._offsets.append(self._at)
        self._before.append(self._before[-1] + (len(terms) if counts is None else sum(counts)))
        self._lengths.append(len(data))
        self._checksums.append(crc32(data))
        self._fences.append(terms[0])
        self._file.write(data)
        self._at += len(data)
        self._terms += len(terms)
        if self._ordered:
            self._add_to_group(terms, counts, payloads)
        if self._ascending:
            self._ascending = counts is None and self._ascends(payloads)

    def _ascends(self, payloads: Sequence[bytes]) -> bool:
        """Whether the documents of terms with one each go on upward."""
        numbers = column_of(b"".join(payloads)).tolist()
        before, self._last = self._last, numbers[-1]
        return before < numbers[0] and numbers == sorted(numbers)

    def _add_to_group(
        self, terms: Sequence[bytes], counts: Sequence[int] | None, payloads: Sequence[bytes]
    ) -> None:
        self._group_terms += len(terms)
        if counts is None:
            self._group_raw.extend(payloads)
        else:
            for count, payload in zip(counts, payloads, strict=True):
                if len(payload) == 4 * count:
                    self._group_raw.append(payload)
                else:
                    self._group_bitmaps.append(bitmap_of(count, payload))
        if self._before[-1] - self._before[self._group_blocks[-1]] >= GROUP_POSTINGS:
            self._close_group()

    def _close_group(self) -> None:
        stored = b""
        if self._group_terms > 1:
            raw = b"".join(self._group_raw)
            bitmap = BitMap.union(bitmap_of(len(raw) // 4, raw), *self._group_bitmaps)
            bitmap.run_optimize()
            stored = bitmap.serialize()
        self._group_offsets.append(self._at)
        self._group_lengths.append(len(stored))
        self._group_checksums.append(crc32(stored))
        self._group_blocks.append(len(self._offsets))
        self._file.write(stored)
        self._at += len(stored)
        self._group_terms, self._group_raw, self._group_bitmaps = 0, [], []

    def finish(self, documents: BitMap) -> SegmentEntry:
        """Writes the rest, brings the file to the disk and gives it its name. Blocks."""
        if self._group_terms:
            self._close_group()
        documents = documents.copy()
        documents.run_optimize()
        contents = encode_contents(
            Contents(
                self._offsets,
                self._before,
                self._lengths,
                self._checksums,
                self._fences,
                self._group_offsets,
                self._group_lengths,
                self._group_checksums,
                self._group_blocks,
                documents.serialize(),
            )
        )
        header = Header(
            self._ordered,
            self._ascending,
            len(documents),
            self._terms,
            self._before[-1],
            self._at,
            len(contents),
            crc32(contents),
        )
        self._file.write(contents)
        self._file.seek(0)
        self._file.write(encode_header(header))
        # Not synced: after an unclean restart of the machine a view and its files are made anew.
        self._file.close()
        self._part.rename(self._directory / self.name)
        return SegmentEntry(
            self.name,
            self._at + len(contents),
            len(documents),
            documents.min(),
            documents.max(),
            self._terms,
            self._before[-1],
        )

    def abandon(self) -> None:
        """Removes the file, unless it is finished."""
        self._file.close()
        self._part.unlink(missing_ok=True)


class BlockBuffer:
    """Cuts terms with their postings, as they come, into blocks that are not longer than they should be."""

    def __init__(self, segment: SegmentFile) -> None:
        self._segment = segment
        self._terms: list[bytes] = []
        self._postings: list[tuple[int, bytes]] = []

    @property
    def empty(self) -> bool:
        """Whether no term waits for its block to be full."""
        return not self._terms

    def add(self, terms: Sequence[bytes], postings: Sequence[tuple[int, bytes]]) -> None:
        """Adds terms behind those that came before, with the count of their documents and their postings."""
        self._terms.extend(terms)
        self._postings.extend(postings)
        start, size = 0, 0
        for index, (_, payload) in enumerate(self._postings):
            size += len(payload)
            if size >= BLOCK_BYTES or index - start == BLOCK_TERMS - 1:
                self._write(start, index + 1)
                start, size = index + 1, 0
        if start:
            del self._terms[:start], self._postings[:start]

    def close(self) -> None:
        """Writes what is left."""
        if self._terms:
            self._write(0, len(self._terms))
        self._terms, self._postings = [], []

    def _write(self, start: int, end: int) -> None:
        counts, payloads = zip(*self._postings[start:end], strict=True)
        single = sum(counts) == end - start
        self._segment.write_block(self._terms[start:end], None if single else counts, payloads)
