"""Listings: the entries of a directory, or everything below it, page by page.

A reading (a version seen through permissions) and a request flow in; items flow out one by one, in path
order. Nothing is gathered that is not on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any

from svc.database import Version, pause
from svc.paths import SYSTEM_NAMES, Path
from svc.tree import EntryKind
from svc_files.access import Reading
from svc_files.cursors import encode_cursor
from svc_files.globs import Glob
from svc_files.items import listing_item

__all__ = ["DeletedItems", "Listing", "Page"]

_PAUSE_EVERY = 256

Item = tuple[Path, dict[str, Any]]
DeletedItems = Callable[[Path, "Path | None", int], Iterator[Item]]
"""Called with (directory, path to start after, depth): gives the deleted files there, in path order."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is to be listed.

    Attributes:
        reading: the version and who reads it.
        path: the directory, links resolved.
        depth: 0 lists the children, n the files at most n levels further down, -1 all files below.
        glob: only what matches.
        after: place below ``path`` to start behind.
        offset: how many rows to skip.
        limit: rows of a page; None takes all.
        deleted: gives the deleted files that belong in between, when they are asked for.
        count_maximum: how many entries may be looked at to state a total.
    """

    reading: Reading
    path: Path
    depth: int = 0
    glob: Glob | None = None
    after: Path | None = None
    offset: int = 0
    limit: int | None = None
    deleted: DeletedItems | None = None
    count_maximum: int = 100_000

    def page(self) -> Page:
        """Returns the page, not yet begun."""
        return Page(self)

    @property
    def is_plain(self) -> bool:
        """Whether the tree's own order and counts are those of the listing: nothing is left out or added."""
        return (
            self.reading.sees_all
            and self.glob is None
            and self.deleted is None
            and not (self.path == () and _holds_system_names(self.reading.version))
        )

    def total(self) -> int | None:
        """How many rows the listing has on all its pages; None when only a long walk could say."""
        version = self.reading.version
        if self.is_plain and self.depth == 0:
            return version.entry_count(self.path)
        if self.is_plain and self.depth < 0:
            return version.totals(self.path).files
        if self.depth == 0 and version.entry_count(self.path) > self.count_maximum:
            return None
        if self.depth != 0 and version.totals(self.path).files > self.count_maximum:
            return None
        count = sum(1 for _ in islice(self._rows(None), self.count_maximum + 1))
        return None if count > self.count_maximum else count

    def rows(self) -> Iterator[Item]:
        """Yields (path, item) from the place where the page begins to the end of the listing."""
        if self.is_plain and self.depth == 0:
            return self._live(self.after, self.offset)
        return islice(self._rows(self.after), self.offset, None)

    def _rows(self, after: Path | None) -> Iterator[Item]:
        live = self._live(after, 0)
        if self.deleted is None:
            return live
        start = None if after is None else self.path + after
        below = len(self.path)
        gone = (
            row
            for row in self.deleted(self.path, start, self.depth)
            if self.glob is None or self.glob.matches(row[0], below)
        )
        return merge(live, gone, key=lambda row: row[0])

    def _live(self, after: Path | None, offset: int) -> Iterator[Item]:
        below = len(self.path)
        for number, (path, entry) in enumerate(self._entries(after, offset)):
            if number % _PAUSE_EVERY == _PAUSE_EVERY - 1:
                pause()
            if self.glob is not None and not self.glob.matches(path, below):
                continue
            if not self.reading.shows(path):
                continue
            item = listing_item(path, entry)
            flags = self.reading.permissions(path)
            if flags is not None:
                item["effective_permissions"] = flags
            yield path, item

    def _entries(self, after: Path | None, offset: int) -> Iterator[tuple[Path, Any]]:
        version = self.reading.version
        if self.depth == 0:
            start_name = after[0] if after else None
            for name, entry in version.entries(self.path, after=start_name, offset=offset):
                yield (*self.path, name), entry
            return
        start = None if after is None else self.path + after
        for path, entry in version.walk(self.path, after=start, files_only=True, max_depth=self.depth):
            if entry.kind is EntryKind.FILE:
                yield path, entry


class Page:
    """One page of a listing; iterate over its items once, then ask what comes after it.

    Attributes:
        has_more: whether rows follow; known after the iteration.
        next_cursor: where the next page begins; None when none does.
        count: rows that were given.
    """

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self.has_more = False
        self.next_cursor: str | None = None
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        limit = self._listing.limit
        last: Path = ()
        for path, item in self._listing.rows():
            if limit is not None and self.count >= limit:
                self.has_more = True
                self.next_cursor = encode_cursor(last[len(self._listing.path) :])
                return
            self.count += 1
            last = path
            yield item


def _holds_system_names(version: Version) -> bool:
    return any(version.get((name,)) is not None for name in SYSTEM_NAMES)
