"""Listings: the entries of a directory, or the files below it, page by page.

A page costs what it answers, not what the tree holds: it looks at a bounded number of entries, says what it
found, and gives a cursor to go on from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

from msgspec import Struct

from svc.plugin import (
    SYSTEM_NAMES,
    Entry,
    EntryKind,
    Path,
    Version,
    effective_permissions,
    is_system_path,
    pause,
)
from svc_files.access import Reading, looks
from svc_files.cursors import Cursors
from svc_files.deleted_view import DeletedFile
from svc_files.globs import Glob, PathMatcher
from svc_files.items import listing_item

__all__ = ["DeletedFiles", "Listing", "Page"]

_PAUSE_EVERY = 256
# To read a member of an enum from its class takes ten times as long as to read a name of the module.
_DIRECTORY = EntryKind.DIRECTORY

DeletedFiles = Callable[[Path, "Path | None", int], Iterator[tuple[Path, DeletedFile | None]]]
"""Called with (directory, path to start after, depth): gives what is looked at to find deleted files there,
in path order."""

_Row = tuple[Path, Entry | DeletedFile | None]
"""What is looked at: a path, and what stands or stood there; None for a directory that is walked through."""


class Listing(Struct, frozen=True):
    """What is to be listed.

    Attributes:
        path: the directory, links resolved.
        limit: most rows of a page.
        scan: most entries that a page looks at (see ``looks``): those that it shows, those that it leaves out
            (for the glob, the offset, or the caller's permissions) and the directories on the way.
        depth: 0 lists the children, n the files at most n levels further down, -1 all files below.
        after: place below ``path`` to start behind.
        offset: how many rows to leave out from there. Costs O(log n), and counts as no look, where the tree
            counts what is listed: without a glob, for one who sees everything, and a depth of 0 or -1.
        deleted: gives the deleted files that belong in between, when they are asked for.
    """

    reading: Reading
    path: Path
    limit: int
    scan: int
    depth: int = 0
    glob: Glob | None = None
    after: Path | None = None
    offset: int = 0
    deleted: DeletedFiles | None = None

    def page(self) -> Page:
        """Returns the page, not yet begun."""
        return Page(self)

    @property
    def is_counted(self) -> bool:
        """Whether the tree counts exactly what the listing shows."""
        return (
            self.depth <= 0
            and self.glob is None
            and self.deleted is None
            and self.reading.sees_below(self.path)
            and not (self.path == () and _holds_system_names(self.reading.version))
        )

    def counted_total(self) -> int:
        """How many rows a listing that the tree counts has on all its pages, in O(1)."""
        version = self.reading.version
        return version.entry_count(self.path) if self.depth == 0 else version.totals(self.path).files

    def rows(self, offset: int, matcher: PathMatcher | None) -> Iterator[_Row]:
        """Yields what a page looks at, from the place where it begins to the end of the listing."""
        live = self._live(offset, matcher)
        if self.deleted is None:
            return live
        start = None if self.after is None else self.path + self.after
        return merge(live, self.deleted(self.path, start, self.depth), key=itemgetter(0))

    def _live(self, offset: int, matcher: PathMatcher | None) -> Iterator[_Row]:
        version = self.reading.version
        if self.depth == 0:
            start_name = self.after[0] if self.after else None
            for name, entry in version.entries(self.path, after=start_name, offset=offset):
                yield (*self.path, name), entry
            return
        start = None if self.after is None else self.path + self.after
        enters = None if matcher is None else matcher.may_fit_below
        yield from version.walk_files(
            self.path, after=start, offset=offset, max_depth=self.depth, enters=enters
        )

    def item(self, path: Path, found: Entry | DeletedFile, *, sees_all: bool) -> dict[str, Any] | None:
        """Returns the row of what stands or stood at a path that the glob fits; None if it is hidden."""
        reading = self.reading
        if isinstance(found, DeletedFile):
            if not reading.may_see_deleted(path):
                return None
            item = listing_item(path, found.entry)
            item.update(deleted=True, deleted_at=found.deleted_ms)
            if not reading.sees_all:
                item["effective_permissions"] = effective_permissions(reading.context.identity, path)
            return item
        if reading.sees_all:
            return None if is_system_path(path) else listing_item(path, found)
        is_directory = found.kind is _DIRECTORY
        flags = reading.flags_if_shown(path, directory=is_directory)
        if flags is None:
            return None
        complete = sees_all or not is_directory or reading.sees_below(path)
        item = listing_item(path, found, complete=complete)
        item["effective_permissions"] = flags
        return item


class Page:
    """One page of a listing; iterate over its items once, then ask what comes after it.

    Attributes:
        has_more: whether the listing goes on. What follows may be nothing that is shown, where the page ended
            because it had looked at enough.
        next_cursor: where the next page begins; None when none does.
        total: of rows on all pages, where the tree counts them or the page is all there is; else None.
        looked_at: how many entries were looked at.
    """

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._cursors = cursors_of(listing.reading)
        self.has_more = False
        self.next_cursor: str | None = None
        self.total: int | None = None
        self.looked_at = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        listing = self._listing
        is_counted = listing.is_counted
        if is_counted:
            self.total = listing.counted_total()
        left_out = 0 if is_counted else listing.offset
        # At the root, names of the system may stand in a tree that was made by something else.
        sees_all = is_counted or (listing.path != () and listing.reading.sees_below(listing.path))
        place = () if listing.after is None else listing.path + listing.after
        matcher = None if listing.glob is None else PathMatcher(listing.glob, len(listing.path))
        count, pause_at = 0, _PAUSE_EVERY
        for path, found in listing.rows(listing.offset if is_counted else 0, matcher):
            if self.looked_at >= listing.scan:
                self._end(place, left_out)
                return
            item = None
            if found is not None and (matcher is None or matcher.matches(path)):
                item = listing.item(path, found, sees_all=sees_all)
            if item is not None:
                if left_out:
                    left_out -= 1
                elif count == listing.limit:
                    self._end(place, 0)
                    return
                else:
                    count += 1
                    yield item
            place = path
            self.looked_at += looks(path)
            if self.looked_at >= pause_at:
                pause_at += _PAUSE_EVERY
                pause()
        if not is_counted and listing.after is None:
            self.total = listing.offset - left_out + count

    def _end(self, place: Path, skip: int) -> None:
        self.has_more = True
        self.next_cursor = self._cursors.encode(place[len(self._listing.path) :], skip)


def cursors_of(reading: Reading) -> Cursors:
    """Returns what makes and reads the cursors of whoever reads."""
    return Cursors(reading.context.database.database_id, sealed=not reading.sees_all)


def _holds_system_names(version: Version) -> bool:
    return any(version.get((name,)) is not None for name in SYSTEM_NAMES)
