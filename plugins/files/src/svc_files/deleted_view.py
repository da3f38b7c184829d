"""The view of deleted files: every path that held a file or link at HEAD once and holds nothing now.

Commits flow in; path → (when, what it was, in which version it still is) stands in the view. A path that is
put again leaves it. A move is no deletion: the file goes on elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import msgspec

from svc.database import Commit, Database, PathChange, Version, ViewStorage
from svc.hashing import Hash
from svc.paths import Path
from svc.tree import Entry, EntryKind

__all__ = ["DELETED_VIEW", "DeletedFile", "DeletedFilesView", "deleted_below", "deleted_file", "path_key"]

DELETED_VIEW = "files.deleted"

_ORDERED_BYTES = 448
_BATCH = 512


class DeletedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file or link that was deleted.

    Attributes:
        deleted_ms: when, Unix milliseconds.
        root: root hash of the last version that holds it.
        kind: ``EntryKind`` of the entry.
        hash, size, created_ms, updated_ms, content_type, record, target: of the entry, as it was.
    """

    deleted_ms: int
    root: Hash
    kind: int
    hash: Hash
    size: int
    created_ms: int
    updated_ms: int
    content_type: str | None = None
    record: Hash | None = None
    target: str | None = None

    @property
    def entry(self) -> Entry:
        """The entry as it stood in the tree; putting it back costs no data."""
        return Entry(
            EntryKind(self.kind),
            self.hash,
            self.size,
            self.created_ms,
            self.updated_ms,
            self.content_type,
            self.record,
            self.target,
        )


class DeletedFilesView:
    """Follows the commit feed and keeps the deleted files of HEAD."""

    name = DELETED_VIEW
    format = 1

    def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
        """Takes one commit in; a function of the commit and the two trees."""
        if commit.root == commit.parent_root:
            return
        changes = [
            change
            for transaction in commit.transactions
            if transaction.ref == "HEAD"
            for change in transaction.changes
            if not change.system
        ]
        if _is_empty(storage) and not any(change.kind in ("delete", "ref") for change in changes):
            return
        parents: set[Path] = set()
        for change in changes:
            if change.kind == "ref":
                self._apply_moved_head(commit, change, before, after, storage)
            elif change.kind == "delete":
                self._apply_deletion(commit, change, before, storage)
            else:
                _forget(change.path, before, storage, parents)
                if change.kind != "mkdir":
                    _forget_below(change.path, after, storage)

    def _apply_deletion(
        self, commit: Commit, change: PathChange, before: Version, storage: ViewStorage
    ) -> None:
        entry = before.get(change.path)
        if entry is None:
            return
        if entry.kind is not EntryKind.DIRECTORY:
            _remember(commit, change.path, entry, storage)
            return
        for path, below in before.walk(change.path, files_only=True):
            if below.kind is not EntryKind.DIRECTORY:
                _remember(commit, path, below, storage)

    def _apply_moved_head(
        self, commit: Commit, change: PathChange, before: Version, after: Version, storage: ViewStorage
    ) -> None:
        """HEAD went to another version: what is not in it counts as deleted, what is in it as put."""
        if change.path != ("HEAD",):
            return
        parents: set[Path] = set()
        for difference in before.diff(after):
            gone, come = difference.before, difference.after
            if come is not None:
                _forget(difference.path, before, storage, parents)
            elif gone is not None and gone.kind is not EntryKind.DIRECTORY:
                _remember(commit, difference.path, gone, storage)


def path_key(path: Path) -> bytes:
    """Returns the key of a path: keys order as paths do, and a directory's is a prefix of its files'."""
    return b"".join([segment.encode("utf-8") + b"\0" for segment in path])


def deleted_file(database: Database, path: Path) -> DeletedFile | None:
    """Returns what was deleted last at a path, or None when nothing was or something is there again."""
    value = database.view(DELETED_VIEW).read(lambda storage: storage.get(path_key(path)))
    return None if value is None else msgspec.msgpack.decode(value, type=DeletedFile)


def deleted_below(
    database: Database, directory: Path, *, after: Path | None = None, depth: int = -1
) -> Iterator[tuple[Path, DeletedFile]]:
    """Yields (path, what was deleted) below a directory, in path order; sees every commit so far.

    Args:
        database: the database.
        directory: where; it need not exist any more.
        after: start behind this absolute path.
        depth: 0 yields direct children only, -1 everything.
    """
    view = database.view(DELETED_VIEW)
    while True:
        batch = view.read(partial(_batch, directory=directory, after=after, depth=depth))
        yield from batch
        if len(batch) < _BATCH:
            return
        after = batch[-1][0]


def _batch(
    storage: ViewStorage, directory: Path, after: Path | None, depth: int
) -> list[tuple[Path, DeletedFile]]:
    rows = _ordered_rows(storage, directory, after, depth)
    return [(path, msgspec.msgpack.decode(value, type=DeletedFile)) for path, value in islice(rows, _BATCH)]


def _ordered_rows(
    storage: ViewStorage, directory: Path, after: Path | None, depth: int
) -> Iterator[tuple[Path, bytes]]:
    """Rows in path order. The storage orders long keys by their beginning only, so those are sorted here."""
    group: list[tuple[Path, bytes]] = []
    shared = b""
    for key, value in _rows(storage, directory, after, depth):
        if group and key[:_ORDERED_BYTES] != shared:
            yield from sorted(group)
            group = []
        path = tuple(key.decode("utf-8").split("\0")[:-1])
        if after is not None and path <= after:
            continue
        if len(key) < _ORDERED_BYTES:
            yield path, value
        else:
            shared = key[:_ORDERED_BYTES]
            group.append((path, value))
    yield from sorted(group)


def _rows(
    storage: ViewStorage, directory: Path, after: Path | None, depth: int
) -> Iterator[tuple[bytes, bytes]]:
    prefix = path_key(directory)
    start = None if after is None else path_key(after)[: _ORDERED_BYTES - 1]
    levels = len(directory) + depth + 1
    while True:
        skip: bytes | None = None
        for key, value in storage.scan(prefix, after=start):
            if key == prefix:
                continue
            if depth >= 0 and key.count(b"\0") > levels:
                # Too deep: go on behind everything below this directory (no UTF-8 text holds 0xff).
                skip = b"\0".join(key.split(b"\0")[:levels]) + b"\0\xff"
                if len(skip) < _ORDERED_BYTES:
                    break
                skip = None
                continue
            yield key, value
        if skip is None:
            return
        start = skip


def _remember(commit: Commit, path: Path, entry: Entry, storage: ViewStorage) -> None:
    row = DeletedFile(
        commit.time_ms,
        commit.parent_root,
        int(entry.kind),
        entry.hash,
        entry.size,
        entry.created_ms,
        entry.updated_ms,
        entry.content_type,
        entry.record,
        entry.target,
    )
    storage.put(path_key(path), msgspec.msgpack.encode(row))


def _is_empty(storage: ViewStorage) -> bool:
    return next(storage.scan(), None) is None


def _forget(path: Path, before: Version, storage: ViewStorage, parents: set[Path]) -> None:
    """Takes out a path where something stands now, and the parents that appeared for it.

    Args:
        path: where something was put.
        before: the tree before the commit.
        storage: the view's data.
        parents: directories that need no second look in this commit; grows.
    """
    storage.delete(path_key(path))
    for length in range(len(path) - 1, 0, -1):
        parent = path[:length]
        if parent in parents:
            return
        parents.add(parent)
        if before.get(parent) is not None:
            return
        storage.delete(path_key(parent))


def _forget_below(path: Path, after: Version, storage: ViewStorage) -> None:
    """Takes out what came back with a whole directory: a copy, a move, a restored version of it."""
    keys = [key for key, _ in storage.scan(path_key(path))]
    for key in keys:
        if after.get(tuple(key.decode("utf-8").split("\0")[:-1])) is not None:
            storage.delete(key)
