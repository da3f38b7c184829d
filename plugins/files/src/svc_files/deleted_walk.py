"""Searching for deleted files below a directory, in path order, from any place, a bounded piece at a time.

Trees that were deleted are walked side by side with the rows of the view and with HEAD. Where two of them are
the same directory, or one is as it is at HEAD, nothing can be found and nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter

from msgspec import Struct

from svc.plugin import Database, Entry, EntryKind, Hash, Path, Version, ViewStorage
from svc_files.deleted_events import (
    DeletedFile,
    PathRow,
    TreeEvent,
    decode_row,
    deleted_in_trees,
    has_rows,
    path_of_key,
    row_key,
    trees_above,
    trees_at,
)

__all__ = ["search"]

_LOOKED_AT_PER_PIECE = 512
_ORDERED_BYTES = 448
_LONGEST_NAME_BYTES = 256

_NO_ROW = PathRow()
_Child = tuple[str, PathRow, bool]
"""A name in a directory, the row of its path, and whether there are rows below it."""


class _Directory(Struct):
    """A directory that is searched; ``head`` is the hash of its tree at HEAD, None where none stands now.

    ``trees`` is what was deleted or came back with directories at or above it, the newest first, as seen
    here; ``children`` the names that may be of something deleted, in order.
    """

    path: Path
    head: Hash | None
    trees: list[TreeEvent]
    children: Iterator[_Child]


def search(
    database: Database, storage: ViewStorage, *, directory: Path, after: Path | None, depth: int
) -> tuple[list[tuple[Path, DeletedFile | None]], Path | None]:
    """Looks for deleted files in one bounded piece; arguments as those of ``search_below``.

    Returns each path that was looked at, with what was deleted there; and the path behind which the next
    piece begins, None at the end.
    """
    walk = _Walk(storage, database.at())
    found = list(islice(walk.paths(directory, after, depth), _LOOKED_AT_PER_PIECE))
    return found, found[-1][0] if len(found) == _LOOKED_AT_PER_PIECE else None


class _Walk:
    def __init__(self, storage: ViewStorage, version: Version) -> None:
        self._storage = storage
        self._version = version

    def paths(
        self, directory: Path, after: Path | None, depth: int
    ) -> Iterator[tuple[Path, DeletedFile | None]]:
        """Yields every path that is looked at below a directory, and what was deleted there."""
        stack = self._stack(directory, after, depth)
        while stack:
            current = stack[-1]
            for name, row, has_below in current.children:
                path = (*current.path, name)
                yield path, self._deleted_at(current, path, row)
                below = self._enter(current, name, row, has_below)
                if below is not None and (depth < 0 or len(stack) <= depth):
                    stack.append(below)
                    break
            else:
                stack.pop()

    def _stack(self, directory: Path, after: Path | None, depth: int) -> list[_Directory]:
        """The directories of a walk that stands behind ``after``, outermost first."""
        trees = []
        for event in trees_above(self._storage, directory):
            here = event.below(self._version, directory[event.depth :])
            if here is not None:
                trees.append(here)
        entry = self._version.get(directory)
        has_below = has_rows(self._storage, directory)
        if after is not None and after[: len(directory)] != directory:
            if after > directory:
                return []
            after = None
        names = () if after is None else after[len(directory) :]
        stack: list[_Directory] = []
        current = self._open(directory, _tree_of(entry), trees, has_below, names[0] if names else None)
        for place, name in enumerate(names):
            if current is None:
                break
            stack.append(current)
            if 0 <= depth <= place:
                return stack
            path = (*current.path, name)
            row = self._row(self._storage.get(row_key(path)))
            following = names[place + 1] if place + 1 < len(names) else None
            below = has_rows(self._storage, path)
            current = self._enter(current, name, row, below, following)
        if current is not None:
            stack.append(current)
        return stack

    def _deleted_at(self, directory: _Directory, path: Path, row: PathRow) -> DeletedFile | None:
        if self._at_head(directory, path[-1]) is not None:
            return None
        trees = directory.trees
        if row.has_trees:
            trees = self._with_own(trees, path)
        is_known, deleted = deleted_in_trees(self._version, trees, path, since=row.moment)
        return deleted if is_known else row.deleted

    def _enter(
        self, directory: _Directory, name: str, row: PathRow, has_below: bool, after: str | None = None
    ) -> _Directory | None:
        path = (*directory.path, name)
        trees = [
            event
            for event in (one.below(self._version, (name,)) for one in directory.trees)
            if event is not None
        ]
        if row.has_trees:
            trees = self._with_own(trees, path)
        if not trees and not has_below:
            return None
        return self._open(path, _tree_of(self._at_head(directory, name)), trees, has_below, after)

    def _open(
        self, path: Path, head: Hash | None, trees: list[TreeEvent], has_below: bool, after: str | None
    ) -> _Directory | None:
        """Returns a directory, without trees that can tell nothing; None when nothing may be found in it."""
        known = {head, None}
        telling: list[TreeEvent] = []
        for event in trees:
            # What is as it is at HEAD is not deleted; what a newer one knows, the older need not say.
            gone = None if event.gone in known else event.gone
            came = None if event.came in known else event.came
            known.update((event.gone, event.came))
            if gone is not None or came is not None:
                telling.append(TreeEvent(event.moment, event.deleted_ms, event.root, gone, came, len(path)))
        if not has_below and all(event.gone is None for event in telling):
            return None
        return _Directory(path, head, telling, self._children(path, telling, has_below, after))

    def _children(
        self, path: Path, trees: list[TreeEvent], has_below: bool, after: str | None
    ) -> Iterator[_Child]:
        sources: list[Iterator[_Child]] = [
            _names_of(self._version.sibling(event.gone), after) for event in trees if event.gone is not None
        ]
        if has_below:
            sources.insert(0, self._rows(path, after))
        last: str | None = None
        for child in merge(*sources, key=itemgetter(0)):
            # Of several with one name the first is that of the rows.
            if child[0] != last:
                last = child[0]
                yield child

    def _rows(self, path: Path, after: str | None) -> Iterator[_Child]:
        if len(row_key(path)) + _LONGEST_NAME_BYTES > _ORDERED_BYTES:
            return self._long_rows(path, after)
        return self._short_rows(path, after)

    def _short_rows(self, path: Path, after: str | None) -> Iterator[_Child]:
        prefix = row_key(path)
        position = prefix if after is None else prefix + after.encode("utf-8") + b"\0\xff"
        while True:
            name: bytes | None = None
            row, has_below = _NO_ROW, False
            for key, value in self._storage.scan(prefix, after=position):
                found, _, rest = key[len(prefix) :].partition(b"\0")
                if name is not None and found != name:
                    yield name.decode("utf-8"), row, has_below
                    row, has_below = _NO_ROW, False
                name = found
                if rest:
                    has_below = True
                    break
                row = self._row(value)
            if name is None:
                return
            yield name.decode("utf-8"), row, has_below
            if not has_below:
                return
            # On behind everything below this name: no UTF-8 text holds 0xff.
            position = prefix + name + b"\0\xff"

    def _long_rows(self, path: Path, after: str | None) -> Iterator[_Child]:
        """The storage orders long keys by their beginning only, so those are gathered and sorted here."""
        found: dict[str, tuple[PathRow, bool]] = {}
        for key, value in self._storage.scan(row_key(path)):
            names = path_of_key(key[1:])[len(path) :]
            if names and (after is None or names[0] > after):
                row, has_below = found.get(names[0], (_NO_ROW, False))
                found[names[0]] = (row, True) if len(names) > 1 else (self._row(value), has_below)
        return iter([(name, row, has_below) for name, (row, has_below) in sorted(found.items())])

    def _row(self, value: bytes | None) -> PathRow:
        return decode_row(self._storage, value)

    def _with_own(self, trees: list[TreeEvent], path: Path) -> list[TreeEvent]:
        own = trees_at(self._storage, path)
        return sorted([*trees, *own], key=lambda event: event.moment, reverse=True)

    def _at_head(self, directory: _Directory, name: str) -> Entry | None:
        head = directory.head
        return None if head is None else self._version.sibling(head).get((name,))


def _names_of(version: Version, after: str | None) -> Iterator[_Child]:
    for name, _ in version.entries((), after=after):
        yield name, _NO_ROW, False


def _tree_of(entry: Entry | None) -> Hash | None:
    return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None
