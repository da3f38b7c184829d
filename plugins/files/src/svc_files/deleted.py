"""What was deleted, and its way back."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from svc.errors import AlreadyExists, NotFound, PayloadTooLarge, PreconditionFailed, VersionCollected
from svc.plugin import (
    Call,
    CommitResult,
    Condition,
    Entry,
    EntryKind,
    Operation,
    Path,
    Transaction,
    format_path,
)
from svc_files.access import Reading, authorize_below, body_path, looks
from svc_files.deleted_view import DeletedFile, deleted_file, search_below
from svc_files.listing import cursors_of
from svc_files.models import DeletedFile as DeletedItem
from svc_files.models import DeletedPage, DeletedQuery, RestoreBody, RestoredEntry
from svc_files.requests import RequestSettings, Writing, page_limit, settings_of
from svc_files.resolving import missing

__all__ = ["list_deleted", "restore_deleted"]

_NOTHING_THERE = Condition(if_none_match=("*",))


def list_deleted(call: Call, query: DeletedQuery) -> DeletedPage:
    """Lists the deleted files below a path, which may itself be gone, in path order."""
    settings = settings_of(call)
    path = body_path(query.path or "/")
    limit = page_limit(query.limit, settings)
    reading = Reading(call, call.database.at())
    call.authorize(Operation.DELETE, path)
    cursors = cursors_of(reading)
    after = None if query.after is None else path + cursors.decode(query.after)[0]
    items = _exact(reading, path) if after is None else []
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
    return DeletedPage(format_path(path), items, has_more=has_more, next_cursor=cursor)


_COMMITS_LOOKED_AT = 1_000
"""Before the horizon of a collection, to say of a path that it was deleted and collected."""


def restore_deleted(writing: Writing, body: RestoreBody, settings: RequestSettings) -> RestoredEntry:
    """Restores from the view of deleted files, or from the version that is named, in one commit."""
    path = body_path(body.path)
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
    present = writing.again().version.get(path)
    item = writing.item(path, present if present is not None else entries[0][1])
    content_hash = item["hash"] if item["entry_type"] == EntryKind.FILE else UNSET
    return RestoredEntry(**item, files=len(entries), version=version, content_hash=content_hash)


def _commit(transaction: Transaction) -> CommitResult:
    try:
        return transaction.commit()
    except PreconditionFailed as error:
        raise AlreadyExists("Something stands at this path again.", **error.details) from None


def _exact(reading: Reading, path: Path) -> list[DeletedItem]:
    gone = deleted_file(reading.context.database, path) if path else None
    if gone is None or reading.version.get(path) is not None:
        return []
    return [_item(path, gone.entry, gone.deleted_ms)]


def _item(path: Path, entry: Entry, deleted_ms: int) -> DeletedItem:
    return DeletedItem(
        path=format_path(path),
        name=path[-1],
        entry_type=entry.kind,
        deleted_at=deleted_ms,
        size=entry.size,
        content_hash=entry.hash.hex(),
        content_type=entry.content_type,
        created_at=entry.created_ms,
        updated_at=entry.updated_ms,
    )


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
