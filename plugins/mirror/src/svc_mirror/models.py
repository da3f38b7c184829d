"""What the operations take and answer. Times are Unix ms, sizes bytes, hashes 64 hex digits."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = [
    "Changes",
    "Chunk",
    "Chunks",
    "ChunksQuestion",
    "DiffPage",
    "DiffQuestion",
    "FileState",
    "GonePath",
    "LinkState",
]


class DiffQuestion(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the caller wants to know of, and what it has: nothing, unless ``since`` or a root hash says so."""

    paths: Annotated[
        Annotated[list[str], Meta(max_length=100)] | None, Meta(description="Globs; all without.")
    ] = None
    since: Annotated[str | None, Meta(description="The token of the page before, its since.")] = None
    since_root_hash: Annotated[
        str | None, Meta(description="A version in place of a token; for who may see everything.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=10_000, description="Most changes of the page.")] = 1_000


class FileState(Struct, frozen=True, kw_only=True):
    """A file at HEAD. Its chunks are null where it may not be read, or has many: see ``/sync/chunks``."""

    path: str
    hash: str
    size: int
    content_type: str
    created_at: int
    updated_at: int
    is_readable: bool
    chunk_hashes: list[str] | None
    chunk_sizes: list[int] | None


class LinkState(Struct, frozen=True, kw_only=True):
    """A symbolic link at HEAD."""

    path: str
    hash: str
    target: str
    created_at: int
    updated_at: int


class GonePath(Struct, frozen=True):
    """Where something stood that the caller could see, or a directory that came."""

    path: str


class Changes(Struct, frozen=True, kw_only=True):
    """What changed. What stands in the place of something of another kind is in two of the lists."""

    files_added: list[FileState] = []
    files_modified: list[FileState] = []
    files_deleted: list[GonePath] = []
    symlinks_added: list[LinkState] = []
    symlinks_modified: list[LinkState] = []
    symlinks_deleted: list[GonePath] = []
    directories_added: list[GonePath] = []
    directories_deleted: list[GonePath] = []


class DiffPage(Struct, frozen=True, kw_only=True):
    """A part of what changed.

    ``since`` is a token of what the caller has once it has taken the page in; with it the next request goes
    on, at once where ``has_more`` is true. Where ``is_whole`` is true the pages from one that ``is_first`` to
    one without ``has_more`` name everything that the caller may see: what they do not name, is gone.
    """

    root_hash: Annotated[str | None, Meta(description="Null unless the caller may see everything.")]
    since: Annotated[str, Meta(description="A token: what the caller has now.")]
    has_more: bool
    is_first: bool
    is_whole: bool
    changes: Changes
    chunk_hashes_needed: Annotated[list[str], Meta(description="Of the files of this page.")]


class ChunksQuestion(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Chunks that are wanted; or, with ``path``, a file whose chunks are to be named."""

    hashes: Annotated[list[str], Meta(max_length=1_000, description="Of chunks.")] = []
    path: Annotated[str | None, Meta(description="A file whose chunks are to be named.")] = None
    content_hash: Annotated[str | None, Meta(description="That this file must have.")] = None
    first: Annotated[int, Meta(ge=0, description="Number of the first chunk to be named.")] = 0


class Chunk(Struct, frozen=True):
    """A chunk; in JSON its bytes are base64."""

    hash: str
    data: bytes


class Chunks(Struct, frozen=True, kw_only=True):
    """Chunks in the order asked for, and those that the caller may not read, or that are not there.

    What is in neither list did not fit: ask again. The other members are of the file of ``path``.
    """

    chunks: list[Chunk] = []
    missing: list[str] = []
    chunk_hashes: list[str] = []
    chunk_sizes: list[int] = []
    has_more: bool = False
