"""``/files/deleted`` and ``/files/restore``: what was deleted, and its way back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import falcon
import msgspec

from svc.errors import AlreadyExists, NotFound, PayloadTooLarge, PreconditionFailed, VersionCollected
from svc.plugin import (
    CommitResult,
    Condition,
    Entry,
    EntryKind,
    Operation,
    Path,
    Transaction,
    context_of,
    format_path,
    query_number,
    query_text,
    read_json,
    requires_in_body,
    send_json,
)
from svc_files.access import Reading, authorize_below, body_path, looks
from svc_files.deleted_view import DeletedFile, deleted_file, search_below
from svc_files.listing import cursors_of
from svc_files.requests import RequestSettings, Writing, settings_of, writing_of
from svc_files.resolving import missing

__all__ = ["DeletedResource", "RestoreResource"]

_NOTHING_THERE = Condition(if_none_match=("*",))


class DeletedResource:
    """The deleted files below a path."""

    @requires_in_body(Operation.DELETE)
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists deleted files in path order, page by page; ``path`` may itself be gone."""
        settings = settings_of(req)
        path = body_path(query_text(req, "path") or "/")
        cursor = query_text(req, "after")
        limit = query_number(
            req, "limit", settings.listing_default, minimum=1, maximum=settings.listing_maximum
        )
        assert limit is not None
        reading = Reading(context_of(req), context_of(req).database.at())
        reading.context.authorize(Operation.DELETE, path)
        cursors = cursors_of(reading)
        after = None if cursor is None else path + cursors.decode(cursor)[0]
        items: list[dict[str, Any]] = []
        if after is None:
            items += _exact(reading, path)
        last = path
        has_more = False
        for found, gone in _deleted_below(reading, path, after, settings.scan_entries):
            if gone is None:
                has_more, last = True, found
            elif len(items) >= limit:
                has_more = True
                break
            else:
                items.append(_item(found, gone.entry, gone.deleted_ms))
                last = found
        cursor = cursors.encode(last[len(path) :]) if has_more else None
        send_json(
            resp,
            {"path": format_path(path), "items": items, "has_more": has_more, "next_cursor": cursor},
        )


_COMMITS_LOOKED_AT = 1_000
"""Before the horizon of a collection, to say of a path that it was deleted and collected."""


class RestoreBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a restore: what, and from which version (a root hash in hex) instead of the last one."""

    path: str
    version: str | None = None


class RestoreResource:
    """Brings a deleted file, link or directory back, in one commit."""

    @requires_in_body(Operation.CREATE, Operation.DELETE)
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Restores from the view of deleted files, or from the version that is named."""
        settings = settings_of(req)
        body = read_json(req, RestoreBody, settings.maximum_json)
        path = body_path(body.path)
        writing = writing_of(req)
        writing.context.authorize(Operation.DELETE, path)
        writing.context.authorize(Operation.CREATE, path)
        with writing.database.hold():  # what is found stays until it is put back
            entries = (
                _from_version(writing, path, body.version)
                if body.version is not None
                else _last_deleted(writing, path, settings)
            )
            transaction = writing.transaction(message=f"restore {format_path(path)}")
            for found, entry in entries:
                transaction.put_entry(found, entry, condition=_NOTHING_THERE)
            version = _commit(transaction).version.hex()
        resp.set_header("X-Svc-Version", version)
        present = writing.again().version.get(path)
        answer = writing.item(path, present if present is not None else entries[0][1])
        answer.update(restored=True, files=len(entries), version=version)
        if answer["entry_type"] == EntryKind.FILE:
            answer["content_hash"] = answer["hash"]
        send_json(resp, answer)


def _commit(transaction: Transaction) -> CommitResult:
    try:
        return transaction.commit()
    except PreconditionFailed as error:
        raise AlreadyExists("Something stands at this path again.", **error.details) from None


def _exact(reading: Reading, path: Path) -> list[dict[str, Any]]:
    gone = deleted_file(reading.context.database, path) if path else None
    if gone is None or reading.version.get(path) is not None:
        return []
    return [_item(path, gone.entry, gone.deleted_ms)]


def _item(path: Path, entry: Entry, deleted_ms: int) -> dict[str, Any]:
    return {
        "path": format_path(path),
        "name": path[-1],
        "entry_type": int(entry.kind),
        "deleted_at": deleted_ms,
        "size": entry.size,
        "content_hash": entry.hash.hex(),
        "content_type": entry.content_type,
        "created_at": entry.created_ms,
        "updated_at": entry.updated_ms,
    }


def _from_version(writing: Writing, path: Path, version: str) -> list[tuple[Path, Entry]]:
    database = writing.database
    source = database.at(database.resolve_version(version=version))
    entry = source.get(path)
    if entry is None or not path:
        raise NotFound("The version has nothing at this path.", path=format_path(path))
    authorize_below(writing.context, source, path, entry, (Operation.DELETE,), path)
    _refuse_present(writing, path)
    return [(path, entry)]


def _last_deleted(writing: Writing, path: Path, settings: RequestSettings) -> list[tuple[Path, Entry]]:
    """The file that was deleted at the path, else everything that was deleted below it."""
    maximum = settings.maximum_batch
    deleted = deleted_file(writing.database, path) if path else None
    if deleted is not None:
        _refuse_present(writing, path)
        return [(path, deleted.entry)]
    reading = Reading(writing.context, writing.version)
    rows: list[tuple[Path, Entry]] = []
    for found, gone in _deleted_below(reading, path, None, settings.scan_entries):
        if gone is None:
            raise PayloadTooLarge(
                "What was deleted there is too much to look through; restore the directory from a version.",
                limit=settings.scan_entries,
            )
        if writing.context.may(Operation.CREATE, found):
            rows.append((found, gone.entry))
        if len(rows) > maximum:
            raise PayloadTooLarge(
                "Too many files were deleted there; restore the directory from a version.", limit=maximum
            )
    if not rows:
        _refuse_present(writing, path)
        if path and _was_collected(writing, path):
            raise VersionCollected(
                "What was deleted here was collected: nothing of it is left.", path=format_path(path)
            )
        raise missing(path)
    return rows


def _was_collected(writing: Writing, path: Path) -> bool:
    """Whether one of the last commits before the horizon deleted a path, or a directory above it."""
    database = writing.database
    horizon = database.horizon()
    for sequence in range(horizon, max(0, horizon - _COMMITS_LOOKED_AT), -1):
        for record in database.commit(sequence).transactions:
            for change in record.changes:
                if change.kind == "delete" and not change.system and path[: len(change.path)] == change.path:
                    return True
    return False


def _deleted_below(
    reading: Reading, directory: Path, after: Path | None, scan: int
) -> Iterator[tuple[Path, DeletedFile | None]]:
    """Yields the deleted files below a directory that the caller may know of, in path order.

    Where it has looked at as much as a request may, it ends with the last path that it looked at, and None.
    """
    looked_at = 0
    for path, gone in search_below(reading.context.database, directory, after=after):
        if gone is not None and reading.may_see_deleted(path):
            yield path, gone
        looked_at += looks(path)
        if looked_at >= scan:
            yield path, None
            return


def _refuse_present(writing: Writing, path: Path) -> None:
    if writing.version.get(path) is not None:
        raise AlreadyExists("Something stands at this path.", path=format_path(path))
