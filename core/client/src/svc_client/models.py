"""What a server answers, as values. Members are named and ordered as on the wire.

Times are Unix milliseconds, sizes bytes, hashes lower-case hex. ``UNSET`` stands for a member that an answer
does not have.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, TypeVar

from msgspec import UNSET, Struct, UnsetType

__all__ = [
    "EntryInfo",
    "EntryType",
    "Page",
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
