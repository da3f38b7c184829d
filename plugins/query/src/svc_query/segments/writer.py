"""Collects the terms of documents in memory and makes segments of them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path as FilePath

import msgspec
from pyroaring import BitMap

from svc_query.api import MAXIMUM_TERM_BYTES
from svc_query.segments.layout import BLOCK_TERMS, encode_numbers, encode_postings
from svc_query.segments.manifest import EMPTY, decode_manifest, encode_manifest
from svc_query.segments.merging import Merge, merge_plan
from svc_query.segments.writing import BlockBuffer, SegmentFile

__all__ = ["TermIndexWriter"]


class TermIndexWriter:
    """Takes documents into one index. Used by one thread at a time, in the one process that writes.

    Nothing is written before ``flush``, and nothing that was written counts before its manifest is stored.
    ``unused_files`` finds what no manifest names.
    """

    def __init__(self, directory: FilePath, manifest: bytes | None, *, ordered: bool) -> None:
        """Opens an index, in a directory of its own that need not be there, to write to it.

        ``manifest`` is what the last ``flush`` or ``Merge.apply`` that counts returned; None for a new index.
        ``ordered``: wide ranges of terms are to be cheap (``TermIndexType.ordered``).
        """
        decode_manifest(manifest)
        self.manifest: bytes = EMPTY if manifest is None else manifest
        """What ``flush`` adds to; set it when a ``Merge.apply`` counts."""
        self._directory = directory
        self._ordered = ordered
        self._clear()

    def _clear(self) -> None:
        # Most terms of an ordered index have one document, and need no list. In another most postings are of
        # terms that have many: appending without looking takes 30% less time there.
        self._postings: dict[bytes, list[int] | int] = {}
        self._lists: defaultdict[bytes, list[int]] = defaultdict(list)
        self._documents: list[int] = []
        self._pending = 0
        self._last = -1
        self._sorted = True

    @property
    def pending(self) -> int:
        """How many documents were added since the last flush."""
        return self._pending

    def add(self, number: int, terms: Iterable[bytes]) -> None:
        """Adds a document. Fastest when numbers, below 2^32, increase and ``terms`` is a set.

        A term may come twice, the longest are cut. A document that is added again has the terms of both.
        """
        self.add_all([(number, terms if isinstance(terms, (set, frozenset)) else set(terms))])

    def add_all(self, documents: Iterable[tuple[int, Collection[bytes]]]) -> None:
        """Adds documents, which costs half of what it does one by one. No term of a document comes twice."""
        postings, lists, known = self._postings, self._lists, self._documents
        last = self._last
        for number, terms in documents:
            if number <= last:
                self._sorted = False
            last = number
            self._pending += 1
            if not terms:
                continue
            known.append(number)
            if not self._ordered:
                for term in terms:
                    lists[term].append(number)
                continue
            for term in terms:
                if term not in postings:
                    postings[term] = number
                    continue
                found = postings[term]
                if found.__class__ is list:
                    found.append(number)
                else:
                    postings[term] = [found, number]  # type: ignore[list-item]
        self._last = last

    def flush(self) -> bytes:
        """Writes what was added to a segment, and returns the manifest that names it too. Blocks.

        On an error everything is still there, to be flushed again.
        """
        if not self._documents:
            self._clear()
            return self.manifest
        segment = SegmentFile(self._directory, ordered=self._ordered)
        try:
            self._write(segment)
            entry = segment.finish(BitMap(array("I", sorted(set(self._documents)))))
        except BaseException:
            segment.abandon()
            raise
        manifest = decode_manifest(self.manifest)
        self.manifest = encode_manifest(
            msgspec.structs.replace(manifest, segments=(*manifest.segments, entry))
        )
        self._clear()
        return self.manifest

    def merge_plan(self, manifest: bytes | None, dead: BitMap) -> Merge | None:
        """Returns the next merge that is worth its cost; see ``svc_query.segments.merge_plan``."""
        return merge_plan(self._directory, manifest, dead, ordered=self._ordered)

    def _write(self, segment: SegmentFile) -> None:
        postings = _cut(self._postings if self._ordered else self._lists)
        terms = sorted(postings)
        buffer = BlockBuffer(segment)
        for start in range(0, len(terms), BLOCK_TERMS):
            block = terms[start : start + BLOCK_TERMS]
            numbers = [postings[term] for term in block]
            if buffer.empty and len(block) == BLOCK_TERMS and list not in set(map(type, numbers)):
                segment.write_block(block, None, [encode_numbers(numbers)])  # type: ignore[arg-type]
            else:
                lists = map(self._in_order, numbers)
                buffer.add(block, [(len(item), encode_postings(item)) for item in lists])
        buffer.close()

    def _in_order(self, numbers: list[int] | int) -> Sequence[int]:
        if isinstance(numbers, int):
            return (numbers,)
        return numbers if self._sorted else sorted(set(numbers))


def _cut(postings: Mapping[bytes, list[int] | int]) -> Mapping[bytes, list[int] | int]:
    """Cuts terms that are too long, and brings together what has become one."""
    if max(map(len, postings)) <= MAXIMUM_TERM_BYTES:
        return postings
    cut: dict[bytes, list[int] | int] = {}
    for term, numbers in postings.items():
        short = term[:MAXIMUM_TERM_BYTES]
        if short in cut:
            cut[short] = sorted({*_as_list(cut[short]), *_as_list(numbers)})
        else:
            cut[short] = numbers
    return cut


def _as_list(numbers: list[int] | int) -> Iterable[int]:
    return (numbers,) if isinstance(numbers, int) else numbers
