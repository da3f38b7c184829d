"""What a register can hold: what stands at a path, or that nothing does.

A file or a symbolic link is its entry. The other kinds are here. ``None`` says that the path was deleted.
"""

from __future__ import annotations

from msgspec import Struct

from svc.plugin import Entry, EntryKind, Hash

__all__ = ["CONTENT", "Directory", "Document", "Reference", "Value", "alike", "rank"]

CONTENT = 2
"""The rank of a file, a link, a document and a reference: what is lost if it is not shown or listed."""


class Directory(Struct, frozen=True, gc=False):
    """A directory that somebody made or emptied. One with content needs no register.

    Attributes:
        own_ms: when that was, Unix milliseconds; its time while it is empty.
    """

    own_ms: int


class Document(Struct, frozen=True, gc=False):
    """A document of the system tree; it is small enough to travel in its register."""

    data: bytes


class Reference(Struct, frozen=True, gc=False):
    """The version that a snapshot or a fork names."""

    root: Hash


Value = Entry | Directory | Document | Reference | None
"""A file or link, an explicit empty directory, a document, a root, or None: deleted."""


def rank(value: Value) -> int:
    """Returns which kinds win over which: content (2) over an empty directory (1) over a deletion (0)."""
    if value is None:
        return 0
    return 1 if type(value) is Directory else CONTENT


def alike(a: Value, b: Value) -> bool:
    """Whether two values hold the same content, whatever their times are. Only content is alike."""
    if type(a) is Entry and type(b) is Entry:
        return (
            a.kind is b.kind
            and a.kind is not EntryKind.DIRECTORY
            and (a.hash, a.size, a.content_type, a.target) == (b.hash, b.size, b.content_type, b.target)
        )
    return type(a) is type(b) and rank(a) == CONTENT and a == b
