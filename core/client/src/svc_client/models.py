"""What a server answers, as values. Members are named and ordered as on the wire.

Times are Unix milliseconds, sizes bytes, hashes lower-case hex. ``UNSET`` stands for a member that an answer
does not have.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Generic, TypeVar

from msgspec import UNSET, Struct, UnsetType

__all__ = [
    "Blame",
    "BlameEntry",
    "BlameLine",
    "BlobConfig",
    "ChangeSide",
    "Commit",
    "CommitDetails",
    "CommittedFile",
    "Comparison",
    "Counts",
    "DeletedFile",
    "EntryInfo",
    "EntryType",
    "HistoryRow",
    "Page",
    "PathChange",
    "StoredFile",
]

T = TypeVar("T")


class EntryType(IntEnum):
    """What stands at a path."""

    FILE = 2
    DIRECTORY = 3
    SYMLINK = 8


class Page(Struct, Generic[T], frozen=True):
    """A part of a list.

    Attributes:
        items: what it holds; it may be empty although more follows.
        next_cursor: what the next page begins at, as its ``after``; None: this is the last.
        total: how many there are in all, where the server says it.
        truncated: whether the list ends before all was looked at.
        damaged_commits: numbers of commits that were met and whose records the server can't read.
    """

    items: list[T]
    next_cursor: str | None
    total: int | None = None
    truncated: bool = False
    damaged_commits: tuple[int, ...] = ()


class EntryInfo(Struct, frozen=True, kw_only=True):
    """A file, directory or link. What a server does not tell of a directory is None."""

    path: str
    name: str
    entry_type: EntryType
    hash: str | None
    size: int | None
    created_at: int | None
    updated_at: int | None
    content_type: str | None = None
    target: str | UnsetType | None = UNSET
    file_count: int | UnsetType | None = UNSET
    total_size: int | UnsetType | None = UNSET
    effective_permissions: str | UnsetType = UNSET
    version: str | UnsetType = UNSET


class StoredFile(Struct, frozen=True, kw_only=True):
    """A file as a write left it; ``created`` says whether nothing stood there before."""

    path: str
    size: int
    content_type: str
    content_hash: str
    created_at: int
    updated_at: int
    version: str
    created: bool = False


class CommittedFile(Struct, frozen=True):
    """A file that a commit of chunks made."""

    path: str
    size: int
    content_type: str | None
    content_hash: str
    created: bool


class DeletedFile(Struct, frozen=True, kw_only=True):
    """A file or link that was deleted, and is not there again."""

    path: str
    name: str
    entry_type: EntryType
    deleted_at: int
    size: int
    content_hash: str
    content_type: str | None = None
    created_at: int | None = None
    updated_at: int | None = None


class BlobConfig(Struct, frozen=True):
    """How a server takes chunks. ``chunking`` says how it cuts contents itself."""

    hash_algorithm: str
    chunk_size: int
    chunk_hash_prefix: str
    chunking: dict[str, Any]


class Counts(Struct, frozen=True):
    """Numbers of files and links that changed."""

    added: int
    modified: int
    deleted: int


class Commit(Struct, frozen=True, kw_only=True):
    """A commit of the log; ``changes`` is None where there are too many to count.

    ``collected`` says that its versions are gone, ``certain`` (false) that it may not have touched the path,
    ``damaged`` that its record can't be read.
    """

    version: str | None
    parent: str | None
    sequence: int
    timestamp: int
    ref: str
    user: str | None
    message: str | None
    users: list[str] | UnsetType = UNSET
    changes: Counts | None
    collected: bool | UnsetType = UNSET
    certain: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class ChangeSide(Struct, frozen=True, kw_only=True):
    """What stood at a path on one side of a comparison."""

    hash: str | None
    size: int | None
    updated_at: int | None
    entry_type: EntryType
    content_type: str | None
    target: str | UnsetType = UNSET


class PathChange(Struct, frozen=True):
    """How a path differs between two versions: ``added``, ``modified`` or ``deleted``."""

    path: str
    change_type: str
    entry_type: EntryType
    before: ChangeSide | None
    after: ChangeSide | None


class CommitDetails(Struct, frozen=True, kw_only=True):
    """A commit with a page of what it changed."""

    version: str
    parent: str
    sequence: int
    timestamp: int
    ref: str
    user: str | None
    message: str | None
    users: list[str] | UnsetType = UNSET
    changes: list[PathChange]
    totals: Counts | None
    has_more: bool
    next_cursor: str | None
    truncated: bool = False
    collected: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class Comparison(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """What was compared, and the totals; at the end of the changes."""

    source: str
    to: str
    totals: Counts


class HistoryRow(Struct, frozen=True, kw_only=True):
    """What became of a path at a snapshot, or by a commit."""

    snapshot: str | None
    timestamp: int
    change_type: str | None
    size: int | None
    content_type: str | None
    content_hash: str | None
    entry_type: EntryType | None
    version: str
    sequence: int | UnsetType = UNSET
    user: str | UnsetType | None = UNSET
    message: str | UnsetType | None = UNSET
    users: list[str] | UnsetType = UNSET
    changes: Counts | UnsetType | None = UNSET
    collected: bool | UnsetType = UNSET
    certain: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class BlameLine(Struct, frozen=True, kw_only=True):
    """A line and the commit that it comes from; ``path`` where the file stood elsewhere then."""

    line: int
    text: str | UnsetType = UNSET
    version: str
    sequence: int
    timestamp: int
    user: str | None
    path: str | UnsetType = UNSET
    collected: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class BlameEntry(Struct, frozen=True, kw_only=True):
    """An entry and the last commit that touched it; None where none is known that the caller may see."""

    path: str
    name: str
    entry_type: EntryType
    size: int | None
    version: str | None
    sequence: int | None
    timestamp: int | None
    user: str | None
    truncated: bool | UnsetType = UNSET
    collected: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class Blame(Struct, frozen=True, kw_only=True):
    """Where the lines of a text come from; of a directory, or a file that is no text, its entries."""

    path: str
    version: str
    entry_type: EntryType
    lines: list[BlameLine] | None = None
    entries: list[BlameEntry] | None = None
    truncated: bool = False
    has_more: bool = False
    next_cursor: str | None = None
    damaged_commits: tuple[int, ...] = ()


class Lifecycle(Struct, frozen=True):
    """The lifecycle settings of snapshots."""

    snapshot_writes_enabled: bool
    snapshot_retention: dict[str, int]
