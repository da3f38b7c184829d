"""Answers from all segments that a manifest names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter
from pathlib import Path as FilePath
from typing import Any

from pyroaring import BitMap

from svc_query.api import MAXIMUM_TERM_BYTES
from svc_query.segments.manifest import decode_manifest
from svc_query.segments.segment import Segment

__all__ = ["TermIndexReader"]


class TermIndexReader:
    """The terms of one index: a ``svc_query.api.TermReader``. May be used by many threads at a time.

    It goes on to answer while files are replaced and removed, until it is closed. ``manifest`` is what was
    opened, ``size`` the bytes of the segments on the disk.
    """

    def __init__(
        self,
        directory: FilePath,
        manifest: bytes | None,
        *,
        ordered: bool,
        before: TermIndexReader | None = None,
    ) -> None:
        """Opens the segments. Blocks.

        A manifest of None is that of an index without documents; ``ordered`` is as the index is written.
        ``before`` is a reader of the same index at another manifest: segments that it has open are shared,
        and not opened and verified again. It is closed as ever.

        Raises FileNotFoundError where a segment is gone: the manifest is not the newest one. CorruptRecord:
        it, or a segment, is damaged, or a segment is not the one that was written.
        """
        self.manifest = manifest
        self._segments: list[Segment] = []
        self._closed = False
        opened = {} if before is None else {segment.path: segment for segment in before._segments}
        try:
            for entry in decode_manifest(manifest).segments:
                path = directory / entry.name
                known = opened.get(path)
                segment = known if known is not None and known.hold() else Segment(path)
                self._segments.append(segment)
                segment.expect(entry, ordered=ordered)
        except BaseException:
            self.close()
            raise
        self.size = sum(segment.size for segment in self._segments)

    def beside(self, more: Any) -> TermIndexReader:
        """Returns a reader that answers from something else, too, for as long as this one is open."""
        return self._of([*self._segments, more])

    def _of(self, segments: Sequence[Any]) -> TermIndexReader:
        made = TermIndexReader.__new__(TermIndexReader)
        made.manifest, made.size = self.manifest, self.size
        made._segments = list(segments)
        made._closed = True  # the segments are held by this one
        return made

    def apart(self) -> tuple[list[BitMap], TermIndexReader]:
        """Tells segments in which numbers increase with the terms, one for each, from all others.

        Returns the documents of each of the former, not to be changed; a reader of the others, while this one
        is open.
        """
        ascending = [segment.documents() for segment in self._segments if segment.header.ascending]
        return ascending, self._of([one for one in self._segments if not one.header.ascending])

    @property
    def segments(self) -> int:
        """How many segments are open."""
        return len(self._segments)

    def documents(self) -> BitMap:
        """Returns the documents that have at least one term; a new bitmap, dead ones among them."""
        return _union([segment.documents() for segment in self._segments]).copy()

    def count(self, term: bytes) -> int:
        """Returns how many documents have a term, at most."""
        term = term[:MAXIMUM_TERM_BYTES]
        return sum([segment.count(term) for segment in self._segments])

    def postings(self, term: bytes) -> BitMap:
        """Returns the documents that have a term; a new bitmap."""
        term = term[:MAXIMUM_TERM_BYTES]
        found = (segment.postings(term) for segment in self._segments)
        return _union([bitmap for bitmap in found if bitmap is not None])

    def postings_of_any(self, terms: Iterable[bytes]) -> BitMap:
        """Returns the documents that have one of some terms; a new bitmap."""
        wanted = sorted({term[:MAXIMUM_TERM_BYTES] for term in terms})
        return _union([bitmap for segment in self._segments for bitmap in segment.postings_of_any(wanted)])

    def postings_of_all(self, terms: Iterable[bytes]) -> BitMap:
        """Returns the documents that have all of some terms, at least one; a new bitmap.

        A document has all its terms in one segment, so each segment answers for itself. Of a few documents
        that are left not all terms are looked at.
        """
        wanted = [term[:MAXIMUM_TERM_BYTES] for term in terms]
        found = (segment.postings_of_all(wanted) for segment in self._segments)
        return _union([bitmap for bitmap in found if bitmap is not None])

    def terms(self, low: bytes | None = None, high: bytes | None = None) -> Iterator[bytes]:
        """Yields the terms of a range, without order; one may come several times."""
        low, high = _cut_range(low, high)
        for segment in self._segments:
            yield from segment.terms(low, high)

    def count_range(self, low: bytes | None, high: bytes | None) -> int:
        """Returns how many documents a range of terms has, at most: one counts for each of its terms."""
        low, high = _cut_range(low, high)
        return sum([segment.count_range(low, high) for segment in self._segments])

    def postings_range(self, low: bytes | None, high: bytes | None) -> BitMap:
        """Returns the documents of a range of terms; a new bitmap. Costs by the terms unless ``ordered``."""
        if low is None and high is None:
            return self.documents()
        low, high = _cut_range(low, high)
        return _union([bitmap for segment in self._segments for bitmap in segment.postings_range(low, high)])

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yields (term, documents) in the order of the terms; documents in increasing order."""
        low, high = _cut_range(low, high)
        if low is not None and high is not None and low >= high:
            return iter(())
        sources = [segment.scan(low, high, reverse=reverse) for segment in self._segments]
        if len(sources) == 1:
            return sources[0]
        return _joined(merge(*sources, key=itemgetter(0), reverse=reverse))

    def scan_among(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, BitMap]]:
        """Yields (term, documents of some that have it) in the order of the terms; see ``TermReader``."""
        low, high = _cut_range(low, high)
        if low is not None and high is not None and low >= high:
            return iter(())
        sources = [segment.scan_among(low, high, among, reverse=reverse) for segment in self._segments]
        if len(sources) == 1:
            return sources[0]
        return _united(merge(*sources, key=itemgetter(0), reverse=reverse))

    def in_order(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool
    ) -> list[list[int]] | None:
        """Returns those of some documents that a range of terms has, in the order of the terms.

        One list for each segment; documents that have the same term stand together, in any order. None where
        a document may have several terms, or where walking the terms costs less.
        """
        low, high = _cut_range(low, high)
        found: list[list[int]] = []
        for segment in self._segments:
            part = segment.in_order(low, high, among, reverse=reverse)
            if part is None:
                return None
            if part:
                found.append(part)
        return found

    def verify(self) -> None:
        """Reads and verifies everything. Blocks."""
        for segment in self._segments:
            segment.verify()

    def close(self) -> None:
        """Lets go of the files. Who still asks gets FileNotFoundError."""
        if not self._closed:
            self._closed = True
            for segment in self._segments:
                segment.release()


def _joined(terms: Iterator[tuple[bytes, Sequence[int]]]) -> Iterator[tuple[bytes, Sequence[int]]]:
    current: bytes | None = None
    numbers: Sequence[int] = ()
    for term, more in terms:
        if term == current:
            numbers = sorted({*numbers, *more})
            continue
        if current is not None:
            yield current, numbers
        current, numbers = term, more
    if current is not None:
        yield current, numbers


def _united(terms: Iterator[tuple[bytes, BitMap]]) -> Iterator[tuple[bytes, BitMap]]:
    current: bytes | None = None
    numbers = BitMap()
    for term, more in terms:
        if term == current:
            numbers = numbers | more
            continue
        if current is not None:
            yield current, numbers
        current, numbers = term, more
    if current is not None:
        yield current, numbers


def _cut_range(low: bytes | None, high: bytes | None) -> tuple[bytes | None, bytes | None]:
    if low is not None:
        low = low[:MAXIMUM_TERM_BYTES]
    if high is not None and len(high) > MAXIMUM_TERM_BYTES:
        high = high[:MAXIMUM_TERM_BYTES] + b"\0"
    return low, high


def _union(bitmaps: Sequence[BitMap]) -> BitMap:
    if not bitmaps:
        return BitMap()
    return bitmaps[0] if len(bitmaps) == 1 else BitMap.union(*bitmaps)
