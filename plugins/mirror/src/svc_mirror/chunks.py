"""Chunks for clients: what ``POST /sync/chunks`` answers.

A chunk is given to who may read a file at HEAD that holds it. A hash that is unknown and one that is hidden
are answered alike.
"""

from __future__ import annotations

import cbor2
import falcon
import msgspec

from svc.errors import InvalidInput, PreconditionFailed
from svc.plugin import (
    Call,
    EntryKind,
    Operation,
    context_of,
    format_path,
    parse_hash,
    parse_path,
    path_not_found,
    pause,
    read_json,
    send_json,
    send_stream,
    vary_by,
)
from svc_files.api import readable_chunk
from svc_mirror.configuration import MirrorConfiguration
from svc_mirror.models import Chunk, Chunks, ChunksQuestion

__all__ = ["answer_chunks", "send_chunks"]

_CBOR = "application/cbor"
_MOST_NAMED = 8_192


def send_chunks(req: falcon.Request, resp: falcon.Response) -> None:
    """Answers in CBOR who asks for it, else in JSON."""
    answer = answer_chunks(context_of(req), read_json(req, ChunksQuestion))
    vary_by(resp, "Accept")
    if req.client_prefers(("application/json", _CBOR)) != _CBOR:
        send_json(resp, answer)
        return
    payload = cbor2.dumps(msgspec.to_builtins(answer, builtin_types=(bytes,)))
    send_stream(resp, iter((payload,)), len(payload), content_type=_CBOR)


def answer_chunks(call: Call, question: ChunksQuestion) -> Chunks:
    """Returns the chunks that are asked for, as many as fit, or the hashes of those of a file.

    Raises:
        InvalidInput: what should be a hash is none.
        NotFound: there is no file that the caller may read.
        PreconditionFailed: the file has another content.
    """
    if question.path is not None:
        return _name_chunks(call, question, question.path)
    settings = call.configuration
    left = (settings if isinstance(settings, MirrorConfiguration) else MirrorConfiguration()).chunk_bytes
    chunks: list[Chunk] = []
    missing: list[str] = []
    for text in dict.fromkeys(question.hashes):
        if left <= 0:
            break
        hash = parse_hash(text)
        if hash is None:
            raise InvalidInput("A chunk's hash is 64 hex digits.", field="hashes")
        data = readable_chunk(call, hash)
        if data is None:
            missing.append(text)
        else:
            chunks.append(Chunk(text, data))
            left -= len(data)
        pause()
    return Chunks(chunks=chunks, missing=missing)


def _name_chunks(call: Call, question: ChunksQuestion, text: str) -> Chunks:
    path = parse_path(text)
    call.authorize(Operation.READ, path)
    entry = call.version.get(path)
    if entry is None or entry.kind is not EntryKind.FILE:
        raise path_not_found(path)
    if question.content_hash is not None and entry.hash.hex() != question.content_hash:
        raise PreconditionFailed("The file has another content.", path=format_path(path))
    chunks = call.version.chunks(entry)
    part = chunks[question.first : question.first + _MOST_NAMED]
    return Chunks(
        chunk_hashes=[chunk.hex() for chunk, _ in part],
        chunk_sizes=[size for _, size in part],
        has_more=question.first + len(part) < len(chunks),
    )
