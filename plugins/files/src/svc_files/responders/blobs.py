"""Responders of ``/blobs``: single chunks, on their way in and out."""

from __future__ import annotations

import falcon

from svc.errors import NotFound, PayloadTooLarge
from svc.plugin import (
    Call,
    Operation,
    body_stream,
    context_of,
    mark_immutable,
    read_parameters,
    send_content,
    send_json,
)
from svc_files.access import body_path
from svc_files.chunk_access import may_use_chunk, note_upload, readable_chunk
from svc_files.chunk_commits import MAXIMUM_CHUNK, parse_chunk_hash
from svc_files.content_types import OCTET_STREAM
from svc_files.models import ChunkQuery, StoredChunk

__all__ = ["read_chunk", "store_chunk"]


def store_chunk(req: falcon.Request, resp: falcon.Response, hash: str) -> None:
    """Stores the body if its bytes have the hash: 201 ``created``, 200 ``exists``."""
    call = context_of(req)
    expected = parse_chunk_hash(hash, "hash")
    path = read_parameters(req, ChunkQuery).path
    _authorize_upload(call, path)
    content = body_stream(req, MAXIMUM_CHUNK).read(-1)
    _authorize_upload(call, path)
    if len(content) > MAXIMUM_CHUNK:
        raise PayloadTooLarge(f"A chunk has at most {MAXIMUM_CHUNK} bytes.", limit=MAXIMUM_CHUNK)
    created = call.database.put_chunks({expected: content})
    note_upload(call, expected)
    # Whether somebody else had it is not for everyone to know.
    known = not created and may_use_chunk(call, expected)
    stored = StoredChunk(expected.hex(), len(content), "exists" if known else "created")
    send_json(resp, stored, 200 if known else 201)


def read_chunk(req: falcon.Request, resp: falcon.Response, hash: str) -> None:
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


def _authorize_upload(call: Call, path: str | None) -> None:
    if path is not None:
        call.authorize(Operation.CREATE, body_path(path))
    elif call.identity.user_id is None:
        # A share link may be anybody's: it uploads only where it may create something.
        call.authorize(Operation.CREATE, ())
