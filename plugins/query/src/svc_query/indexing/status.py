"""What the index is doing, and what went wrong: for people, over HTTP and in the shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from svc.plugin import Path, format_path
from svc_query.index_configuration import CONFIGURATION_SUFFIX
from svc_query.indexing import keys
from svc_query.indexing.counting import reindexes
from svc_query.indexing.rows import ConfigurationRow, DirectoryRow, FailureRow, IndexRow, JobRow, decode_row
from svc_query.indexing.snapshot import IndexSnapshot

__all__ = ["index_status"]

_MOST_DIRECTORIES = 1_000


def index_status(
    snapshot: IndexSnapshot,
    path: Path = (),
    after: str | None = None,
    limit: int = 100,
    may_read: Callable[[Path], bool] | None = None,
) -> dict[str, Any]:
    """Returns what is indexed at, above and below a path, and how that stands; as JSON has it.

    That is ``path``, ``sequence``, ``documents``, ``waiting`` (files to be read), ``unflushed``, ``jobs``,
    ``directories`` (their configurations, or what is wrong with them), ``indexes`` (with sizes), and
    ``failures`` by file, with ``has_more``; and ``guessed``, files whose encoding was, with ``more_guessed``.

    Args:
        snapshot: the index.
        path: where; all of it is for the caller.
        after: path of the last file of the page before; of failures and of guesses alike.
        limit: failures of a page, and guesses.
        may_read: says of a file whether the caller may read it; None: all of the database is for them. To
            others nothing is counted outside of the path.
    """
    failures, has_more = _failures(snapshot, path, after, limit)
    guessed, more_guessed = _rows(snapshot, keys.GUESS, path, after, limit)
    return {
        "path": format_path(path),
        "sequence": snapshot.sequence,
        "documents": snapshot.count_below(path),
        "waiting": snapshot.waiting(path),
        "unflushed": snapshot.unflushed_below(path),
        "jobs": [
            _job(job, path, sees_all=may_read is None)
            for job in (*snapshot.jobs(path), *reindexes(snapshot.storage, path))
        ],
        "directories": _directories(snapshot, path, may_read),
        "indexes": _indexes(snapshot, path, sees_all=may_read is None),
        "failures": failures,
        "has_more": has_more,
        "guessed": [
            {"path": format_path(keys.path_of_key(key[1:])), "encoding": value.decode()}
            for key, value in guessed
        ],
        "more_guessed": more_guessed,
    }


def _job(job: JobRow, path: Path, *, sees_all: bool) -> dict[str, Any]:
    at = tuple(job.path.split("\x01")) if job.path else ()
    item: dict[str, Any] = {"path": format_path(at), "reason": job.reason}
    if sees_all or at[: len(path)] == path:
        item["indexed"] = min(job.done, job.total)
        item["total"] = job.total
    else:
        item["path"] = format_path(path)
    item["since"] = job.since_ms
    item["waits_for_room"] = job.is_held
    return item


def _directories(
    snapshot: IndexSnapshot, path: Path, may_read: Callable[[Path], bool] | None
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    rows = [path[:depth] for depth in range(len(path) + 1)]
    storage = snapshot.storage
    below = keys.DIRECTORY + keys.below_key(path)
    rows += [keys.path_of_key(key[1:]) for key, _ in storage.scan(below) if key[1:]]
    directories = snapshot.directories()
    for directory in rows[:_MOST_DIRECTORIES]:
        if may_read is not None and not may_read(directory + CONFIGURATION_SUFFIX):
            # Nor the default, which would tell that the directory has no configuration.
            continue
        value = storage.get(keys.DIRECTORY + keys.key_of_path(directory))
        configuration = directories.at(directory)
        if value is None and configuration is None:
            continue
        row = None if value is None else decode_row(DirectoryRow, value)
        item: dict[str, Any] = {"path": format_path(directory), "default": row is None}
        if row is not None and row.problem:
            item["problem"] = row.problem
        if configuration is not None:
            item["glob"] = configuration.glob
            item["parser"] = configuration.parser
            item["encoding"] = configuration.encoding
            item["fields"] = [
                {
                    "name": entry.name,
                    "value_type": entry.value_type,
                    "source": list(entry.source),
                    "types": sorted(entry.types),
                    "resting": sorted(set(entry.types) - snapshot.types),
                }
                for entry in configuration.entries.values()
            ]
        found.append(item)
    return found


def _indexes(snapshot: IndexSnapshot, path: Path, *, sees_all: bool) -> list[dict[str, Any]]:
    used = snapshot.indexes_for(path)
    # An index is about files everywhere, and so are its size and the number of its documents.
    counts = _documents_by_index(snapshot) if sees_all else {}
    items: list[dict[str, Any]] = []
    for _, value in snapshot.storage.scan(keys.INDEX):
        row: IndexRow = decode_row(IndexRow, value)
        if (row.field, row.type, row.options) not in used:
            continue
        item: dict[str, Any] = {"field": row.field, "type": row.type}
        item["options"] = json.loads(row.options)
        if sees_all:
            item["documents"] = counts.get(row.name, 0)
        readers = {
            (one.type.name, one.type.format, keys.canonical_options(one.options)): one.reader
            for one in snapshot.indexes(row.field)
        }
        reader = readers.get((row.type, row.format, row.options))
        if row.problem:
            item["problem"] = row.problem
        elif reader is None:
            item["problem"] = f"The index type {row.type!r} is not in use, or of another format."
        elif sees_all:
            item["size"] = reader.size
        items.append(item)
    return sorted(items, key=lambda item: (item["field"], item["type"], str(item["options"])))


def _documents_by_index(snapshot: IndexSnapshot) -> dict[tuple[str, str, str, int], int]:
    storage = snapshot.storage
    counts: dict[tuple[str, str, str, int], int] = {}
    for key, value in storage.scan(keys.CONFIGURATION):
        used = storage.get(keys.CONFIGURATION_USE + key[1:])
        if used is None:
            continue
        row: ConfigurationRow = decode_row(ConfigurationRow, value)
        for field in row.fields:
            for one in field.types:
                name = (field.name, *one)
                counts[name] = counts.get(name, 0) + int.from_bytes(used, "little")
    return counts


def _failures(
    snapshot: IndexSnapshot, path: Path, after: str | None, limit: int
) -> tuple[list[dict[str, Any]], bool]:
    rows, has_more = _rows(snapshot, keys.FAILURE, path, after, limit)
    found: list[dict[str, Any]] = []
    for key, value in rows:
        row: FailureRow = decode_row(FailureRow, value)
        item: dict[str, Any] = {"path": format_path(keys.path_of_key(key[1:])), "at": row.at_ms}
        if row.message:
            item["error"] = row.message
        if row.not_converted:
            item["not_converted"] = row.not_converted
        if row.indexes:
            item["indexes"] = row.indexes
        found.append(item)
    return found, has_more


def _rows(
    snapshot: IndexSnapshot, kind: bytes, path: Path, after: str | None, limit: int
) -> tuple[list[tuple[bytes, bytes]], bool]:
    """Rows by path, at and below one, of a kind; and whether there are more."""
    storage = snapshot.storage
    start = None
    if after is not None:
        start = kind + keys.key_of_path(tuple(part for part in after.split("/") if part))
    rows: list[tuple[bytes, bytes]] = []
    exact = kind + keys.key_of_path(path)
    value = storage.get(exact) if path and (start is None or start < exact) else None
    if value is not None:
        rows.append((exact, value))
    below = kind + keys.below_key(path)
    for key, value in storage.scan(below, start if start is not None and start >= below else None):
        rows.append((key, value))
        if len(rows) > limit:
            break
    return rows[:limit], len(rows) > limit
