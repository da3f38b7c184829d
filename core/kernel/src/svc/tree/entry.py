"""What a directory holds: entries, and the totals that every level of a tree carries.

An entry says everything about a file of one chunk; a larger file's names a file record that lists its chunks.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from svc.hashing import Hash

__all__ = ["NO_TOTALS", "Entry", "EntryKind", "Totals", "entries_of"]


class EntryKind(IntEnum):
    """The kind of an entry, as listings show it (``entry_type``) and nodes store it."""

    FILE = 2
    DIRECTORY = 3
    SYMLINK = 8


class Totals(msgspec.Struct, frozen=True, gc=False):
    """What lies below a node or a directory: everything, at every depth.

    Attributes:
        files: number of files.
        directories: number of directories (not counting the one that the totals belong to).
        symlinks: number of symbolic links.
        size: bytes of all files.
        created_ms: earliest creation of anything below; 0 when nothing is.
        updated_ms: latest update of anything below; 0 when nothing is.
    """

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    size: int = 0
    created_ms: int = 0
    updated_ms: int = 0


NO_TOTALS = Totals()


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One name in a directory.

    Attributes:
        kind: file, directory or symbolic link.
        hash: a file's BLAKE3 content hash (its ETag); a directory's root node; a link's BLAKE3 of
            its target in UTF-8.
        size: bytes of a file; of everything below a directory; of a link's target.
        created_ms: Unix milliseconds. A directory that is not empty has the earliest of what it holds.
        updated_ms: Unix milliseconds. A directory that is not empty has the latest of what it holds.
        content_type: media type of a file, else None.
        record: hash of the file record; None when the content is one chunk (whose hash is ``hash``)
            or empty, and for other kinds.
        target: absolute path that a symbolic link names, else None.
        totals: of a directory: what lies below; None for other kinds.
    """

    kind: EntryKind
    hash: Hash
    size: int
    created_ms: int
    updated_ms: int
    content_type: str | None = None
    record: Hash | None = None
    target: str | None = None
    totals: Totals | None = None


def entries_of(entry: Entry) -> int:
    """How many entries one stands for: itself and what is below it."""
    below = entry.totals
    return 1 if below is None else 1 + below.files + below.directories + below.symlinks
