"""The rows of the history: what one commit did to one path, to one fork, and to all of HEAD.

A path has rows of its own, and *whole* rows, each of which stands for the path and everything below it.
Keys order the newest commit first.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import msgspec
from blake3 import blake3

from svc.plugin import Change, Entry, EntryKind, Hash, Origin, Path

__all__ = [
    "MIXED",
    "Author",
    "ChangeType",
    "CollectedRow",
    "CommitRow",
    "Counts",
    "DirectoryRow",
    "FileRow",
    "ForkRow",
    "PathRow",
    "change_type_of",
    "child_prefix",
    "commit_prefix",
    "decode_commit",
    "decode_extra",
    "decode_fork",
    "decode_path",
    "encode_extra",
    "encode_row",
    "extra_prefix",
    "fork_prefix",
    "is_same_content",
    "path_prefix",
    "row_key",
    "sequence_of_key",
    "whole_prefix",
]

MIXED = -1
"""Stands for the author of a directory's row where several authors changed something below it."""

_LAST = (1 << 64) - 1
_SEQUENCE = struct.Struct(">Q")
_DIGEST = 16


class ChangeType(IntEnum):
    """What a commit did to a path; the name in lower case is what answers say."""

    ADDED = 0
    MODIFIED = 1
    DELETED = 2
    UNCHANGED = 3

    @property
    def label(self) -> str:
        """As answers spell it."""
        return self.name.lower()


class Author(NamedTuple):
    """Who made a change, and what for; each may be unknown."""

    user: str | None
    message: str | None

    @property
    def origin(self) -> Origin | None:
        """The node on which it was made first; None: in this database."""
        return Origin.read(self.user, self.message)


class Counts(NamedTuple):
    """Files and links that a commit added, modified and deleted."""

    added: int = 0
    modified: int = 0
    deleted: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        return Counts(self.added + other.added, self.modified + other.modified, self.deleted + other.deleted)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


class CommitRow(msgspec.Struct, frozen=True, array_like=True):
    """A commit that changed HEAD's tree.

    ``authors`` are the transactions that changed HEAD in it, equal ones once, in order. ``counts`` is what it
    did in all; None: whoever asks has to count.
    """

    time_ms: int
    root: Hash
    parent_root: Hash
    authors: tuple[Author, ...]
    counts: Counts | None


class FileRow(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """What a commit did to a path that holds a file or a link, or held one.

    ``author`` is which of the commit's authors did it. ``kind``, an ``EntryKind``, and what follows are of
    what stands there after it, or of what stood there when nothing does.
    """

    change: ChangeType
    author: int
    kind: int
    size: int
    hash: Hash
    content_type: str | None


class DirectoryRow(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """What a commit did at and below a directory, which is modified when it was there and is there.

    ``author`` is which of the commit's authors did it, or ``MIXED``. ``counts`` are of everything below it,
    at every depth; None: whoever asks has to count.
    """

    change: ChangeType
    author: int
    counts: Counts | None

    @property
    def kind(self) -> int:
        """``EntryKind`` of a directory."""
        return int(EntryKind.DIRECTORY)


class CollectedRow(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """That a commit named a path, or one below it, whose trees a collection has destroyed.

    ``author`` is which of the commit's authors did it, or ``MIXED``.
    """

    author: int
    is_deletion: bool = False

    @property
    def kind(self) -> int | None:
        """``EntryKind`` of what stood there; it is not known any more."""
        return None


PathRow: TypeAlias = FileRow | DirectoryRow | CollectedRow


class ForkRow(msgspec.Struct, frozen=True, array_like=True):
    """A commit that made, moved or ended a fork.

    Attributes:
        root: root hash of the fork after it; None when it ended.
        parent_root: root hash of the fork before it; None when it began.
        authors: the transactions that changed the fork, equal ones once, in order.
        counts: what it did; nothing for one that made or ended it; None: whoever asks has to count.
        is_collected: whether its trees were collected: a root of None is one that is not known then, the
            parent never is, and ``may_begin`` says whether the fork may have begun with it.
    """

    time_ms: int
    root: Hash | None
    parent_root: Hash | None
    authors: tuple[Author, ...]
    counts: Counts | None
    is_collected: bool = False
    may_begin: bool = False


def path_prefix(path: Path) -> bytes:
    """Returns what the keys of a path's own rows begin with.

    Rows of one directory's children stand together, in the order of their names: files that are written
    together are written to few pages.
    """
    if not path:
        return _ROOT
    return child_prefix(path[:-1]) + path[-1].encode("utf-8") + b"\0"


def child_prefix(directory: Path) -> bytes:
    """Returns what ``path_prefix`` of a directory's children begins with; a name and a NUL follow."""
    return b"p" + _digest("/".join(directory))


def whole_prefix(path: Path) -> bytes:
    """Returns what the keys of the rows begin with that stand for a path and all that lies below it."""
    return b"w" + _digest("/".join(path))


def fork_prefix(name: str) -> bytes:
    """Returns what the keys of a fork's rows begin with."""
    return b"f" + _digest(name)


def commit_prefix() -> bytes:
    """Returns what the keys of the rows of commits begin with."""
    return b"c"


def extra_prefix(sequence: int) -> bytes:
    """Returns what the keys of the lists begin with of rows that a commit's operations do not name."""
    return b"x" + _SEQUENCE.pack(sequence)


def row_key(prefix: bytes, sequence: int) -> bytes:
    """Returns the key of a row: keys of one prefix order the newest commit first."""
    return prefix + _SEQUENCE.pack(_LAST - sequence)


def sequence_of_key(key: bytes) -> int:
    """Returns the number of the commit of a row."""
    return _LAST - int(_SEQUENCE.unpack(key[-_SEQUENCE.size :])[0])


def encode_row(row: CommitRow | PathRow | ForkRow) -> bytes:
    """Returns a row as bytes."""
    return _ENCODER.encode(row)


def encode_extra(keys: list[bytes]) -> bytes:
    """Returns a list of keys as bytes."""
    return _ENCODER.encode(keys)


def decode_extra(value: bytes) -> list[bytes]:
    """Returns a list of keys."""
    return _EXTRA.decode(value)


def decode_commit(value: bytes) -> CommitRow:
    """Returns the row of a commit."""
    return _COMMIT.decode(value)


def decode_path(value: bytes) -> PathRow:
    """Returns the row of a path."""
    row: PathRow = _PATH.decode(value)
    return row


def decode_fork(value: bytes) -> ForkRow:
    """Returns the row of a fork."""
    return _FORK.decode(value)


def change_type_of(change: Change) -> ChangeType:
    """Returns what a difference did to its path; a file whose times only differ is modified."""
    if change.before is None:
        return ChangeType.ADDED
    return ChangeType.DELETED if change.after is None else ChangeType.MODIFIED


def is_same_content(before: Entry, after: Entry) -> bool:
    """Whether two entries hold the same, whatever their times."""
    return (before.kind, before.hash, before.content_type) == (after.kind, after.hash, after.content_type)


def _digest(text: str) -> bytes:
    return blake3(text.encode("utf-8")).digest(_DIGEST)


_ROOT = b"p" + _digest("/") + b"\0"  # no path, joined, is a lone slash
_ENCODER = msgspec.msgpack.Encoder()
_COMMIT = msgspec.msgpack.Decoder(CommitRow)
_EXTRA = msgspec.msgpack.Decoder(list[bytes])
_PATH = msgspec.msgpack.Decoder(FileRow | DirectoryRow | CollectedRow)
_FORK = msgspec.msgpack.Decoder(ForkRow)
