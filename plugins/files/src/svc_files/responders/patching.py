"""PATCH of a path: renaming it, or merging into the JSON document that stands there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import WeakValueDictionary

import falcon

from svc.errors import (
    AlreadyExists,
    Conflict,
    InvalidInput,
    PayloadTooLarge,
    PreconditionFailed,
    UnsupportedMediaType,
)
from svc.plugin import (
    Condition,
    Entry,
    EntryKind,
    Operation,
    Path,
    body_stream,
    conditions_of,
    context_of,
    dear_work,
    format_path,
    json_command,
    quote_etag,
    read_json,
    read_parameters,
    run_blocking,
    send_json,
    without_turn,
)
from svc_files.access import (
    MOVED,
    authorize_below,
    authorize_ends,
    authorize_put,
    body_path,
    commit_condition,
    guarded,
    require_file_path,
    require_size,
    takes_directories,
)
from svc_files.content_types import base_type
from svc_files.items import file_answer
from svc_files.json_documents import decode_json
from svc_files.json_process import IN_PLACE_BYTES, merge_patch
from svc_files.models import RenameBody, WriteQuery
from svc_files.requests import Writing, settings_of, writing_of
from svc_files.resolving import Place, missing

__all__ = ["MERGE_PATCH", "merge_into", "rename"]

MERGE_PATCH = "application/merge-patch+json"
ACCEPTED = f"application/json, {MERGE_PATCH}"

_TURNS: WeakValueDictionary[Path, _Turn] = WeakValueDictionary()


class _Turn:
    """The turns at one path, for as long as somebody is at it or waits."""

    def __init__(self) -> None:
        # Made when it is used: one that was made before gevent's monkey patching would stop the worker.
        self.lock = threading.Lock()


def rename(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Moves a file, a link or a directory with everything below to another path, atomically.

    Raises UnsupportedMediaType where the body is neither a rename nor a merge patch, NotFound, AlreadyExists
    at the destination, and Conflict for a directory that would go into itself.
    """
    if base_type(req.content_type) not in ("application/json", ""):
        resp.set_header("Accept-Patch", ACCEPTED)
        raise UnsupportedMediaType(
            f"A PATCH takes {ACCEPTED}. To rename, for example: {json_command(req, RenameBody)}"
        )
    body = read_json(req, RenameBody)
    asked = body_path(body.to)
    writing = writing_of(context_of(req), read_parameters(req, WriteQuery))
    source = writing.follow(path, final=False)
    destination = writing.follow(asked, final=False)
    for needed in MOVED:
        authorize_ends(writing.context, needed, path, source)
    authorize_ends(writing.context, Operation.CREATE, asked, destination)
    if source.entry is None:
        raise missing(path)
    guard = authorize_below(
        writing.context, writing.version, source.path, source.entry, MOVED, destination.path
    )
    if body.overwrite:
        writing.context.authorize(Operation.UPDATE, destination.path)
    elif destination.entry is not None:
        raise AlreadyExists("Something stands at the destination.", path=format_path(destination.path))
    condition = commit_condition(guard, conditions_of(req), source)
    with guarded(guard), writing.transaction() as transaction:
        handle = transaction.move(
            source.path,
            destination.path,
            condition=condition,
            overwrite=body.overwrite,
            takes_directories=takes_directories(
                writing.context, source.entry, MOVED, source.path, destination.path
            ),
        )
    entry = handle.result.after
    assert transaction.result is not None
    assert entry is not None
    resp.set_header("X-Svc-Version", transaction.result.version.hex())
    answer = writing.item(destination.path, entry)
    answer["from"] = format_path(source.path)
    answer["version"] = transaction.result.version.hex()
    send_json(resp, answer)


def merge_into(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Merges a patch (RFC 7396) into the document at a path; makes the document when there is none.

    Whatever others write meanwhile is merged into, never lost: the result is stored on condition that the
    document is still the one that was read, and else merged again.

    Raises:
        InvalidInput: the patch is not JSON.
        PreconditionFailed: the caller's own condition does not hold.
        Conflict: what stands there is not a JSON document, or others kept changing it.
        PayloadTooLarge: patch or document is over the limit of JSON bodies, or the result over that of files.
    """
    settings = settings_of(context_of(req))
    require_file_path(req.path, path)
    patch = body_stream(req, settings.maximum_json).read(-1)
    if len(patch) <= IN_PLACE_BYTES:
        decode_json(patch, "The merge patch")
    asked = conditions_of(req)
    writing = writing_of(context_of(req), read_parameters(req, WriteQuery))
    for _ in range(settings.merge_attempts):
        place = writing.follow(path)
        with _turn_at(place.path):
            writing = writing.again()
            place = writing.follow(path)
            condition = authorize_put(writing.context, place, path, asked)
            if place.entry is not None:
                # The answer tells hash and size of what comes out, and so of what was there.
                authorize_ends(writing.context, Operation.READ, path, place)
            if condition is not None:
                condition.check(place.path, place.entry)
            try:
                _merge_once(resp, writing, place, patch, settings.maximum_json, settings.maximum_body)
                return
            except PreconditionFailed:
                continue
    raise Conflict("Others kept changing the document; try again.", path=format_path(path))


@contextmanager
def _turn_at(path: Path) -> Iterator[None]:
    """Merges of one process into one path take turns, so that only other processes can overtake them."""
    turn = _TURNS.get(path)
    if turn is None:
        turn = _TURNS[path] = _Turn()
    with ExitStack() as held:
        with without_turn():  # who has this one may wait for a turn of dear work
            held.enter_context(turn.lock)
        yield


def _merge_once(
    resp: falcon.Response, writing: Writing, place: Place, patch: bytes, limit: int, most: int
) -> None:
    present = place.entry
    document = _document(writing, place, limit)
    try:
        with dear_work(writing.context):
            merged = merge_patch(document, patch)
    except InvalidInput as error:
        if error.message.startswith("The merge patch"):
            raise
        raise Conflict(error.message, path=format_path(place.path)) from None
    if len(merged) > limit:
        raise PayloadTooLarge(f"A merged document has at most {limit} bytes.", limit=limit)
    require_size(len(merged), most)
    unchanged = (
        Condition(if_none_match=("*",)) if present is None else Condition(if_match=(present.hash.hex(),))
    )
    with writing.transaction() as transaction:
        handle = transaction.put(
            place.path,
            merged,
            content_type="application/json" if present is None else present.content_type,
            condition=unchanged,
        )
    entry = handle.result.after
    assert transaction.result is not None
    assert entry is not None
    version = transaction.result.version
    resp.set_header("ETag", quote_etag(entry.hash.hex()))
    resp.set_header("X-Svc-Version", version.hex())
    send_json(resp, file_answer(place.path, entry, version), 201 if present is None else 200)


def _document(writing: Writing, place: Place, limit: int) -> bytes:
    entry: Entry | None = place.entry
    if entry is None:
        return b""
    if entry.kind is EntryKind.DIRECTORY:
        raise Conflict("A directory stands at this path.", path=format_path(place.path))
    if entry.size > limit:
        raise PayloadTooLarge("The stored document is too large to merge into.", limit=limit)
    return run_blocking(writing.version.read_all, entry)
