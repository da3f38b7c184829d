"""Which chunks a client need not upload, and files that are made of uploaded ones."""

from __future__ import annotations

from typing import Any

from svc.errors import InvalidInput
from svc.plugin import (
    Call,
    Hash,
    Operation,
    OperationHandle,
    StoredContent,
    format_path,
    in_turns,
    parse_hash,
)
from svc_files.access import authorize_put, file_path, require_count
from svc_files.batch import chunk_content, naming_operation
from svc_files.chunk_access import has_chunk, require_chunks
from svc_files.client_chunks import note_client_chunks
from svc_files.content_types import choose_content_type
from svc_files.models import Checked, Committed, CommittedFile, FileBatch
from svc_files.requests import RequestSettings, Writing, settings_of

__all__ = ["CHUNKING", "MAXIMUM_CHUNK", "STORE", "check_chunks", "commit_chunks", "parse_chunk_hash"]

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
STORE = (Operation.CREATE, Operation.UPDATE)
"""One of these on some path is what an upload needs."""


def check_chunks(call: Call, hashes: list[str]) -> Checked:
    """Sorts hashes in hex into those that the caller need not upload, and those that it must."""
    require_count(len(hashes), settings_of(call).maximum_chunks, "hashes")
    have: list[str] = []
    needed: list[str] = []
    database = call.database
    with database.hold():
        for name in in_turns(dict.fromkeys(hashes)):
            hash = parse_chunk_hash(name, "hashes")
            (have if has_chunk(call, hash) else needed).append(name)
        if not database.read_only and call.may_somewhere(*STORE):
            # What the client need not upload must still be there when it commits, if it ever may.
            database.pin(bytes.fromhex(name) for name in have)
    return Checked(have, needed)


def commit_chunks(writing: Writing, body: FileBatch, settings: RequestSettings) -> Committed:
    """Commits all files or none; chunks that are missing anywhere are named together."""
    require_count(len(body.files), settings.maximum_batch, "files")
    places = []
    for index, file in enumerate(body.files):
        with naming_operation(index):
            asked = file_path(file.path)
            place = writing.follow(asked)
            places.append((place, authorize_put(writing.context, place, asked, None)))
    named = in_turns(name for file in body.files for name in file.chunk_hashes)
    hashes = [parse_chunk_hash(name, "chunk_hashes") for name in named]
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
        CommittedFile(
            format_path(result.path),
            result.after.size,
            result.after.content_type,
            result.after.hash.hex(),
            result.before is None,
        )
        for result in (handle.result for handle, _, _ in put)
        if result.after is not None
    ]
    return Committed(committed, version)


def parse_chunk_hash(name: str, field: str) -> Hash:
    """Returns the hash that hex digits spell."""
    hash = parse_hash(name)
    if hash is None:
        raise InvalidInput("A chunk's hash is 64 hex digits.", field=field)
    return hash
