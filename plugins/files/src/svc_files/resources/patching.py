"""PATCH of a path: renaming it, or merging into the JSON document that stands there."""

from __future__ import annotations

import threading

import falcon
import msgspec

from svc.database import Condition
from svc.errors import (
    AlreadyExists,
    Conflict,
    InvalidInput,
    PayloadTooLarge,
    PreconditionFailed,
    UnsupportedMediaType,
)
from svc.paths import Path, format_path
from svc.pipeline import body_stream, conditions_of, quote_etag, read_json, send_json
from svc.plugins import Operation
from svc.tree import Entry, EntryKind
from svc_files.access import authorize_below, authorize_put, body_path, guarded
from svc_files.content_types import base_type
from svc_files.items import file_answer, listing_item
from svc_files.json_documents import apply_merge_patch, decode_json, encode_json
from svc_files.requests import Writing, settings_of, writing_of
from svc_files.resolving import Place, follow, missing

__all__ = ["MERGE_PATCH", "merge_into", "rename"]

MERGE_PATCH = "application/merge-patch+json"
ACCEPTED = f"application/json, {MERGE_PATCH}"

_TURNS: dict[int, threading.Lock] = {}
_TURN_COUNT = 64


class Rename(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a rename: where to, and whether a file or link there may be replaced."""

    to: str
    overwrite: bool = False


def rename(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Moves a file, a link or a directory with everything below to another path, atomically.

    Raises:
        UnsupportedMediaType: the body is neither a rename nor a merge patch.
        NotFound: nothing is there.
        AlreadyExists: something stands at the destination.
        Conflict: a directory would go into itself.
    """
    if base_type(req.content_type) not in ("application/json", ""):
        resp.set_header("Accept-Patch", ACCEPTED)
        raise UnsupportedMediaType(f"A PATCH takes {ACCEPTED}.")
    body = read_json(req, Rename, settings_of(req).maximum_json)
    asked = body_path(body.to)
    writing = writing_of(req)
    source = follow(writing.version, path, final=False)
    destination = follow(writing.version, asked, final=False)
    writing.context.authorize(Operation.DELETE, path)
    if source.entry is None:
        raise missing(path)
    guard = authorize_below(
        writing.context, writing.version, source.path, source.entry, Operation.DELETE, destination.path
    )
    _authorize_destination(writing, destination, asked, body.overwrite)
    condition = conditions_of(req)
    if guard is not None and condition is not None:
        condition.check(source.path, source.entry)
    with guarded(guard), writing.transaction() as transaction:
        handle = transaction.move(
            source.path, destination.path, condition=guard or condition, overwrite=body.overwrite
        )
    entry = handle.result.after
    assert transaction.result is not None
    assert entry is not None
    resp.set_header("X-Svc-Version", transaction.result.version.hex())
    answer = listing_item(destination.path, entry)
    answer["from"] = format_path(source.path)
    answer["version"] = transaction.result.version.hex()
    send_json(resp, answer)


def _authorize_destination(writing: Writing, destination: Place, asked: Path, overwrite: bool) -> None:
    context = writing.context
    context.authorize(Operation.CREATE, destination.path)
    if asked != destination.path:
        context.authorize(Operation.CREATE, asked)
    if destination.entry is not None:
        if not overwrite:
            raise AlreadyExists("Something stands at the destination.", path=format_path(destination.path))
        context.authorize(Operation.UPDATE, destination.path)
    elif overwrite:
        context.authorize(Operation.UPDATE, destination.path)


def merge_into(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Merges a patch (RFC 7396) into the document at a path; makes the document when there is none.

    Whatever others write meanwhile is merged into, never lost: the result is stored on condition
    that the document is still the one that was read, and else merged again.

    Raises:
        InvalidInput: the patch is not JSON.
        PreconditionFailed: the caller's own condition does not hold.
        Conflict: what stands there is not a JSON document, or others kept changing it.
        PayloadTooLarge: patch or document is over the limit of JSON bodies.
    """
    settings = settings_of(req)
    patch = decode_json(body_stream(req, settings.maximum_json).read(-1), "The merge patch")
    asked = conditions_of(req)
    writing = writing_of(req)
    for _ in range(settings.merge_attempts):
        place = follow(writing.version, path)
        with _turn_at(place.path):
            writing = writing.again()
            place = follow(writing.version, path)
            condition = authorize_put(writing.context, place, path, asked)
            if condition is not None:
                condition.check(place.path, place.entry)
            try:
                _merge_once(resp, writing, place, patch, settings.maximum_json)
                return
            except PreconditionFailed:
                continue
    raise Conflict("Others kept changing the document; try again.", path=format_path(path))


def _turn_at(path: Path) -> threading.Lock:
    """Merges of one process into one path take turns, so that only other processes can overtake them.

    A lock is made at its first use: one that was made before gevent's monkey patching would stop the worker.
    """
    return _TURNS.setdefault(hash(path) % _TURN_COUNT, threading.Lock())


def _merge_once(resp: falcon.Response, writing: Writing, place: Place, patch: object, limit: int) -> None:
    present = place.entry
    merged = encode_json(apply_merge_patch(_document(writing, place, limit), patch))
    if len(merged) > limit:
        raise PayloadTooLarge("The merged document would be too large.", limit=limit)
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


def _document(writing: Writing, place: Place, limit: int) -> object:
    entry: Entry | None = place.entry
    if entry is None:
        return None
    if entry.kind is EntryKind.DIRECTORY:
        raise Conflict("A directory stands at this path.", path=format_path(place.path))
    if entry.size > limit:
        raise PayloadTooLarge("The stored document is too large to merge into.", limit=limit)
    try:
        return decode_json(writing.version.read_all(entry), "The stored file")
    except InvalidInput as error:
        raise Conflict(error.message, path=format_path(place.path)) from None
