"""The operations on files, links and chunks.

Whether a caller may store something at a path is decided by ``svc_files.access.authorize_put`` alone, once it
is known what stands there; what is declared here is what a caller needs to be heard at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import (
    AlreadyExists,
    Conflict,
    InsufficientStorage,
    NotFound,
    PreconditionFailed,
    RangeNotSatisfiable,
    UnsupportedMediaType,
    VersionCollected,
)
from svc.plugin import (
    Created,
    Operation,
    Weight,
    operation,
    public,
    requires,
    requires_any,
    requires_identity,
    requires_in_body,
    requires_somewhere,
)
from svc_files.models import (
    BatchBody,
    BatchResult,
    BlobConfig,
    Checked,
    ChunkQuery,
    Committed,
    Copied,
    CopyBody,
    Deleted,
    DeletedPage,
    DeletedQuery,
    DeleteQuery,
    DownloadBody,
    EntryInfo,
    FetchBody,
    Fetched,
    FileBatch,
    FileQuery,
    HashesBody,
    LinkBody,
    LinkDescription,
    Listing,
    MakeDirectoryBody,
    MovedEntry,
    PutQuery,
    ReadQuery,
    RenameBody,
    RestoreBody,
    RestoredEntry,
    StoredChunk,
    StoredFile,
    WriteQuery,
)

if TYPE_CHECKING:
    from svc.plugin import Call, Path

__all__ = [
    "batch",
    "change_path",
    "check_chunks",
    "commit_chunks",
    "copy",
    "delete_link",
    "delete_path",
    "download",
    "fetch",
    "list_deleted",
    "make_directory",
    "make_link",
    "read_chunk",
    "read_link",
    "read_path",
    "restore_deleted",
    "show_blob_config",
    "store_chunk",
    "store_file",
]

_PATH = "/files/{path:path}"
_OLDER = ("/engine/{path:path}",)
_LINK = "/links/{path:path}"
_VERSION = {"X-Svc-Version": "version"}
_LARGE_BODY = 1 << 40
"""For bodies that hold contents, or the hashes of many chunks: what the server's own limit allows."""

_WRITES = (Conflict, PreconditionFailed, InsufficientStorage)


@operation(
    "GET",
    _PATH,
    requires_any(Operation.READ, Operation.LIST, path="path"),
    older=_OLDER,
    errors=(NotFound, PreconditionFailed, RangeNotSatisfiable),
    weight=Weight.STREAMING,
    responder="svc_files.responders.files:read_path",
)
def read_path(call: Call, path: Path, query: FileQuery = FileQuery()) -> bytes | Listing | EntryInfo:
    """Reads a file, or lists a directory; with ``nofollow`` describes a link."""


@operation(
    "PUT",
    _PATH,
    requires_any(Operation.CREATE, Operation.UPDATE, path="path"),
    older=_OLDER,
    status=201,
    errors=(NotFound, *_WRITES),
    weight=Weight.STREAMING,
    headers=_VERSION,
    responder="svc_files.responders.files:store_file",
)
def store_file(call: Call, path: Path, body: bytes, query: PutQuery = PutQuery()) -> Created[StoredFile]:
    """Stores the body as a file; parents appear by themselves, links on the way are followed."""


@operation(
    "DELETE",
    _PATH,
    requires_any(Operation.DELETE, path="path"),
    older=_OLDER,
    errors=(NotFound, *_WRITES),
    weight=Weight.DEAR,
    headers=_VERSION,
    responder="svc_files.responders.files:delete_path",
)
def delete_path(call: Call, path: Path, query: DeleteQuery = DeleteQuery()) -> Deleted:
    """Removes a file, a link (never what it names), or a directory."""


@operation(
    "PATCH",
    _PATH,
    requires_any(Operation.UPDATE, Operation.CREATE, Operation.DELETE, path="path"),
    older=_OLDER,
    errors=(NotFound, AlreadyExists, UnsupportedMediaType, *_WRITES),
    weight=Weight.DEAR,
    headers=_VERSION,
    responder="svc_files.responders.files:change_path",
)
def change_path(
    call: Call, path: Path, body: RenameBody, query: WriteQuery = WriteQuery()
) -> MovedEntry | StoredFile:
    """Renames with everything below; or merges a JSON merge patch (RFC 7396) into a document."""


@operation(
    "POST",
    "/files/fetch",
    requires_in_body(Operation.READ),
    errors=(NotFound, Conflict),
    weight=Weight.DEAR,
    headers=_VERSION,
    responder="svc_files.responders.fetch:fetch",
)
def fetch(call: Call, body: FetchBody, query: ReadQuery = ReadQuery()) -> Fetched:
    """Reads many files, or parts of them, at one version; what is missing shows as an error in its place."""


@operation(
    "POST",
    "/files/download",
    requires_in_body(Operation.READ, Operation.LIST),
    errors=(NotFound,),
    weight=Weight.STREAMING,
    media_types=("application/octet-stream", "application/zip"),
    repeatable=True,
    responder="svc_files.responders.download:download",
)
def download(call: Call, body: DownloadBody, query: ReadQuery = ReadQuery()) -> bytes:
    """Packs files and directories into a ZIP archive; what the caller may not read below them is left out."""


@operation(
    "POST",
    "/files/mkdir",
    requires_in_body(Operation.CREATE),
    status=201,
    errors=(NotFound, AlreadyExists, *_WRITES),
    weight=Weight.SMALL,
    headers=_VERSION,
)
def make_directory(
    call: Call, body: MakeDirectoryBody, query: WriteQuery = WriteQuery()
) -> Created[EntryInfo]:
    """Makes a directory and its parents."""
    from svc_files import copying
    from svc_files.requests import writing_of

    return Created(*copying.make_directory(writing_of(call, query), body))


@operation(
    "POST",
    "/files/copy",
    requires_in_body(Operation.READ, Operation.CREATE),
    errors=(NotFound, AlreadyExists, *_WRITES),
    weight=Weight.DEAR,
    maximum_body=8 << 20,
    headers=_VERSION,
)
def copy(call: Call, body: CopyBody, query: WriteQuery = WriteQuery()) -> Copied:
    """Copies files, links and directories into a directory, each under its own name, in one commit."""
    from svc_files import copying
    from svc_files.access import require_count
    from svc_files.requests import settings_of, writing_of

    require_count(len(body.paths), settings_of(call).maximum_batch, "paths")
    return copying.copy(writing_of(call, query), body)


@operation(
    "POST",
    "/files/batch",
    requires_in_body(Operation.CREATE, Operation.UPDATE, Operation.DELETE, Operation.READ),
    errors=(NotFound, AlreadyExists, Conflict, InsufficientStorage),
    weight=Weight.DEAR,
    maximum_body=_LARGE_BODY,
    headers=_VERSION,
)
def batch(call: Call, body: BatchBody, query: WriteQuery = WriteQuery()) -> BatchResult:
    """Does many writes in one commit, or none of them; an error names the operation by its index."""
    from svc_files.batch import run_batch
    from svc_files.requests import settings_of, writing_of

    return run_batch(writing_of(call, query), body, settings_of(call))


@operation(
    "GET", "/files/deleted", requires_in_body(Operation.DELETE), errors=(NotFound,), weight=Weight.DEAR
)
def list_deleted(call: Call, query: DeletedQuery = DeletedQuery()) -> DeletedPage:
    """Lists what was deleted below a path, and is not there again, in path order."""
    from svc_files import deleted

    return deleted.list_deleted(call, query)


@operation(
    "POST",
    "/files/restore",
    requires_in_body(Operation.CREATE, Operation.DELETE),
    errors=(NotFound, AlreadyExists, VersionCollected, InsufficientStorage),
    weight=Weight.DEAR,
    headers=_VERSION,
)
def restore_deleted(call: Call, body: RestoreBody, query: WriteQuery = WriteQuery()) -> RestoredEntry:
    """Brings a deleted file, link or directory back, in one commit."""
    from svc_files import deleted
    from svc_files.requests import settings_of, writing_of

    return deleted.restore_deleted(writing_of(call, query), body, settings_of(call))


@operation(
    "GET",
    _LINK,
    requires(Operation.READ, path="path"),
    errors=(NotFound,),
    weight=Weight.SMALL,
    responder="svc_files.responders.links:read_link",
)
def read_link(call: Call, path: Path, query: ReadQuery = ReadQuery()) -> LinkDescription:
    """Describes a link: its target, and where it leads if it leads anywhere the caller may see."""


@operation(
    "PUT",
    _LINK,
    requires_any(Operation.CREATE, Operation.UPDATE, path="path"),
    status=201,
    errors=(NotFound, *_WRITES),
    weight=Weight.SMALL,
    headers=_VERSION,
    responder="svc_files.responders.links:make_link",
)
def make_link(
    call: Call, path: Path, body: LinkBody, query: WriteQuery = WriteQuery()
) -> Created[LinkDescription]:
    """Makes or replaces a link. It may dangle; it may not lead in a circle."""


@operation(
    "DELETE",
    _LINK,
    requires(Operation.DELETE, path="path"),
    errors=(NotFound, *_WRITES),
    weight=Weight.SMALL,
    headers=_VERSION,
    responder="svc_files.responders.links:delete_link",
)
def delete_link(call: Call, path: Path, query: WriteQuery = WriteQuery()) -> Deleted:
    """Removes a link."""


@operation("GET", "/blobs/config", public, weight=Weight.SMALL)
def show_blob_config(_call: Call) -> BlobConfig:
    """Says how chunks are taken: their hash, the largest, and how the database cuts contents itself."""
    from svc_files.chunk_commits import CHUNKING, MAXIMUM_CHUNK

    return BlobConfig("blake3", MAXIMUM_CHUNK, "", CHUNKING)


@operation("POST", "/blobs/check", requires_identity, weight=Weight.DEAR, repeatable=True)
def check_chunks(call: Call, body: HashesBody) -> Checked:
    """Sorts chunks into those that are there, and those that must be uploaded."""
    from svc_files import chunk_commits

    return chunk_commits.check_chunks(call, body.hashes)


@operation(
    "PUT",
    "/blobs/chunks/{hash}",
    requires_somewhere(Operation.CREATE, Operation.UPDATE),
    status=201,
    errors=(NotFound, InsufficientStorage),
    weight=Weight.STREAMING,
    responder="svc_files.responders.blobs:store_chunk",
)
def store_chunk(call: Call, hash: str, body: bytes, query: ChunkQuery = ChunkQuery()) -> Created[StoredChunk]:
    """Stores a chunk if its bytes have the hash."""


@operation(
    "GET",
    "/blobs/{hash}",
    requires_in_body(Operation.READ),
    errors=(NotFound,),
    weight=Weight.DEAR,
    responder="svc_files.responders.blobs:read_chunk",
)
def read_chunk(call: Call, hash: str) -> bytes:
    """Reads a chunk, if a file that the caller may read holds it."""


@operation(
    "POST",
    "/blobs/commit",
    requires_in_body(Operation.CREATE, Operation.UPDATE),
    errors=(NotFound, Conflict, InsufficientStorage),
    weight=Weight.DEAR,
    maximum_body=_LARGE_BODY,
    headers=_VERSION,
    repeatable=True,
)
def commit_chunks(call: Call, body: FileBatch, query: WriteQuery = WriteQuery()) -> Committed:
    """Makes files of uploaded chunks, in one commit or not at all; missing chunks are named together."""
    from svc_files import chunk_commits
    from svc_files.requests import settings_of, writing_of

    return chunk_commits.commit_chunks(writing_of(call, query), body, settings_of(call))
