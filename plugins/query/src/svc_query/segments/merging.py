"""Makes one segment of several, without the documents that are dead."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path as FilePath

import msgspec
from pyroaring import BitMap

from svc_query.segments.layout import RAW_POSTINGS, bitmap_of, encode_postings
from svc_query.segments.manifest import SegmentEntry, decode_manifest, encode_manifest
from svc_query.segments.segment import Segment
from svc_query.segments.writing import BlockBuffer, SegmentFile

__all__ = ["MERGED_AT_ONCE", "Merge", "merge_plan"]

MERGED_AT_ONCE = 8
"""So many segments of about the same size become one."""
STEP_SECONDS = 0.008

Posting = tuple[int, bytes]


def merge_plan(directory: FilePath, manifest: bytes | None, dead: BitMap, *, ordered: bool) -> Merge | None:
    """Returns the next merge that is worth its cost; None when there is none.

    Eight segments of about the same size become one: below 512 documents all sizes count as the same, above
    they go by powers of eight. A segment that is dead by half is written anew.

    Raises CorruptRecord for a damaged manifest or segment, and FileNotFoundError where one is gone.
    """
    entries = decode_manifest(manifest).segments
    tiers: dict[int, list[SegmentEntry]] = {}
    for entry in entries:
        tiers.setdefault(_tier(entry.documents), []).append(entry)
    for _, members in sorted(tiers.items()):
        if len(members) >= MERGED_AT_ONCE:
            return Merge(directory, members[:MERGED_AT_ONCE], dead, ordered=ordered)
    for entry in entries:
        # The range of numbers says at most how many are dead, without the file being opened.
        if 2 * dead.range_cardinality(entry.first, entry.last + 1) >= entry.documents:
            segment = Segment(directory / entry.name)
            try:
                gone = segment.documents().intersection_cardinality(dead)
            finally:
                segment.release()
            if 2 * gone >= entry.documents:
                return Merge(directory, [entry], dead, ordered=ordered)
    return None


def _tier(documents: int) -> int:
    return max(0, (documents.bit_length() - 10) // 3 + 1)


class Merge:
    """A merge, planned. Run it to the end, then apply it to the manifest of that moment."""

    def __init__(
        self, directory: FilePath, entries: Sequence[SegmentEntry], dead: BitMap, *, ordered: bool
    ) -> None:
        self.entries = tuple(entries)
        self._directory = directory
        self._dead = dead.copy()
        self._ordered = ordered
        self._made: SegmentEntry | None = None
        self._finished = False

    def run(self) -> Generator[None, None, None]:
        """Writes the new segment, in steps of some 10 ms; memory is that of some blocks. Blocks.

        A generator that is closed before its end removes what it has written; the merge can be run again.
        Raises as ``merge_plan``.
        """
        with ExitStack() as stack:
            sources = []
            for entry in self.entries:
                segment = Segment(self._directory / entry.name)
                stack.callback(segment.release)
                sources.append(_Source(segment, self._dead))
            sources.sort(key=lambda source: source.first)
            documents = BitMap.union(*(source.documents for source in sources))
            if documents:
                target = SegmentFile(self._directory, ordered=self._ordered)
                stack.callback(target.abandon)
                yield from self._copy(sources, BlockBuffer(target))
                self._made = target.finish(documents)
        self._finished = True

    def apply(self, manifest: bytes) -> bytes:
        """Returns a manifest, to which flushes may have added, with the new segment in place of the old ones.

        Raises ValueError where the merge has not been run to its end, or the manifest does not have its
        segments.
        """
        if not self._finished:
            raise ValueError("The merge has not been run to its end.")
        decoded = decode_manifest(manifest)
        if not set(self.entries) <= set(decoded.segments):
            raise ValueError("The manifest does not have the segments that were merged.")
        kept: list[SegmentEntry] = []
        for entry in decoded.segments:
            if entry not in self.entries:
                kept.append(entry)
            elif entry == self.entries[0] and self._made is not None:
                kept.append(self._made)
        return encode_manifest(msgspec.structs.replace(decoded, segments=tuple(kept)))

    @staticmethod
    def _copy(sources: Sequence[_Source], buffer: BlockBuffer) -> Generator[None, None, None]:
        in_turn = all(left.last < right.first for left, right in pairwise(sources))
        until = time.monotonic() + STEP_SECONDS
        active = [source for source in sources if source.fill()]
        while active:
            # Up to this term every source has all that it has; nothing less comes later.
            frontier = min(source.terms[-1] for source in active)
            terms, postings = _merge_taken([source.take(frontier) for source in active], in_turn=in_turn)
            buffer.add(terms, postings)
            active = [source for source in active if source.fill()]
            if time.monotonic() >= until:
                yield
                until = time.monotonic() + STEP_SECONDS
        buffer.close()


class _Source:
    """One of the segments that are merged: a block of it at a time, without the dead."""

    def __init__(self, segment: Segment, dead: BitMap) -> None:
        self._dead = segment.documents() & dead
        self.documents = segment.documents() - self._dead
        self.first: int = self.documents.min() if self.documents else 0
        self.last: int = self.documents.max() if self.documents else -1
        self._blocks = segment.blocks()
        self._at = 0
        self.terms: list[bytes] = []
        self._postings: list[Posting] = []

    def fill(self) -> bool:
        """Sees to it that there are terms; False when there are no more."""
        while self._at >= len(self.terms):
            block = next(self._blocks, None)
            if block is None:
                return False
            self._at = 0
            self.terms, self._postings = block.terms(), block.payloads()
            if self._dead:
                self._leave_out_dead()
        return True

    def _leave_out_dead(self) -> None:
        terms, postings = [], []
        for term, (count, payload) in zip(self.terms, self._postings, strict=True):
            numbers = bitmap_of(count, payload)
            if not numbers.isdisjoint(self._dead):
                numbers -= self._dead
                if not numbers:
                    continue
                postings.append((len(numbers), encode_postings(numbers)))
            else:
                postings.append((count, payload))
            terms.append(term)
        self.terms, self._postings = terms, postings

    def take(self, frontier: bytes) -> tuple[list[bytes], list[Posting]]:
        """Returns all terms up to one, inclusive, and goes on behind them."""
        start = self._at
        self._at = end = bisect_right(self.terms, frontier, start)
        return self.terms[start:end], self._postings[start:end]


def _merge_taken(
    taken: Sequence[tuple[list[bytes], list[Posting]]], *, in_turn: bool
) -> tuple[Sequence[bytes], Sequence[Posting]]:
    """Brings slices of several sources into one order; measured at twice the speed of ``heapq.merge``."""
    taken = [piece for piece in taken if piece[0]]
    if len(taken) == 1:
        return taken[0]
    grouped: dict[bytes, list[Posting]] = {}
    for terms, postings in taken:
        for term, posting in zip(terms, postings, strict=True):
            known = grouped.get(term)
            if known is None:
                grouped[term] = [posting]
            else:
                known.append(posting)
    ordered = sorted(grouped)
    return ordered, [_join(grouped[term], in_turn=in_turn) for term in ordered]


def _join(postings: list[Posting], *, in_turn: bool) -> Posting:
    if len(postings) == 1:
        return postings[0]
    total = sum(count for count, _ in postings)
    if in_turn and total < RAW_POSTINGS:
        return total, b"".join([payload for _, payload in postings])
    numbers = BitMap.union(*(bitmap_of(count, payload) for count, payload in postings))
    return len(numbers), encode_postings(numbers)
