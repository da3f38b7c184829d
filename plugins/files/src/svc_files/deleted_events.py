"""What the view of deleted files keeps: one row for what happened at a path, however much that was.

A file that was deleted is a row with all that it was. A directory that was deleted, put back or replaced is a
row with the hash of its tree: what that holds was deleted, or came back, at that moment. Whether a path
counts as deleted is what the newest row says that knows of it, at the path itself or at a directory above.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec
from blake3 import blake3

from svc.plugin import Entry, EntryKind, Hash, Path, Version, ViewStorage

__all__ = [
    "DeletedFile",
    "Moment",
    "PathRow",
    "TreeEvent",
    "add_tree",
    "decode_row",
    "deleted_in_trees",
    "has_rows",
    "path_key",
    "path_of_key",
    "read_row",
    "row_key",
    "trees_above",
    "trees_at",
    "write_row",
]

Moment = tuple[int, int]
"""When something happened: number of the commit, and place of the operation in it."""

_ROW, _TREE = b"p", b"t"
_MOMENT = struct.Struct(">QI")
_LAST = (1 << 64) - 1, (1 << 32) - 1
_COMPARED = 16


class DeletedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file or link that was deleted, as it was, with its ``EntryKind``; ``root`` last held it."""

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

    @classmethod
    def of(cls, entry: Entry, deleted_ms: int, root: Hash) -> DeletedFile:
        """Returns what is kept of an entry."""
        return cls(
            deleted_ms,
            root,
            int(entry.kind),
            entry.hash,
            entry.size,
            entry.created_ms,
            entry.updated_ms,
            entry.content_type,
            entry.record,
            entry.target,
        )

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


class PathRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of one path.

    Attributes:
        moment: when the path itself was deleted or came back; None when nothing of the kind is kept.
        deleted: what was deleted; None with a moment says that the path came back.
        has_trees: whether trees are kept that were deleted or came back here.
    """

    moment: Moment | None = None
    deleted: DeletedFile | None = None
    has_trees: bool = False


class TreeEvent(msgspec.Struct, frozen=True, array_like=True):
    """A directory that was deleted, came back, or was replaced by another tree.

    Attributes:
        root: of the version before.
        gone: hash of the tree whose files and links were deleted, but for those that ``came`` has too.
        came: hash of the tree that came.
        depth: number of segments of the path at which it happened.
    """

    moment: Moment
    deleted_ms: int
    root: Hash
    gone: Hash | None
    came: Hash | None
    depth: int

    def below(self, versions: Version, names: Path) -> TreeEvent | None:
        """Returns what it means for a directory further down; None when it knows of none there."""
        gone = _subtree(versions, self.gone, names)
        came = _subtree(versions, self.came, names)
        if gone is None and came is None:
            return None
        return TreeEvent(self.moment, self.deleted_ms, self.root, gone, came, self.depth + len(names))


def path_key(path: Path) -> bytes:
    """Returns the key of a path: keys order as paths do, and a directory's is a prefix of its files'."""
    return b"".join([segment.encode("utf-8") + b"\0" for segment in path])


def path_of_key(key: bytes) -> Path:
    """Returns the path of a key."""
    return tuple(key.decode("utf-8").split("\0")[:-1])


def row_key(path: Path) -> bytes:
    """Returns where the row of a path stands."""
    return _ROW + path_key(path)


def has_rows(storage: ViewStorage, path: Path = ()) -> bool:
    """Whether anything is kept of a path or of one below it."""
    return next(storage.scan(row_key(path)), None) is not None


def read_row(storage: ViewStorage, path: Path) -> PathRow:
    """Returns the row of a path; an empty one when there is none."""
    return decode_row(storage, storage.get(row_key(path)))


def decode_row(storage: ViewStorage, value: bytes | None) -> PathRow:
    """Returns a row that was stored; what was deleted before a horizon is not there any more."""
    row = PathRow() if value is None else msgspec.msgpack.decode(value, type=PathRow)
    if row.moment is None or row.moment[0] > storage.horizon:
        return row
    return PathRow(has_trees=row.has_trees)


def write_row(storage: ViewStorage, path: Path, row: PathRow) -> None:
    """Stores the row of a path; takes away one that says nothing."""
    if row.moment is None and not row.has_trees:
        storage.delete(row_key(path))
    else:
        storage.put(row_key(path), msgspec.msgpack.encode(row))


def add_tree(storage: ViewStorage, path: Path, event: TreeEvent) -> None:
    """Stores a tree, and takes away older ones at the path of which it says everything."""
    known = {event.gone, event.came, None}
    for compared, older in enumerate(trees_at(storage, path, before=event.moment)):
        if compared >= _COMPARED:
            break
        if older.gone in known and older.came in known:
            storage.delete(_tree_key(path, older.moment))
    storage.put(_tree_key(path, event.moment), msgspec.msgpack.encode(event))
    write_row(storage, path, PathRow(has_trees=True))


def trees_at(storage: ViewStorage, path: Path, before: Moment | None = None) -> Iterator[TreeEvent]:
    """Yields the trees of one path that are not collected, the newest first; only those before ``before``."""
    after = None if before is None else _tree_key(path, before)
    for _, value in storage.scan(_tree_prefix(path), after=after):
        event = msgspec.msgpack.decode(value, type=TreeEvent)
        if event.moment[0] <= storage.horizon:
            return
        yield event


def trees_above(storage: ViewStorage, path: Path) -> list[TreeEvent]:
    """Returns the trees of a path and of the directories above it, the newest first; see ``trees_at``."""
    found: list[TreeEvent] = []
    for length in range(len(path) + 1):
        if read_row(storage, path[:length]).has_trees:
            found += trees_at(storage, path[:length])
    found.sort(key=lambda event: event.moment, reverse=True)
    return found


def deleted_in_trees(
    versions: Version, trees: list[TreeEvent], path: Path, since: Moment | None = None
) -> tuple[bool, DeletedFile | None]:
    """Asks trees, the newest first: whether one knows of the path, and what was deleted according to it."""
    for event in trees:
        if since is not None and event.moment <= since:
            break
        names = path[event.depth :]
        if _entry_in(versions, event.came, names) is not None:
            return True, None
        entry = _entry_in(versions, event.gone, names)
        if entry is not None:
            if entry.kind is EntryKind.DIRECTORY:
                return True, None
            return True, DeletedFile.of(entry, event.deleted_ms, event.root)
    return False, None


def _entry_in(versions: Version, tree: Hash | None, names: Path) -> Entry | None:
    return None if tree is None else versions.sibling(tree).get(names)


def _subtree(versions: Version, tree: Hash | None, names: Path) -> Hash | None:
    if tree is None or not names:
        return tree
    entry = versions.sibling(tree).get(names)
    return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None


def _tree_prefix(path: Path) -> bytes:
    """A hash in the place of the path: keys of any path are short, and those of one path stand together."""
    return _TREE + blake3(path_key(path)).digest(16)


def _tree_key(path: Path, moment: Moment) -> bytes:
    return _tree_prefix(path) + _MOMENT.pack(_LAST[0] - moment[0], _LAST[1] - moment[1])
