"""Documents in the order of their paths, from any of them on, forward or backward.

In what a rebuild wrote, numbers increase with the paths: there the order of some documents is that of their
numbers, and only those that are taken are looked at. Elsewhere the index of paths is walked.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from svc.errors import DamagedView
from svc.plugin import Path
from svc_query.api import MAXIMUM_TERM_BYTES
from svc_query.indexing import keys
from svc_query.indexing.path_rows import paths_in_order

if TYPE_CHECKING:
    from pyroaring import BitMap

    from svc_query.indexing.snapshot import IndexSnapshot

__all__ = ["some_in_path_order"]

Pairs = Iterator[tuple[Path, int]]


def some_in_path_order(
    snapshot: IndexSnapshot, path: Path, after: Path | None, among: BitMap, reverse: bool
) -> Pairs:
    """Yields (path, number) of some documents at and below a path; see ``Snapshot.in_path_order``."""
    index = snapshot.path_index()
    sources: list[Pairs] = []
    if index is not None:
        others = index.others
        wanted = among & snapshot.below(path) if index.ascending and path else among
        for documents in index.ascending:
            found = documents & wanted
            if found:
                sources.append(_by_number(snapshot, found, after, reverse))
        if others.segments:
            sources.append(_by_terms(snapshot, others, path, after, among, reverse))
    tail = _of_tail(snapshot, path, after, among, reverse)
    if tail:
        sources.append(iter(tail))
    return sources[0] if len(sources) == 1 else heapq.merge(*sources, reverse=reverse)


def _by_number(snapshot: IndexSnapshot, numbers: BitMap, after: Path | None, reverse: bool) -> Pairs:
    first, end = 0, len(numbers)
    if after is not None:
        at = _position(snapshot, numbers, after)
        if reverse:
            end = at
        else:
            first = at
            if first < end and _path_of(snapshot, numbers[first]) == after:
                first += 1
    for at in range(end - 1, first - 1, -1) if reverse else range(first, end):
        number = numbers[at]
        yield _path_of(snapshot, number), number


def _position(snapshot: IndexSnapshot, numbers: BitMap, path: Path) -> int:
    return bisect_left(range(len(numbers)), path, key=lambda at: _path_of(snapshot, numbers[at]))


def _path_of(snapshot: IndexSnapshot, number: int) -> Path:
    document = snapshot.document(number)
    if document is None:
        raise DamagedView("The row of a document is not there.")
    return document.path


def _of_tail(
    snapshot: IndexSnapshot, path: Path, after: Path | None, among: BitMap, reverse: bool
) -> list[tuple[Path, int]]:
    moment = snapshot.moment
    if not moment.tail:
        return []
    documents = moment.tail_documents
    depth = len(path)
    found: list[tuple[Path, int]] = []
    for number in among & moment.tail_numbers:
        here = documents[number].path
        if here[:depth] == path and (after is None or (here < after if reverse else after < here)):
            found.append((here, number))
    found.sort(reverse=reverse)
    return found


def _by_terms(
    snapshot: IndexSnapshot, reader: Any, path: Path, after: Path | None, among: BitMap, reverse: bool
) -> Pairs:
    """Yields those of other segments, by walking their terms."""
    here: list[tuple[Path, int]] = []
    if path and (after is None or (path < after if reverse else after < path)):
        # The path itself, where it is a document's, comes first.
        exact = keys.key_of_path(path)
        pairs = islice(paths_in_order(snapshot.storage, path), 1)
        here = [(path, number) for key, number in pairs if key == exact and number in reader.documents()]
    if not reverse:
        yield from here
    low, high = _bounds(path, after, reverse)
    for term, numbers in reader.scan_among(low, high, among, reverse=reverse):
        for pair in _of_term(snapshot, path, term, numbers, reverse):
            if pair[0] != path and (after is None or (pair[0] < after if reverse else after < pair[0])):
                yield pair
    if reverse:
        yield from here


def _bounds(path: Path, after: Path | None, reverse: bool) -> tuple[bytes | None, bytes | None]:
    """Between which terms the paths below one stand, behind another or before it."""
    prefix = keys.below_key(path)
    low = prefix[:MAXIMUM_TERM_BYTES] or None
    high: bytes | None = None
    if prefix:
        is_cut = len(prefix) > MAXIMUM_TERM_BYTES
        high = prefix[:MAXIMUM_TERM_BYTES] + b"\0" if is_cut else prefix[:-1] + b"\x02"
    if after is not None:
        # A term that was cut is the same for what stands before and behind it.
        edge = keys.key_of_path(after)
        cut = edge[:MAXIMUM_TERM_BYTES]
        if not reverse:
            low = cut if low is None else max(low, cut)
        else:
            cut += b"" if len(edge) < MAXIMUM_TERM_BYTES else b"\0"
            high = cut if high is None else min(high, cut)
    return low, high


def _of_term(
    snapshot: IndexSnapshot, path: Path, term: bytes, numbers: BitMap, reverse: bool
) -> list[tuple[Path, int]]:
    """The documents of a term; one without a number where many terms were passed over."""
    if not numbers:
        # Whatever a cut left of the last character: it must not stand behind the next document.
        return [(tuple(term.decode("utf-8", "replace" if reverse else "ignore").split("\x01")), 0)]
    if len(term) < MAXIMUM_TERM_BYTES:
        found = keys.path_of_key(term)
        return [(found, number) for number in numbers]
    depth = len(path)
    cut = [(one.path, one.id) for one in snapshot.documents(numbers)]
    return sorted([pair for pair in cut if pair[0][:depth] == path], reverse=reverse)
