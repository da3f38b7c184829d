"""Responders of ``/links/{path}``: symbolic links themselves, never what they name."""

from __future__ import annotations

from typing import Any

import falcon

from svc.errors import InvalidPath, NotFound, SvcError
from svc.plugin import (
    Entry,
    EntryKind,
    Operation,
    Path,
    conditions_of,
    context_of,
    format_path,
    not_modified,
    quote_etag,
    read_json,
    read_parameters,
    send_json,
)
from svc_files.access import Reading, authorize_ends, authorize_put, body_path
from svc_files.headers import describe, header_path
from svc_files.items import listing_item
from svc_files.linking import refuse_circle
from svc_files.models import LinkBody, ReadQuery, WriteQuery
from svc_files.requests import reading_of, writing_of
from svc_files.resolving import follow, missing

__all__ = ["delete_link", "make_link", "read_link"]


def read_link(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Describes the link: its target, and where it leads if it leads anywhere the caller may see."""
    reading = reading_of(context_of(req), read_parameters(req, ReadQuery))
    found, entry = reading.find(path, Operation.READ, final=False)
    if entry.kind is not EntryKind.SYMLINK:
        raise NotFound("No link is at this path.", path=format_path(path))
    etag = entry.hash.hex()
    # Whether it shows where the link leads depends on grants.
    immutable = reading.fixed and reading.sees_all
    describe(resp, found, entry, reading.version.root, etag=etag, immutable=immutable)
    # What the answer says of the far end changes without the link: its tag can't be used for that.
    if not_modified(req, etag, entry.updated_ms):
        resp.status = 304
        return
    answer = listing_item(found, entry)
    answer["resolved"] = _resolved(reading, found)
    send_json(resp, answer)


def make_link(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Makes or replaces the link. It may dangle; it may not lead in a circle."""
    body = read_json(req, LinkBody)
    if not body.target.startswith("/"):
        raise InvalidPath("A link's target is an absolute path.", field="target")
    target = body_path(body.target)
    writing = writing_of(context_of(req), read_parameters(req, WriteQuery))
    place = writing.follow(path, final=False)
    condition = authorize_put(writing.context, place, path, conditions_of(req))
    refuse_circle(writing, place.path, target)
    with writing.transaction() as transaction:
        handle = transaction.link(place.path, format_path(target), condition=condition)
    result = handle.result
    assert transaction.result is not None
    assert result.after is not None
    resp.set_header("ETag", quote_etag(result.after.hash.hex()))
    resp.set_header("X-Svc-Version", transaction.result.version.hex())
    created = result.before is None
    if created:
        resp.set_header("Location", f"/links{header_path(place.path)}")
    answer = _link_answer(place.path, result.after)
    answer["version"] = transaction.result.version.hex()
    send_json(resp, answer, 201 if created else 200)


def delete_link(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Removes the link."""
    writing = writing_of(context_of(req), read_parameters(req, WriteQuery))
    place = writing.follow(path, final=False)
    authorize_ends(writing.context, Operation.DELETE, path, place)
    if place.entry is None:
        raise missing(path)
    if place.entry.kind is not EntryKind.SYMLINK:
        raise NotFound("No link is at this path.", path=format_path(path))
    condition = conditions_of(req)
    with writing.transaction() as transaction:
        transaction.delete(place.path, condition=condition)
    assert transaction.result is not None
    version = transaction.result.version.hex()
    resp.set_header("X-Svc-Version", version)
    send_json(
        resp,
        {
            "deleted": True,
            "path": format_path(place.path),
            "entry_type": int(EntryKind.SYMLINK),
            "version": version,
        },
    )


def _link_answer(path: Path, entry: Entry) -> dict[str, Any]:
    answer = listing_item(path, entry)
    del answer["content_type"]
    return answer


def _resolved(reading: Reading, path: Path) -> str | None:
    """Where the link leads in the end; None for nowhere, and for where the caller may not look."""
    try:
        place = follow(reading.version, path, may_pass=reading.shows)
    except SvcError:
        return None
    path, entry = place
    if entry is None or not reading.shows(path, directory=entry.kind is EntryKind.DIRECTORY):
        return None
    return format_path(path)
