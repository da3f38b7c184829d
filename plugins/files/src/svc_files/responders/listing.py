"""The listing of a directory, as the answer to a GET of it."""

from __future__ import annotations

from typing import Any

import falcon
from blake3 import blake3

from svc.errors import InvalidInput
from svc.plugin import (
    Call,
    Entry,
    Operation,
    Path,
    context_of,
    dear_work,
    format_path,
    not_modified,
    send_json,
    send_json_items,
    set_fields,
    vary_by,
)
from svc_files.access import Reading
from svc_files.deleted_view import search_below
from svc_files.globs import Glob
from svc_files.headers import describe
from svc_files.listing import DeletedFiles, Listing, Page, cursors_of
from svc_files.models import FileQuery
from svc_files.requests import READ_POINTS, page_limit, settings_of
from svc_files.responders.html_listing import FIELDS, html_page, wants_html

__all__ = ["send_listing"]


def send_listing(
    req: falcon.Request,
    resp: falcon.Response,
    query: FileQuery,
    reading: Reading,
    path: Path,
    entry: Entry,
    link: Entry | None,
) -> None:
    """Answers with the entries of a directory that the caller may see."""
    listing = _listing_of(query, reading, path)
    complete = reading.sees_below(path)
    etag = None if listing.deleted is not None else _etag(reading, path, entry)
    as_html = listing.depth == 0 and listing.deleted is None and wants_html(req)
    if as_html and etag is not None:
        etag += "-html"
    # To those who do not see everything, what is shown changes with their grants, at any version.
    immutable = reading.fixed and reading.sees_all
    describe(
        resp, path, entry, reading.shown_root, etag=etag, link=link, immutable=immutable, complete=complete
    )
    vary_by(resp, "Authorization")
    vary_by(resp, "Accept")
    if not_modified(req, etag, entry.updated_ms if etag is not None and complete else None):
        resp.status = 304
        return
    with dear_work(context_of(req)):
        if as_html:
            _send_html(req, resp, listing)
        elif listing.depth == 0:
            _send_page(resp, listing)
        else:
            _stream(resp, reading, listing)


def _send_page(resp: falcon.Response, listing: Listing) -> None:
    page = listing.page()
    items = list(page)
    send_json(resp, {"path": format_path(listing.path), "items": items, **_tail(page)})


def _send_html(req: falcon.Request, resp: falcon.Response, listing: Listing) -> None:
    page = listing.page()
    items = list(page)
    set_fields(resp, FIELDS)
    resp.content_type = falcon.MEDIA_HTML
    resp.text = html_page(req, format_path(listing.path), items, page.next_cursor)


def _stream(resp: falcon.Response, reading: Reading, listing: Listing) -> None:
    hold = reading.hold()
    page = listing.page()
    send_json_items(
        resp, "items", page, lambda: {"path": format_path(listing.path), **_tail(page)}, hold=hold
    )


def _tail(page: Page) -> dict[str, Any]:
    return {"total": page.total, "has_more": page.has_more, "next_cursor": page.next_cursor}


def _listing_of(query: FileQuery, reading: Reading, path: Path) -> Listing:
    settings = settings_of(reading.context)
    after, offset = None, query.offset
    if query.after is not None:
        if offset:
            raise InvalidInput("A page begins at a cursor (after) or at an offset, not both.", field="offset")
        after, offset = cursors_of(reading).decode(query.after)
    return Listing(
        reading,
        path,
        page_limit(query.limit, settings),
        settings.scan_entries,
        depth=query.depth,
        glob=None if query.glob is None else Glob(query.glob),
        after=after,
        offset=offset,
        deleted=_deleted_files(query, reading, path) if query.deleted else None,
    )


def _deleted_files(query: FileQuery, reading: Reading, path: Path) -> DeletedFiles:
    for name in READ_POINTS:
        if getattr(query, name) is not None:
            raise InvalidInput(
                f"deleted=true lists what was deleted from HEAD; leave {name} out.", field=name
            )
    reading.context.authorize(Operation.DELETE, path)
    database = reading.context.database
    return lambda directory, after, depth: search_below(database, directory, after=after, depth=depth)


def _etag(reading: Reading, path: Path, entry: Entry) -> str:
    """The tag of a listing: the directory's hash, or one of the caller's own.

    What is left out for those who do not see everything depends on their rights, and in the past on what was
    deleted since, unless they may see that too.
    """
    if reading.sees_all:
        return entry.hash.hex()
    context = reading.context
    identity = context.identity
    who = (identity.user_id, identity.key_id, identity.is_root, identity.rules)
    head = reading.head
    now = b"" if head is None or context.may_below(Operation.DELETE, path) else head.root
    return blake3(repr((who, _rights_mark(context), reading.version.root, now)).encode()).hexdigest()[:40]


def _rights_mark(context: Call) -> bytes:
    """A value that changes with the caller's own rights; of rights that have none, with the system tree."""
    identity = context.identity
    if identity.is_root or identity.rights is None:
        return b""
    fingerprint: bytes | None = getattr(identity.rights, "fingerprint", None)
    return context.database.head().system_root if fingerprint is None else fingerprint
