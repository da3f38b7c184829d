"""Batches: many operations, one commit or none."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from svc.errors import (
    AlreadyExists,
    Conflict,
    InvalidInput,
    InvalidPath,
    NotFound,
    PreconditionFailed,
    SvcError,
)
from svc.plugin import (
    Condition,
    EntryKind,
    Hash,
    Operation,
    OperationResult,
    Path,
    StoredContent,
    Transaction,
    format_path,
    in_turns,
    parse_hash,
    parse_path,
)
from svc_files.access import (
    MOVED,
    authorize_below,
    authorize_ends,
    authorize_put,
    body_path,
    commit_condition,
    file_path,
    require_count,
    require_size,
    takes_directories,
)
from svc_files.chunk_access import require_chunks
from svc_files.client_chunks import note_client_chunks, restore_client_chunks
from svc_files.content_types import choose_content_type
from svc_files.copying import queue_copy
from svc_files.linking import refuse_circle
from svc_files.models import (
    AnyOperation,
    BatchBody,
    BatchResult,
    CopyOperation,
    DeleteOperation,
    LinkOperation,
    MoveOperation,
    PutOperation,
)
from svc_files.requests import RequestSettings, Writing

__all__ = ["chunk_content", "naming_operation", "run_batch"]


Cut = tuple[StoredContent, list[str]]
"""A content, and the hashes in hex of the chunks that a client made it of."""


def run_batch(writing: Writing, body: BatchBody, settings: RequestSettings) -> BatchResult:
    """Does all operations in one commit, or none; an error names the operation by its index."""
    require_count(len(body.operations), settings.maximum_batch, "operations")
    transaction = writing.transaction(body.message)
    answers: list[dict[str, Any]] = []
    cuts: list[Cut] = []
    made: dict[Path, Path | None] = {}
    for index, operation in enumerate(in_turns(body.operations)):
        with naming_operation(index):
            answers.append(_queue(writing, transaction, operation, settings.maximum_body, cuts, made))
    # Behind all operations, whose numbers and results so are those of the request.
    for content, hashes in cuts:
        note_client_chunks(transaction, writing.database, content, map(bytes.fromhex, hashes))
    with naming_operation(None):
        version = transaction.commit().version.hex()
    results = zip(answers, transaction.results, strict=False)
    return BatchResult([_completed(answer, result) for answer, result in results], version)


def chunk_content(
    writing: Writing, hashes: list[str], size: int | None, content_hash: str | None, limit: int
) -> StoredContent:
    """Returns the content that uploaded chunks make up; hashes are in hex, the chunks in order.

    ``size`` and ``content_hash`` are what the client states. Raises PayloadTooLarge over the limit, and
    InvalidInput for a malformed hash, for missing chunks (``missing`` lists them), or for a content that does
    not have the size or hash that was stated.
    """
    parsed = [_hash(text, "chunk_hashes") for text in hashes]
    require_chunks(writing.context, parsed)
    stated = None if content_hash is None else _hash(content_hash, "content_hash")
    restore_client_chunks(writing.database, parsed)
    content = writing.database.content_of_chunks(parsed, size=size, content_hash=stated)
    require_size(content.size, limit)
    return content


def _queue(
    writing: Writing,
    transaction: Transaction,
    operation: AnyOperation,
    limit: int,
    cuts: list[Cut],
    made: dict[Path, Path | None],
) -> dict[str, Any]:
    if isinstance(operation, PutOperation):
        return _queue_put(writing, transaction, operation, limit, cuts)
    if isinstance(operation, DeleteOperation):
        answer = _queue_delete(writing, transaction, operation)
        made[parse_path(answer["path"])] = None
        return answer
    if isinstance(operation, MoveOperation):
        return _queue_move(writing, transaction, operation)
    if isinstance(operation, CopyOperation):
        return _queue_copy(writing, transaction, operation)
    if isinstance(operation, LinkOperation):
        return _queue_link(writing, transaction, operation, made)
    path = _made(writing, operation.path)
    transaction.mkdir(path, exist_ok=operation.exist_ok, at_ms=operation.at)
    return {"op": "mkdir", "path": format_path(path)}


def _queue_put(
    writing: Writing, transaction: Transaction, operation: PutOperation, limit: int, cuts: list[Cut]
) -> dict[str, Any]:
    asked = file_path(operation.path)
    place = writing.follow(asked)
    given = _condition(operation.if_match, operation.if_none_match)
    condition = authorize_put(writing.context, place, asked, given)
    content = _content(writing, operation, limit)
    if operation.chunk_hashes is not None:
        cuts.append((content, operation.chunk_hashes))
    name = place.path[-1] if place.path else ""
    content_type = choose_content_type(operation.content_type, content.head, name)
    transaction.put(
        place.path,
        content,
        content_type=content_type,
        created_ms=operation.created_at,
        updated_ms=operation.updated_at,
        condition=condition,
    )
    return {"op": "put", "path": format_path(place.path)}


def _queue_delete(writing: Writing, transaction: Transaction, operation: DeleteOperation) -> dict[str, Any]:
    asked = body_path(operation.path)
    place = writing.follow(asked, final=False)
    authorize_ends(writing.context, Operation.DELETE, asked, place)
    guard = None
    if operation.recursive and place.entry is not None:
        guard = authorize_below(
            writing.context, writing.version, place.path, place.entry, (Operation.DELETE,)
        )
    condition = commit_condition(guard, _condition(operation.if_match, None), place)
    recursive = operation.recursive and takes_directories(
        writing.context, place.entry, (Operation.DELETE,), place.path
    )
    transaction.delete(place.path, recursive=recursive, condition=condition)
    return {"op": "delete", "path": format_path(place.path), "deleted": True}


def _queue_move(writing: Writing, transaction: Transaction, operation: MoveOperation) -> dict[str, Any]:
    asked = body_path(operation.source)
    place = writing.follow(asked, final=False)
    for needed in MOVED:
        authorize_ends(writing.context, needed, asked, place)
    target = _made(writing, operation.target, overwrite=operation.overwrite)
    guard = None
    if place.entry is not None:
        guard = authorize_below(writing.context, writing.version, place.path, place.entry, MOVED, target)
    condition = commit_condition(guard, _condition(operation.if_match, None), place)
    transaction.move(
        place.path,
        target,
        condition=condition,
        overwrite=operation.overwrite,
        takes_directories=takes_directories(writing.context, place.entry, MOVED, place.path, target),
    )
    return {"op": "move", "from": format_path(place.path), "path": format_path(target)}


def _queue_copy(writing: Writing, transaction: Transaction, operation: CopyOperation) -> dict[str, Any]:
    source = body_path(operation.source)
    target = _made(writing, operation.target, overwrite=operation.overwrite)
    place = writing.follow(source, final=False)
    if place.entry is None:
        # An earlier operation of the batch may put it there; the caller then wrote it.
        authorize_ends(writing.context, Operation.READ, source, place)
        transaction.copy(
            source,
            target,
            overwrite=operation.overwrite,
            takes_directories=takes_directories(writing.context, None, (Operation.READ,), source, target),
        )
        return {"op": "copy", "from": format_path(source), "path": format_path(target)}
    place = queue_copy(writing, transaction, source, target, overwrite=operation.overwrite)
    return {"op": "copy", "from": format_path(place.path), "path": format_path(target)}


def _queue_link(
    writing: Writing, transaction: Transaction, operation: LinkOperation, made: dict[Path, Path | None]
) -> dict[str, Any]:
    if not operation.target.startswith("/"):
        raise InvalidPath("A link's target is an absolute path.", field="target")
    target = body_path(operation.target)
    asked = body_path(operation.path)
    place = writing.follow(asked, final=False)
    condition = authorize_put(writing.context, place, asked, None)
    refuse_circle(writing, place.path, target, made)
    made[place.path] = target
    transaction.link(
        place.path,
        format_path(target),
        created_ms=operation.created_at,
        updated_ms=operation.updated_at,
        condition=condition,
    )
    return {"op": "link", "path": format_path(place.path), "target": format_path(target)}


def _made(writing: Writing, text: str, *, overwrite: bool = False) -> Path:
    """The path of something that is made, links on the way resolved, if the caller may make it."""
    asked = body_path(text)
    place = writing.follow(asked, final=False)
    authorize_ends(writing.context, Operation.CREATE, asked, place)
    if overwrite:
        writing.context.authorize(Operation.UPDATE, place.path)
    return place.path


def _content(writing: Writing, operation: PutOperation, limit: int) -> StoredContent:
    given = [
        value
        for value in (operation.content, operation.content_base64, operation.chunk_hashes)
        if value is not None
    ]
    if len(given) != 1:
        raise InvalidInput(
            "A put has exactly one of content, content_base64 and chunk_hashes.", field="content"
        )
    if operation.chunk_hashes is not None:
        return chunk_content(writing, operation.chunk_hashes, operation.size, operation.content_hash, limit)
    inline = _inline(operation)
    require_size(len(inline), limit)
    content = writing.database.store_bytes(inline)
    if operation.size is not None and operation.size != content.size:
        raise InvalidInput(f"The content has {content.size} bytes, not {operation.size}.", field="size")
    stated = None if operation.content_hash is None else _hash(operation.content_hash, "content_hash")
    if stated is not None and stated != content.content_hash:
        raise InvalidInput("The content does not have this hash.", field="content_hash")
    return content


def _inline(operation: PutOperation) -> bytes:
    try:
        if operation.content is not None:
            return operation.content.encode("utf-8")
        return base64.b64decode(operation.content_base64 or "", validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise InvalidInput("The content is not valid UTF-8 or base64.", field="content") from None


def _hash(text: str, field: str) -> Hash:
    parsed = parse_hash(text)
    if parsed is None:
        raise InvalidInput("A hash is 64 hex digits.", field=field)
    return parsed


def _condition(if_match: str | None, if_none_match: str | None) -> Condition | None:
    if if_match is None and if_none_match is None:
        return None
    return Condition(
        if_match=None if if_match is None else (if_match.strip('"'),),
        if_none_match=None if if_none_match is None else (if_none_match.strip('"'),),
    )


@contextmanager
def naming_operation(index: int | None) -> Iterator[None]:
    """Makes every error name its operation; what the present state refuses is 409, whichever way.

    ``index`` is None around the commit, whose errors carry it.
    """
    try:
        yield
    except SvcError as error:
        if index is not None:
            error.details.setdefault("operation", index)
        refused = isinstance(error, PreconditionFailed) or (isinstance(error, NotFound) and index is None)
        if refused and not isinstance(error, AlreadyExists):
            raise Conflict(error.message, reason=error.code, **error.details) from None
        raise


def _completed(answer: dict[str, Any], result: OperationResult) -> dict[str, Any]:
    entry = result.after or result.before
    if entry is not None:
        answer["entry_type"] = int(entry.kind)
        if entry.kind is EntryKind.FILE and result.after is not None:
            answer.update(
                size=entry.size,
                content_type=entry.content_type,
                content_hash=entry.hash.hex(),
                created_at=entry.created_ms,
                updated_at=entry.updated_ms,
            )
    if answer["op"] == "put":
        answer["created"] = result.before is None
    return answer
