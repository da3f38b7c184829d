"""Where a row matches: ranges of the field's value, a snippet, and places in the file that can be fetched.

A hit is found in the value that is indexed. Where that value is a piece of the file's own text, or a string
of its JSON, the hit also says where it stands in the file, in the words of ``POST /files/fetch``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from svc.errors import SvcError
from svc.plugin import Entry, EntryKind, Version, pause
from svc_query.planning.given import ranges_of
from svc_query.planning.nodes import LeafNode
from svc_query.snapshot import VIRTUAL_FIELDS, Document, Snapshot

__all__ = ["Hit", "hits_of", "locate", "text_reader"]

_MOST_HITS = 20
"""Hits of a row."""
_AROUND = 80
"""Characters of a snippet before the first hit and behind the last."""
_MOST_FILE_BYTES = 4 * 1024 * 1024
_MOST_BYTES = 32 * 1024 * 1024
_MOST_NODES = 100_000


class Hit(NamedTuple):
    """A stretch of a value that holds one match or several that stand close together.

    ``ranges`` are where the whole ``value`` of the field matches, in characters.
    """

    field: str
    value: str
    ranges: Sequence[tuple[int, int]]


def hits_of(document: Document, leaves: Sequence[LeafNode], snapshot: Snapshot) -> list[Hit]:
    """Returns where the texts of a document match; equal hits of several leaves are one."""
    found: dict[tuple[str, int], set[tuple[int, int]]] = {}
    texts: dict[tuple[str, int], str] = {}
    for leaf in leaves:
        for number, value in enumerate(snapshot.values(document, leaf.field)):
            if not isinstance(value, str):
                continue
            for predicate in leaf.predicates:
                given = predicate.matches(value)
                ranges = ranges_of(leaf.operator, predicate, given, value, _MOST_HITS)
                found.setdefault((leaf.field, number), set()).update(ranges)
                texts[leaf.field, number] = value
    hits = [
        Hit(field, texts[field, number], group)
        for (field, number), ranges in sorted(found.items())
        for group in _grouped(_disjoint(ranges))
    ]
    return hits[:_MOST_HITS]


def locate(
    document: Document, hits: Sequence[Hit], read: Callable[[Document], str | None]
) -> list[dict[str, Any]]:
    """Returns the hits of a document, as ``hits_of`` gave them, as an answer shows them.

    ``read`` returns the text of the file; None when it has none, or not the one that was indexed.
    """
    content: str | None = None
    if any(hit.field not in VIRTUAL_FIELDS for hit in hits):
        content = read(document)
    places = _Places(document, content)
    return [_shown(hit, places) for hit in hits]


def text_reader(version: Version) -> Callable[[Document], str | None]:
    """Returns what reads the texts of documents at a version, up to 32 MiB in all, each up to 4 MiB."""
    left = _MOST_BYTES

    def read(document: Document) -> str | None:
        nonlocal left
        entry: Entry | None = version.get(document.path)
        if entry is None or entry.kind is not EntryKind.FILE or entry.hash != document.hash:
            return None
        if entry.size > min(left, _MOST_FILE_BYTES):
            return None
        left -= entry.size
        pause()
        try:
            return version.read_all(entry).decode("utf-8")
        except (UnicodeDecodeError, SvcError):
            return None

    return read


class _Places:
    """Where values stand in the text of a file."""

    def __init__(self, document: Document, content: str | None) -> None:
        self._content = content
        self._lines: list[int] | None = None
        self._pointers: dict[str, str] | None = None
        content_type = (document.content_type or "").partition(";")[0].strip().lower()
        name = document.path[-1].lower() if document.path else ""
        self._is_json = content_type.endswith(("/json", "+json")) or name.endswith(".json")

    def of(self, hit: Hit) -> dict[str, Any]:
        """Returns where a hit is, as a fetch takes it; nothing where that is not known."""
        content = self._content
        if content is None or hit.field in VIRTUAL_FIELDS or not hit.value:
            return {}
        if self._is_json:
            pointer = self._pointer(hit)
            return {} if pointer is None else {"json_pointer": pointer}
        at = content.find(hit.value)
        if at < 0:
            return {}
        first, last = at + hit.ranges[0][0], at + hit.ranges[-1][1]
        line = self._line(first)
        return {"line": line, "lines": [line, self._line(max(first, last - 1))], "chars": [first, last]}

    def _line(self, position: int) -> int:
        if self._lines is None:
            assert self._content is not None, "asked only where there is a text"
            self._lines = [number for number, one in enumerate(self._content) if one == "\n"]
        return bisect_right(self._lines, position - 1) + 1

    def _pointer(self, hit: Hit) -> str | None:
        if self._pointers is None:
            self._pointers = {}
            assert self._content is not None, "asked only where there is a text"
            try:
                document = msgspec.json.decode(self._content)
            except (msgspec.DecodeError, RecursionError):
                return None
            for pointer, value in islice(_strings(document), _MOST_NODES):
                self._pointers.setdefault(value, pointer)
                # The same text may stand at several places: one that is called like the field is the best.
                self._pointers.setdefault(f"{pointer.rpartition('/')[2]}\0{value}", pointer)
        return self._pointers.get(f"{hit.field}\0{hit.value}") or self._pointers.get(hit.value)


def _strings(document: Any) -> Iterator[tuple[str, str]]:
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, str):
            yield pointer, value
        elif isinstance(value, dict):
            stack.extend(
                (f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}", one)
                for key, one in reversed(value.items())
            )
        elif isinstance(value, list):
            stack.extend((f"{pointer}/{number}", value[number]) for number in range(len(value) - 1, -1, -1))


def _shown(hit: Hit, places: _Places) -> dict[str, Any]:
    start, end = hit.ranges[0][0], hit.ranges[-1][1]
    low, high = _snippet_bounds(hit.value, start, end)
    return {
        "field": hit.field,
        "start": start,
        "end": end,
        **places.of(hit),
        "snippet": hit.value[low:high],
        "highlights": [[one - low, other - low] for one, other in hit.ranges],
    }


def _snippet_bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """Where a snippet around a hit begins and ends: between words, where there are some."""
    low, high = max(0, start - _AROUND), min(len(text), end + _AROUND)
    if low > 0:
        space = text.find(" ", low, start)
        low = space + 1 if space >= 0 else low
    if high < len(text):
        space = text.rfind(" ", end, high)
        high = space if space >= 0 else high
    return low, high


def _disjoint(ranges: set[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _grouped(ranges: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Ranges that fit into one snippet, together."""
    group: list[tuple[int, int]] = []
    for one in ranges:
        if group and one[1] - group[0][0] > 2 * _AROUND:
            yield group
            group = []
        group.append(one)
    if group:
        yield group
