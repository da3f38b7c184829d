"""What the operations on files, links and chunks take and answer. Times are Unix ms, sizes bytes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from svc.plugin import EntryKind, Page

__all__ = [
    "AnyOperation",
    "BatchBody",
    "BatchResult",
    "BlobConfig",
    "Checked",
    "ChunkQuery",
    "ChunkedFile",
    "Committed",
    "CommittedFile",
    "Copied",
    "CopiedEntry",
    "CopyBody",
    "CopyOperation",
    "DeleteOperation",
    "DeleteQuery",
    "Deleted",
    "DeletedFile",
    "DeletedPage",
    "DeletedQuery",
    "DownloadBody",
    "EntryInfo",
    "FetchBody",
    "FetchItem",
    "Fetched",
    "FileBatch",
    "FileQuery",
    "HashesBody",
    "LinkBody",
    "LinkDescription",
    "LinkOperation",
    "Listing",
    "MakeDirectoryBody",
    "MakeDirectoryOperation",
    "MoveOperation",
    "MovedEntry",
    "PutOperation",
    "PutQuery",
    "ReadQuery",
    "RenameBody",
    "RestoreBody",
    "RestoredEntry",
    "StoredChunk",
    "StoredFile",
    "WriteQuery",
]

Time = Annotated[int, Meta(ge=0, le=253402300799999, description="Unix milliseconds, up to the year 9999.")]
Message = Annotated[str, Meta(max_length=4096, description="A text for the log of commits.")]
Hex = Annotated[str, Meta(description="64 hex digits.")]
Cursor = Annotated[str | None, Meta(description="The next_cursor of the part before.")]
Most = Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="Most items of the part.")]
Unwritable = Annotated[str | None, Meta(description="Refused: what was never changes.")]


class ReadQuery(Struct, frozen=True, kw_only=True):
    """Which state is read; the first that is given wins, HEAD where none is."""

    snapshot: Annotated[str | None, Meta(description="A snapshot's name.")] = None
    version: Annotated[str | None, Meta(description="A root hash in hex.")] = None
    fork: Annotated[str | None, Meta(description="A fork's name.")] = None
    at: Annotated[str | None, Meta(description="A time: HEAD as it was then.")] = None


class FileQuery(ReadQuery, frozen=True, kw_only=True):
    """How a path is read; all but ``nofollow`` is of directories."""

    nofollow: Annotated[bool, Meta(description="Describes a link itself, not what it names.")] = False
    depth: Annotated[int, Meta(ge=-1, le=4096, description="Levels below; -1: all files below.")] = 0
    glob: Annotated[str | None, Meta(description="Only what this pattern fits.")] = None
    limit: Most = None
    offset: Annotated[int, Meta(ge=0, description="Entries that are left out first.")] = 0
    after: Cursor = None
    deleted: Annotated[bool, Meta(description="Lists what was deleted in between.")] = False


class WriteQuery(Struct, frozen=True, kw_only=True):
    """Where is written to."""

    fork: Annotated[str | None, Meta(description="A fork's name; HEAD without.")] = None
    snapshot: Unwritable = None
    version: Unwritable = None
    at: Unwritable = None


class PutQuery(WriteQuery, frozen=True, kw_only=True):
    """Where a file is stored."""

    nofollow: Annotated[bool, Meta(description="Replaces a link, not what it names.")] = False


class DeleteQuery(WriteQuery, frozen=True, kw_only=True):
    """How a path is removed."""

    recursive: Annotated[bool, Meta(description="A directory with everything below it.")] = False


class DeletedQuery(Struct, frozen=True, kw_only=True):
    """Which deleted files are listed."""

    path: Annotated[str | None, Meta(description="A path, there or gone; the root without.")] = None
    limit: Most = None
    after: Cursor = None


class ChunkQuery(Struct, frozen=True, kw_only=True):
    """What a chunk is for."""

    path: Annotated[str | None, Meta(description="Of the file that is to be made of it.")] = None


class _Entry(Struct, frozen=True, kw_only=True):
    path: str
    name: str
    entry_type: EntryKind
    hash: str | None
    size: int | None
    created_at: int | None
    updated_at: int | None
    content_type: str | None = None
    target: str | UnsetType | None = UNSET
    file_count: int | UnsetType | None = UNSET
    total_size: int | UnsetType | None = UNSET


class EntryInfo(_Entry, frozen=True, kw_only=True):
    """A file, directory or link. What the caller may not know of a directory is null."""

    effective_permissions: str | UnsetType = UNSET
    version: str | UnsetType = UNSET


class MovedEntry(_Entry, frozen=True, kw_only=True):
    """What was renamed."""

    source: Annotated[str, Meta(description="The path that it had.")] = field(name="from")
    version: str


class RestoredEntry(_Entry, frozen=True, kw_only=True):
    """What came back: the file or directory, and how many files."""

    restored: Literal[True] = True
    files: int
    version: str
    content_hash: str | UnsetType | None = UNSET


class LinkDescription(Struct, frozen=True, kw_only=True):
    """A link; ``resolved`` is where it leads, null for nowhere that the caller may see."""

    path: str
    name: str
    entry_type: EntryKind
    hash: str
    size: int
    created_at: int
    updated_at: int
    content_type: str | UnsetType | None = UNSET
    target: str
    resolved: str | UnsetType | None = UNSET
    version: str | UnsetType = UNSET


class Listing(Page[EntryInfo], frozen=True):
    """A part of a directory's listing; ``total`` is null where it is not known."""

    path: str
    items: list[EntryInfo]
    total: int | None


class StoredFile(Struct, frozen=True, kw_only=True):
    """A file as a write left it."""

    path: str
    size: int
    content_type: str
    content_hash: str
    created_at: int
    updated_at: int
    version: str


class Deleted(Struct, frozen=True, kw_only=True):
    """What was removed."""

    deleted: Literal[True] = True
    path: str
    entry_type: EntryKind
    version: str


class DeletedFile(Struct, frozen=True, kw_only=True):
    """A file or link that was deleted, and is not there again."""

    path: str
    name: str
    entry_type: EntryKind
    deleted_at: int
    size: int
    content_hash: str
    content_type: str | None = None
    created_at: int | None = None
    updated_at: int | None = None


class DeletedPage(Page[DeletedFile], frozen=True):
    """A part of what was deleted below a path."""

    path: str
    items: list[DeletedFile]


class RestoreBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What comes back, and from which version instead of from where it was deleted last."""

    path: str
    version: Hex | None = None


class MakeDirectoryBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A directory; with ``exist_ok`` one that is there is no error."""

    path: str
    exist_ok: bool = False


class RenameBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Where something is moved to, and whether a file or link there may be replaced."""

    to: str
    overwrite: bool = False


class CopyBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is copied, the directory that it goes into, and whether files there may be replaced."""

    paths: Annotated[list[str], Meta(min_length=1)]
    destination: str
    overwrite: bool = False


class CopiedEntry(Struct, frozen=True):
    """What was copied."""

    source: Annotated[str, Meta(description="The path that was copied.")] = field(name="from")
    path: str
    entry_type: EntryKind


class Copied(Struct, frozen=True):
    """What a copy did."""

    copied: list[CopiedEntry]
    version: str


class LinkBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The absolute path that a link names."""

    target: str


class DownloadBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What goes into an archive, and whether it is compressed."""

    paths: Annotated[list[str], Meta(min_length=1)]
    compress: bool = True


Bounds = tuple[int, int | None]


class FetchItem(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file, or a part of it."""

    path: str
    lines: Annotated[Bounds | None, Meta(description="First and last line, from 1; null: to the end.")] = None
    byte_range: Annotated[
        Bounds | None, Meta(description="First byte, from 0, and the one to end before; null: to the end.")
    ] = field(default=None, name="bytes")
    chars: Annotated[Bounds | None, Meta(description="As bytes, in characters.")] = None
    json_pointer: Annotated[str | None, Meta(description="A place in a JSON document (RFC 6901).")] = None
    if_content_hash: Annotated[str | None, Meta(description="The content hash that it must have.")] = None


class FetchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is fetched: whole files in ``paths``, files or parts in ``items``."""

    paths: list[str] = []
    items: list[FetchItem] = []


class Fetched(Struct, frozen=True):
    """Contents in the order asked for; an ``error`` and its ``code`` in place of what is missing."""

    items: list[dict[str, Any]]
    version: str


class PutOperation(
    Struct,
    frozen=True,
    tag_field="op",
    tag="put",
    forbid_unknown_fields=True,
    kw_only=True,
    omit_defaults=True,
):
    """Stores a file: ``content`` (text), ``content_base64``, or ``chunk_hashes`` uploaded before."""

    path: str
    content: str | None = None
    content_base64: str | None = None
    chunk_hashes: list[str] | None = None
    size: int | None = None
    content_hash: str | None = None
    content_type: str | None = None
    created_at: Time | None = None
    updated_at: Time | None = None
    if_match: str | None = None
    if_none_match: str | None = None


class DeleteOperation(
    Struct, frozen=True, tag_field="op", tag="delete", forbid_unknown_fields=True, kw_only=True
):
    """Removes a file, a link or a directory."""

    path: str
    recursive: bool = False
    if_match: str | None = None


class Relocation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a move and a copy have in common: ``path`` (or ``from``) and ``to`` (or ``destination``)."""

    path: str | None = None
    from_: str | None = field(name="from", default=None)
    to: str | None = None
    destination: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        if (self.path is None) == (self.from_ is None):
            raise ValueError("a move or copy names its source once, as `path` or `from`")
        if (self.to is None) == (self.destination is None):
            raise ValueError("a move or copy names its target once, as `to` or `destination`")

    @property
    def source(self) -> str:
        """The path that is moved or copied."""
        return self.path or self.from_ or ""

    @property
    def target(self) -> str:
        """The path that it gets."""
        return self.to or self.destination or ""


class MoveOperation(
    Relocation, frozen=True, tag_field="op", tag="move", forbid_unknown_fields=True, kw_only=True
):
    """Moves a file, a link or a directory."""

    if_match: str | None = None


class CopyOperation(
    Relocation, frozen=True, tag_field="op", tag="copy", forbid_unknown_fields=True, kw_only=True
):
    """Copies a file, a link or a directory to a path of its own."""


class LinkOperation(
    Struct, frozen=True, tag_field="op", tag="link", forbid_unknown_fields=True, kw_only=True
):
    """Makes or replaces a symbolic link."""

    path: str
    target: str
    created_at: Time | None = None
    updated_at: Time | None = None


class MakeDirectoryOperation(
    Struct, frozen=True, tag_field="op", tag="mkdir", forbid_unknown_fields=True, kw_only=True
):
    """Makes a directory; one that is there is no error unless ``exist_ok`` is false."""

    path: str
    exist_ok: bool = True
    at: Time | None = None


AnyOperation = (
    PutOperation | DeleteOperation | MoveOperation | CopyOperation | LinkOperation | MakeDirectoryOperation
)


class BatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Operations in order, which happen in one commit or not at all."""

    operations: Annotated[list[AnyOperation], Meta(min_length=1)]
    message: Message | None = None


class BatchResult(Struct, frozen=True):
    """One result for each operation, and the version that the batch made."""

    results: list[dict[str, Any]]
    version: str


class BlobConfig(Struct, frozen=True):
    """How chunks are taken; ``chunking`` says how the database cuts contents itself."""

    hash_algorithm: str
    chunk_size: int
    chunk_hash_prefix: str
    chunking: dict[str, Any]


class HashesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Hashes of chunks."""

    hashes: list[str]


class Checked(Struct, frozen=True):
    """Those of some chunks that need not be uploaded, and those that must."""

    have: list[str]
    needed: list[str]


class StoredChunk(Struct, frozen=True):
    """A chunk that arrived; ``status`` is ``created`` or ``exists``."""

    hash: str
    size: int
    status: Literal["created", "exists"]


class ChunkedFile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A file that is made of chunks, in order, and what is known of it."""

    path: str
    chunk_hashes: list[str]
    content_type: str | None = None
    size: int | None = None
    content_hash: str | None = None
    created_at: Time | None = None
    updated_at: Time | None = None


class FileBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Files that are made of chunks in one commit."""

    files: Annotated[list[ChunkedFile], Meta(min_length=1)]
    message: Message | None = None


class CommittedFile(Struct, frozen=True):
    """A file that a commit of chunks made."""

    path: str
    size: int
    content_type: str | None
    content_hash: str
    created: bool


class Committed(Struct, frozen=True):
    """What a commit of chunks made."""

    committed: list[CommittedFile]
    version: str
