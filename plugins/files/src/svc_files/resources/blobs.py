"""``/blobs``: chunks that clients upload once and make files of."""

from __future__ import annotations

from typing import Annotated, Any

import falcon
import msgspec

from svc.errors import InvalidInput, NotFound, PayloadTooLarge
from svc.plugin import (
    Hash,
    Operation,
    OperationHandle,
    RequestContext,
    StoredContent,
    body_stream,
    context_of,
    format_path,
    mark_immutable,
    parse_hash,
    pause,
    public,
    query_text,
    read_json,
    requires_identity,
    requires_in_body,
    requires_somewhere,
    send_content,
    send_json,
)
from svc_files.access import authorize_put, body_path, require_count
from svc_files.chunk_access import has_chunk, may_use_chunk, note_upload, readable_chunk, require_chunks
from svc_files.client_chunks import note_client_chunks
from svc_files.content_types import OCTET_STREAM, choose_content_type
from svc_files.requests import settings_of, writing_of
from svc_files.resources.batch import Time, chunk_content, naming_operation

__all__ = [
    "CHUNKING",
    "BlobResource",
    "ChunkResource",
    "CommitChunksResource",
    "ConfigResource",
    "HaveChunksResource",
]

CHUNKING: dict[str, Any] = {
    "method": "cdc",
    "algorithm": "fastcdc",
    "minimum": 16 * 1024,
    "average": 64 * 1024,
    "maximum": 256 * 1024,
    "normalization": 1,
    "seed": 0,
    "whole_limit": 64 * 1024,
}
"""How the database cuts contents itself; a client that cuts alike uploads nothing twice."""

MAXIMUM_CHUNK: int = CHUNKING["maximum"]

_PAUSE_EVERY = 1024
_STORE = (Operation.CREATE, Operation.UPDATE)


class ConfigResource:
    """What a client needs to know before it cuts and uploads."""

    @public
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The hash algorithm, the largest chunk that is taken, and the chunking of the database."""
        send_json(
            resp,
            {
                "hash_algorithm": "blake3",
                "chunk_size": MAXIMUM_CHUNK,
                "chunk_hash_prefix": "",
                "chunking": CHUNKING,
            },
        )


class HashesBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a check: hashes in hex."""

    hashes: list[str]


class HaveChunksResource:
    """Which chunks are there already."""

    @requires_identity
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Sorts hashes into those that the caller need not upload, and those that it must."""
        settings = settings_of(req)
        body = read_json(req, HashesBody, settings.maximum_json)
        require_count(len(body.hashes), settings.maximum_chunks, "hashes")
        have: list[str] = []
        needed: list[str] = []
        database = context_of(req).database
        with database.hold():
            for number, name in enumerate(dict.fromkeys(body.hashes)):
                if number % _PAUSE_EVERY == _PAUSE_EVERY - 1:
                    pause()
                hash = parse_chunk_hash(name, "hashes")
                (have if has_chunk(context_of(req), hash) else needed).append(name)
            if not database.read_only and context_of(req).may_somewhere(*_STORE):
                # What the client need not upload must still be there when it commits, if it ever may.
                database.pin(bytes.fromhex(name) for name in have)
        send_json(resp, {"have": have, "needed": needed})


class ChunkResource:
    """One chunk, on its way in."""

    @requires_somewhere(*_STORE)
    def on_put(self, req: falcon.Request, resp: falcon.Response, hash: str) -> None:
        """Stores the body if its bytes have the hash: 201 ``created``, 200 ``exists``."""
        expected = parse_chunk_hash(hash, "hash")
        path = query_text(req, "path")
        _authorize_upload(context_of(req), path)
        content = body_stream(req, MAXIMUM_CHUNK).read(-1)
        _authorize_upload(context_of(req), path)
        if len(content) > MAXIMUM_CHUNK:
            raise PayloadTooLarge(f"A chunk has at most {MAXIMUM_CHUNK} bytes.", limit=MAXIMUM_CHUNK)
        created = context_of(req).database.put_chunk(expected, content)
        note_upload(context_of(req), expected)
        # Whether somebody else had it is not for everyone to know.
        known = not created and may_use_chunk(context_of(req), expected)
        send_json(
            resp,
            {"hash": expected.hex(), "size": len(content), "status": "exists" if known else "created"},
            200 if known else 201,
        )


def _authorize_upload(context: RequestContext, path: str | None) -> None:
    if path is not None:
        context.authorize(Operation.CREATE, body_path(path))
    elif context.identity.user_id is None:
        # A share link may be anybody's: it uploads only where it may create something.
        context.authorize(Operation.CREATE, ())


class BlobResource:
    """One chunk, on its way out."""

    @requires_in_body(Operation.READ)
    def on_get(self, req: falcon.Request, resp: falcon.Response, hash: str) -> None:
        """The chunk's bytes, if a file that the caller may read holds it."""
        expected = parse_chunk_hash(hash, "hash")
        content = readable_chunk(context_of(req), expected)
        if content is None:
            raise NotFound("There is no such chunk.", hash=expected.hex())
        mark_immutable(resp)
        send_content(
            req,
            resp,
            size=len(content),
            etag=expected.hex(),
            updated_ms=None,
            content_type=OCTET_STREAM,
            read=lambda start, length: iter((content[start : start + length],)),
        )


class ChunkedFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One file of a commit: its chunks in order, and what the client says of them."""

    path: str
    chunk_hashes: list[str]
    content_type: str | None = None
    size: int | None = None
    content_hash: str | None = None
    created_at: Time | None = None
    updated_at: Time | None = None


class CommitChunksBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a commit of chunked files."""

    files: Annotated[list[ChunkedFile], msgspec.Meta(min_length=1)]
    message: Annotated[str, msgspec.Meta(max_length=4096)] | None = None


class CommitChunksResource:
    """Makes files of uploaded chunks, in one commit."""

    @requires_in_body(Operation.CREATE, Operation.UPDATE)
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Commits all files or none; chunks that are missing anywhere are named together."""
        settings = settings_of(req)
        body = read_json(req, CommitChunksBody, settings.maximum_json)
        require_count(len(body.files), settings.maximum_batch, "files")
        writing = writing_of(req)
        places = []
        for index, file in enumerate(body.files):
            with naming_operation(index):
                asked = body_path(file.path)
                place = writing.follow(asked)
                places.append((place, authorize_put(writing.context, place, asked, None)))
        hashes = [parse_chunk_hash(name, "chunk_hashes") for file in body.files for name in file.chunk_hashes]
        require_chunks(writing.context, hashes)
        transaction = writing.transaction(body.message)
        put: list[tuple[OperationHandle, StoredContent, list[str]]] = []
        for index, (file, (place, condition)) in enumerate(zip(body.files, places, strict=True)):
            with naming_operation(index):
                content = chunk_content(
                    writing, file.chunk_hashes, file.size, file.content_hash, settings.maximum_body
                )
                name = place.path[-1] if place.path else ""
                handle = transaction.put(
                    place.path,
                    content,
                    content_type=choose_content_type(file.content_type, content.head, name),
                    created_ms=file.created_at,
                    updated_ms=file.updated_at,
                    condition=condition,
                )
                put.append((handle, content, file.chunk_hashes))
        for _, content, names in put:
            note_client_chunks(transaction, writing.database, content, map(bytes.fromhex, names))
        with naming_operation(None):
            version = transaction.commit().version.hex()
        committed = [
            {
                "path": format_path(result.path),
                "size": result.after.size,
                "content_type": result.after.content_type,
                "content_hash": result.after.hash.hex(),
                "created": result.before is None,
            }
            for result in (handle.result for handle, _, _ in put)
            if result.after is not None
        ]
        resp.set_header("X-Svc-Version", version)
        send_json(resp, {"committed": committed, "version": version})


def parse_chunk_hash(name: str, field: str) -> Hash:
    """Returns the hash that hex digits spell."""
    hash = parse_hash(name)
    if hash is None:
        raise InvalidInput("A chunk's hash is 64 hex digits.", field=field)
    return hash
