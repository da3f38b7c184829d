"""Responders of ``/files/{path}``: one file, link or directory."""

from __future__ import annotations

from typing import Any

import falcon

from svc.errors import Conflict, InvalidInput, LengthRequired, UnsupportedMediaType
from svc.plugin import (
    Condition,
    Entry,
    EntryKind,
    Operation,
    Path,
    body_stream,
    conditions_of,
    context_of,
    format_path,
    not_modified,
    quote_etag,
    read_parameters,
    send_content,
    send_json,
    set_fields,
    upload_command,
)
from svc_files.access import (
    PutPermission,
    Reading,
    authorize_below,
    authorize_ends,
    commit_condition,
    guarded,
    require_file_path,
    takes_directories,
)
from svc_files.content_types import (
    OCTET_STREAM,
    base_type,
    check_content_type,
    choose_content_type,
    in_coding,
)
from svc_files.headers import describe, header_path, set_content_headers
from svc_files.items import file_answer, listing_item
from svc_files.models import DeleteQuery, FileQuery, PutQuery
from svc_files.mounted_reading import reading_of_mount
from svc_files.mounts import Mount
from svc_files.requests import Writing, reading_of, settings_of, writing_of
from svc_files.resolving import Place, missing
from svc_files.responders.listing import send_listing
from svc_files.responders.patching import MERGE_PATCH, merge_into, rename

__all__ = ["change_path", "delete_path", "read_mounted", "read_path", "store_file"]

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
_MAXIMUM_TIME = 253402300799999
_TIME_FIELDS = {
    "X-Svc-Created-At": "HTTP_X_SVC_CREATED_AT",
    "X-Svc-Updated-At": "HTTP_X_SVC_UPDATED_AT",
}
"""Their names in the WSGI environment. Falcon would translate a name, and look in two places, each time."""

_DIRECTORY = EntryKind.DIRECTORY
_SYMLINK = EntryKind.SYMLINK


_READ_PLAINLY, _STORED_PLAINLY = FileQuery(), PutQuery()


def read_path(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """A file's bytes, a directory's listing, or with ``nofollow`` the description of a link."""
    query = read_parameters(req, FileQuery) if req.query_string else _READ_PLAINLY
    _answer_reading(req, resp, path, query, reading_of(context_of(req), query))


def read_mounted(req: falcon.Request, resp: falcon.Response, path: Path, mount: Mount) -> None:
    """As ``read_path``, of a path of a mount, as it is now: whichever version is asked for."""
    query = read_parameters(req, FileQuery)
    if query.deleted:
        raise InvalidInput("Nothing is listed here that was deleted.", field="deleted")
    _answer_reading(req, resp, path, query, reading_of_mount(context_of(req), mount))


def _answer_reading(
    req: falcon.Request, resp: falcon.Response, path: Path, query: FileQuery, reading: Reading
) -> None:
    found, entry = reading.find(path, final=not query.nofollow)
    version = reading.version
    link = version.get(path) if found != path else None
    if link is not None and link.kind is not _SYMLINK:
        link = None
    if entry.kind is _DIRECTORY:
        send_listing(req, resp, query, reading, found, entry, link)
        return
    etag = entry.hash.hex()
    describe(resp, found, entry, reading.shown_root, etag=etag, link=link, immutable=reading.fixed)
    if entry.kind is _SYMLINK:
        if not_modified(req, etag, entry.updated_ms):
            resp.status = 304
            return
        send_json(resp, listing_item(found, entry))
        return
    set_content_headers(req, resp, entry)
    send_content(
        req,
        resp,
        size=entry.size,
        etag=etag,
        updated_ms=entry.updated_ms,
        content_type=entry.content_type or OCTET_STREAM,
        read=lambda start, length: version.read(entry, start, length),
        read_all=lambda: version.read_all(entry),
        hold=reading.hold,
    )


def store_file(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Stores the body; parents appear by themselves, links on the way are followed."""
    query = read_parameters(req, PutQuery) if req.query_string else _STORED_PLAINLY
    writing = writing_of(context_of(req), query)
    place = writing.follow(path, final=not query.nofollow)
    permission = PutPermission(writing.context, place, path, conditions_of(req))
    _refuse_what_is_no_file(req, path)
    _refuse_early(writing, place, permission.condition())
    created_ms, updated_ms = _time(req, "X-Svc-Created-At"), _time(req, "X-Svc-Updated-At")
    given = _stated_type(req)
    name = place.path[-1] if place.path else ""
    stated = check_content_type(given)  # a bad one is refused before the body is taken
    coding = req.env.get("HTTP_CONTENT_ENCODING")
    if coding is not None:
        in_coding(stated or OCTET_STREAM, coding)
    content = writing.database.store(
        body_stream(req, settings_of(context_of(req)).maximum_body), like=place.entry
    )
    condition = permission.condition()
    content_type = stated or choose_content_type(None, b"" if coding else content.head, name)
    with writing.transaction() as transaction:
        handle = transaction.put(
            place.path,
            content,
            content_type=content_type if coding is None else in_coding(content_type, coding),
            created_ms=created_ms,
            updated_ms=updated_ms,
            condition=condition,
        )
    result = handle.result
    assert transaction.result is not None
    assert result.after is not None
    _set_write_headers(resp, result.after, transaction.result.version)
    created = result.before is None
    if created:
        resp.set_header("Location", f"/files{header_path(place.path)}")
    send_json(
        resp,
        file_answer(place.path, result.after, transaction.result.version),
        201 if created else 200,
    )


def delete_path(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Removes a file, a link (never what it names), or a directory."""
    query = read_parameters(req, DeleteQuery)
    writing = writing_of(context_of(req), query)
    place = writing.follow(path, final=False)
    recursive = query.recursive
    authorize_ends(writing.context, Operation.DELETE, path, place)
    if place.entry is None:
        raise missing(path)
    guard: Condition | None = None
    if recursive:
        guard = authorize_below(
            writing.context, writing.version, place.path, place.entry, (Operation.DELETE,)
        )
        recursive = takes_directories(writing.context, place.entry, (Operation.DELETE,), place.path)
    condition = commit_condition(guard, conditions_of(req), place)
    with guarded(guard), writing.transaction() as transaction:
        handle = transaction.delete(place.path, recursive=recursive, condition=condition)
    before = handle.result.before
    assert transaction.result is not None
    assert before is not None
    resp.set_header("X-Svc-Version", transaction.result.version.hex())
    answer: dict[str, Any] = {
        "deleted": True,
        "path": format_path(place.path),
        "entry_type": int(before.kind),
        "version": transaction.result.version.hex(),
    }
    send_json(resp, answer)


def change_path(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """Renames (``application/json``) or merges into a document (``application/merge-patch+json``)."""
    if base_type(req.content_type) == MERGE_PATCH:
        merge_into(req, resp, path)
    else:
        rename(req, resp, path)


def _refuse_what_is_no_file(req: falcon.Request, path: Path) -> None:
    """Refuses a body that is not the file's, or a path that is not a file's, before the body is taken."""
    env = req.env
    require_file_path(req.path, path)
    if base_type(req.content_type) == MULTIPART:
        raise UnsupportedMediaType(
            f"A form is no file: send the file itself as the body. For example: {upload_command(req)}"
        )
    if "CONTENT_LENGTH" not in env and "HTTP_TRANSFER_ENCODING" not in env:
        raise LengthRequired("A file is sent with its Content-Length, 0 for an empty one, or in chunks.")


def _refuse_early(writing: Writing, place: Place, condition: Condition | None) -> None:
    """Refuses what the commit would refuse too, before a large body is taken in vain."""
    if condition is not None:
        condition.check(place.path, place.entry)
    if place.entry is not None and place.entry.kind is _DIRECTORY:
        raise Conflict("A directory stands at this path.", path=format_path(place.path))
    if place.entry is None:
        for length in range(len(place.path) - 1, 0, -1):
            above = writing.version.get(place.path[:length])
            if above is not None:
                if above.kind is not _DIRECTORY:
                    raise Conflict(
                        "A file stands where a directory is needed.", path=format_path(place.path[:length])
                    )
                return


def _stated_type(req: falcon.Request) -> str | None:
    """What the caller says the body is, but for the type of a form.

    That one comes from programs that were asked to send a file as it is (``curl --data-binary``).
    """
    given = req.content_type
    return None if base_type(given) == FORM else given


def _time(req: falcon.Request, header: str) -> int | None:
    value = req.env.get(_TIME_FIELDS[header])
    if value is None:
        return None
    value = value.strip()
    if not (value.isascii() and value.isdigit()) or len(value) > 15 or int(value) > _MAXIMUM_TIME:
        raise InvalidInput(f"{header} is a time in Unix milliseconds.", field=header)
    return int(value)


def _set_write_headers(resp: falcon.Response, entry: Entry, version: bytes) -> None:
    content_hash = entry.hash.hex()
    set_fields(
        resp,
        {
            "etag": quote_etag(content_hash),
            "x-svc-version": version.hex(),
            "x-svc-content-hash": content_hash,
        },
    )
