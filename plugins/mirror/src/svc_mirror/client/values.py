"""What stands at a path of either side, as far as a mirror cares."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

__all__ = ["Base", "Kind", "Remote", "Seen", "Standing"]


class Kind(IntEnum):
    """What can be mirrored; the numbers are those of ``EntryKind``."""

    FILE = 2
    DIRECTORY = 3
    LINK = 8


Standing = tuple[Kind, str] | None
"""A kind, and the content hash of a file or the path that a link names; None for nothing."""


class Seen(Struct, frozen=True, gc=False):
    """An entry of this machine as it was looked at; ``value`` of a file is empty until it is hashed."""

    kind: Kind
    value: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @property
    def standing(self) -> Standing:
        """The entry as a standing."""
        return self.kind, self.value

    def is_like(self, other: Seen) -> bool:
        """Whether nobody has written to the file between two looks, whatever name it had."""
        return (self.kind, self.inode, self.size, self.mtime_ns) == (
            other.kind,
            other.inode,
            other.size,
            other.mtime_ns,
        )


class Base(Struct, frozen=True, gc=False):
    """What both sides had when they were alike last, and the file of this machine as it was then."""

    kind: Kind
    value: str
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0

    @property
    def standing(self) -> Standing:
        """The base as a standing."""
        return self.kind, self.value

    def describes(self, seen: Seen) -> bool:
        """Whether an entry of this machine is untouched since, as far as its status says."""
        return seen.kind is self.kind and (
            self.kind is Kind.DIRECTORY
            or (seen.size, seen.mtime_ns, seen.ctime_ns, seen.inode)
            == (self.size, self.mtime_ns, self.ctime_ns, self.inode)
        )


class Remote(Struct, frozen=True, gc=False):
    """What the server has, as it was told last.

    ``hash`` is that of conditions; of a file also its content's. ``chunks`` are hashes of 32 bytes, each with
    a size of 4; None where they have to be asked for.
    """

    kind: Kind
    hash: str
    size: int = 0
    target: str = ""
    updated_ms: int = 0
    is_readable: bool = True
    chunks: bytes | None = None

    @property
    def standing(self) -> Standing:
        """The entry as a standing."""
        return self.kind, (self.target if self.kind is Kind.LINK else self.hash)
