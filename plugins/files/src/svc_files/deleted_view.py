"""The view of deleted files: every path that held a file or link at HEAD once and holds nothing now.

A path that is put again leaves it. A move is no deletion: the file goes on elsewhere. Of a directory that is
deleted or comes back one row is kept, whatever it holds; what that means for each path below is found out
when somebody asks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial

from svc.plugin import (
    EMPTY_ROOT,
    Commit,
    Database,
    EntryKind,
    Path,
    PathChange,
    Version,
    View,
    ViewStorage,
    pause,
)
from svc_files.deleted_events import (
    DeletedFile,
    PathRow,
    TreeEvent,
    add_tree,
    deleted_in_trees,
    has_rows,
    path_key,
    read_row,
    trees_above,
    trees_at,
    write_row,
)
from svc_files.deleted_walk import search

__all__ = [
    "DELETED_VIEW",
    "DeletedFile",
    "DeletedFilesView",
    "deleted_file",
    "path_key",
    "search_below",
]

DELETED_VIEW = "files.deleted"

_CHANGES_PER_STEP = 256
_DIRECTORY = EntryKind.DIRECTORY


class DeletedFilesView(View):
    """Follows the commit feed and keeps what was deleted from HEAD."""

    name = DELETED_VIEW
    format = 2

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> Generator[None]:
        """Takes one commit in, a bounded number of operations a step."""
        if commit.root == commit.parent_root:
            return
        if before.root == EMPTY_ROOT and not has_rows(storage):
            return  # Nothing was there: the first commit, or the one at the horizon of a collection.
        changes = [
            change
            for transaction in commit.transactions
            if transaction.ref == "HEAD"
            for change in transaction.changes
            if not change.system
        ]
        if not has_rows(storage) and not any(change.kind in ("delete", "ref") for change in changes):
            return
        taking = _Taking(commit, before, after, storage)
        for order in range(start * _CHANGES_PER_STEP, len(changes)):
            taking.take(order, changes[order])
            if (order + 1) % _CHANGES_PER_STEP == 0:
                yield


class _Taking:
    def __init__(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
        self._commit = commit
        self._before = before
        self._after = after
        self._storage = storage
        # By directory: the trees that may know of what is in it, and whether anything is kept of that.
        self._known: dict[Path, tuple[list[TreeEvent], bool]] = {}

    def take(self, order: int, change: PathChange) -> None:
        if change.kind == "ref":
            if change.path == ("HEAD",):
                self._add_tree(order, (), self._before.root, self._after.root)
        elif change.kind == "delete":
            self._delete(order, change.path)
        else:
            self._come(order, change.path, whole=change.kind != "mkdir")

    def _delete(self, order: int, path: Path) -> None:
        entry = self._before.get(path)
        if entry is None:
            return
        if entry.kind is not _DIRECTORY:
            row = read_row(self._storage, path)
            deleted = DeletedFile.of(entry, self._commit.time_ms, self._commit.parent_root)
            moment = (self._commit.sequence, order)
            write_row(self._storage, path, PathRow(moment, deleted, row.has_trees))
            self._known.clear()
        elif entry.totals is not None and (entry.totals.files or entry.totals.symlinks):
            self._add_tree(order, path, entry.hash, None)

    def _come(self, order: int, path: Path, *, whole: bool) -> None:
        """Something stands at a path now, and so do the directories above it."""
        if not path:
            return
        trees, kept = self._around(order, path[:-1])
        if not trees and not kept:
            return
        entry = self._after.get(path) if whole else None
        if entry is None or entry.kind is not _DIRECTORY:
            self._come_back(order, path, trees)
        elif trees or has_rows(self._storage, path):
            self._add_tree(order, path, None, entry.hash)

    def _come_back(self, order: int, path: Path, trees: list[TreeEvent]) -> None:
        """Notes that a path does not count as deleted any more; the directory's trees are given."""
        moment = (self._commit.sequence, order)
        row = read_row(self._storage, path)
        if row.has_trees:
            own = [*trees, *trees_at(self._storage, path, before=moment)]
            trees = sorted(own, key=lambda event: event.moment, reverse=True)
        older = [event for event in trees if event.moment < moment]
        deleted = deleted_in_trees(self._before, older, path)[1]
        if row.moment is not None or deleted is not None:
            write_row(self._storage, path, PathRow(None if deleted is None else moment, None, row.has_trees))

    def _around(self, order: int, directory: Path) -> tuple[list[TreeEvent], bool]:
        """What is kept around the entries of a directory, which stands there now."""
        known = self._known.get(directory)
        if known is None:
            for length in range(len(directory), 0, -1):
                parent = directory[:length]
                entry = self._before.get(parent)
                if entry is not None and entry.kind is _DIRECTORY:
                    break
                above = trees_above(self._storage, parent[:-1])
                self._come_back(order, parent, above)
            trees = trees_above(self._storage, directory)
            known = self._known[directory] = (trees, has_rows(self._storage, directory))
        return known

    def _add_tree(self, order: int, path: Path, gone: bytes | None, came: bytes | None) -> None:
        commit = self._commit
        moment = (commit.sequence, order)
        event = TreeEvent(moment, commit.time_ms, commit.parent_root, gone, came, len(path))
        add_tree(self._storage, path, event)
        self._known.clear()


def deleted_file(database: Database, path: Path) -> DeletedFile | None:
    """Returns what was deleted last at a path, or None when nothing was or something is there again."""

    def look(storage: ViewStorage) -> DeletedFile | None:
        version = database.at()
        if version.get(path) is not None:
            return None
        row = read_row(storage, path)
        is_known, deleted = deleted_in_trees(version, trees_above(storage, path), path, since=row.moment)
        return deleted if is_known else row.deleted

    return database.view(DELETED_VIEW).read(look) if path else None


def search_below(
    database: Database, directory: Path, *, after: Path | None = None, depth: int = -1
) -> Iterator[tuple[Path, DeletedFile | None]]:
    """Yields what was deleted below a directory, in path order; sees every commit so far.

    A path at which the search finds nothing comes too, with None: whoever counts the steps bounds the work.
    ``after`` is an absolute path; a ``depth`` of 0 yields direct children only, -1 everything.
    """
    view = database.view(DELETED_VIEW)
    piece = partial(search, database, directory=directory, depth=depth)
    while True:
        found, place = view.read(partial(piece, after=after))
        yield from found
        if place is None:
            return
        after = place
        pause()
