"""The listing of a directory, as the answer to a GET of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import falcon
from blake3 import blake3

from svc.errors import InvalidInput
from svc.paths import Path, format_path, is_system_path
from svc.pipeline import (
    not_modified,
    query_flag,
    query_number,
    query_text,
    quote_etag,
    send_json,
    send_json_items,
)
from svc.plugins import Operation
from svc.tree import Entry
from svc_files.access import Reading
from svc_files.cursors import decode_cursor
from svc_files.deleted_view import DeletedFile, deleted_below
from svc_files.globs import Glob
from svc_files.headers import REVALIDATE, caching, describe
from svc_files.items import listing_item
from svc_files.listing import DeletedItems, Item, Listing
from svc_files.requests import READ_POINTS, settings_of

__all__ = ["deleted_rows", "send_listing"]

_MAXIMUM_DEPTH = 4096


def send_listing(
    req: falcon.Request,
    resp: falcon.Response,
    reading: Reading,
    path: Path,
    entry: Entry,
    link: Entry | None,
) -> None:
    """Answers with the entries of a directory that the caller may see.

    Args:
        req: the request, with the parameters of the listing in its query.
        resp: the response.
        reading: the version and who reads it.
        path: the directory, links resolved.
        entry: the directory's entry.
        link: the link that the request named, if it named one.

    Raises:
        InvalidInput: a parameter is malformed or out of bounds.
    """
    listing = _listing_of(req, reading, path)
    etag = None if listing.deleted is not None else entry.hash.hex()
    # To those who do not see everything, what is shown changes with their grants, at any version.
    cache = caching(reading) if reading.sees_all else REVALIDATE
    etag_of_all = etag if reading.sees_all else None
    describe(resp, path, entry, reading.version.root, etag=etag_of_all, link=link, cache=cache)
    resp.set_header("Vary", "Authorization")
    if etag is not None and not reading.sees_all:
        # What is left out depends on the caller and on grants: the system tree's root stands for those.
        etag = _etag_for_caller(reading, entry)
        resp.set_header("ETag", quote_etag(etag))
    if not_modified(req, etag, None if etag is None else entry.updated_ms):
        resp.status = 304
        return
    if listing.depth == 0:
        _send_page(resp, listing)
    else:
        _stream(req, resp, listing)


def _send_page(resp: falcon.Response, listing: Listing) -> None:
    page = listing.page()
    items = list(page)
    send_json(
        resp,
        {
            "path": format_path(listing.path),
            "items": items,
            "total": listing.total(),
            "has_more": page.has_more,
            "next_cursor": page.next_cursor,
        },
    )


def _stream(req: falcon.Request, resp: falcon.Response, listing: Listing) -> None:
    page = listing.page()

    def tail() -> dict[str, Any]:
        complete = listing.after is None and not page.has_more
        return {
            "path": format_path(listing.path),
            "total": listing.offset + page.count if complete and page.count else listing.total(),
            "has_more": page.has_more,
            "next_cursor": page.next_cursor,
        }

    if req.method == "HEAD":
        resp.content_type = "application/json"
        return
    send_json_items(resp, "items", page, tail)


def _listing_of(req: falcon.Request, reading: Reading, path: Path) -> Listing:
    settings = settings_of(req)
    depth = query_number(req, "depth", 0, minimum=-1, maximum=_MAXIMUM_DEPTH) or 0
    default = settings.listing_default if depth == 0 else None
    maximum = settings.listing_maximum if depth == 0 else None
    pattern, cursor = query_text(req, "glob"), query_text(req, "after")
    after = decode_cursor(cursor) if cursor is not None else None
    offset = query_number(req, "offset", 0) or 0
    if after is not None and offset:
        raise InvalidInput("A page begins at a cursor (after) or at an offset, not both.", field="offset")
    return Listing(
        reading,
        path,
        depth=depth,
        glob=None if pattern is None else Glob(pattern),
        after=after,
        offset=offset,
        limit=query_number(req, "limit", default, minimum=1, maximum=maximum),
        deleted=_deleted_items(req, reading, path) if query_flag(req, "deleted") else None,
        count_maximum=settings.count_maximum,
    )


def _deleted_items(req: falcon.Request, reading: Reading, path: Path) -> DeletedItems:
    for name in READ_POINTS:
        if query_text(req, name) is not None:
            raise InvalidInput(
                f"deleted=true lists what was deleted from HEAD; leave {name} out.", field=name
            )
    reading.context.authorize(Operation.DELETE, path)

    def rows(directory: Path, after: Path | None, depth: int) -> Iterator[Item]:
        for found, gone in deleted_rows(reading, directory, after, depth):
            item = listing_item(found, gone.entry)
            item["deleted"] = True
            item["deleted_at"] = gone.deleted_ms
            flags = reading.permissions(found)
            if flags is not None:
                item["effective_permissions"] = flags
            yield found, item

    return rows


def deleted_rows(
    reading: Reading, directory: Path, after: Path | None, depth: int
) -> Iterator[tuple[Path, DeletedFile]]:
    """Yields the deleted files below a directory that the caller may know of, in path order."""
    for found, gone in deleted_below(reading.context.database, directory, after=after, depth=depth):
        if is_system_path(found) or not reading.context.may(Operation.DELETE, found):
            continue
        # The view may be a commit ahead of what is listed.
        if reading.version.get(found) is None:
            yield found, gone


def _etag_for_caller(reading: Reading, entry: Entry) -> str:
    identity = reading.context.identity
    system_root = reading.context.database.head().system_root
    who = repr((identity.user_id, identity.key_id, identity.rules))
    return blake3(entry.hash + system_root + reading.version.root + who.encode()).hexdigest()[:40]
