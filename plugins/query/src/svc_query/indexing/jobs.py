"""Jobs: everything at and below a directory is brought in step, whatever the reason.

A job walks the tree and the table side by side, in path order. How far it has come is a row of the same
transaction, so that it goes on from there in any process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from svc.plugin import Entry, EntryKind, Path, Version
from svc_query.indexing import keys
from svc_query.indexing.path_rows import is_ordered, paths_in_order
from svc_query.indexing.reconciling import Extensions, Reconciler, is_document
from svc_query.indexing.rows import JobRow
from svc_query.indexing.table import Table

__all__ = ["run_job"]

LARGE_TOP = 2_000
"""A top-level directory with more files gets a job of its own."""

_PATHS_PER_STEP = 64
_STEP_SECONDS = 0.01

Pair = tuple[Path, bytes, Entry | None, int]
"""Path, its key, what stands there, number of its document or 0."""


def run_job(table: Table, extensions: Extensions, version: Version, number: int, job: JobRow) -> bool:
    """Does some of a job; returns whether it is done, and its row gone, or held until there is room.

    A job over everything leaves large top-level directories, and those without room, to jobs of their own, so
    that these take turns.
    """
    reconciler = Reconciler(table, extensions, version)
    path = _path(job.path)
    position = None if job.position is None else job.position.encode()
    if position is None:
        reconciler.missing_directories(path)
        job.skipped = False
    until = time.monotonic() + _STEP_SECONDS
    job.is_held = False
    # All at once: rows that are put while others are looked for might be passed over.
    pairs = list(islice(_side_by_side(table, version, path, position), _PATHS_PER_STEP))
    is_last = len(pairs) < _PATHS_PER_STEP
    for here, key, file, document in pairs:
        # The two orders may differ for very long paths: what seems to be gone is looked up.
        entry = version.get(here) if file is None else file
        has_room = (
            entry is None
            or bool(document)
            or not is_document(here, entry)
            or table.has_room(here[0] if here[1:] else "", version)
        )
        if not path and len(here) > 1 and (not has_room or _is_large(version, here[0])):
            table.split_job(job, here[0], version, is_held=not has_room)
            position, is_last = _behind(here[0]), False
            break
        if has_room:
            reconciler.path(here, entry, job.until, reads=job.reads, is_new=not document and is_ordered(key))
        elif path:
            job.is_held = True
            break
        else:
            job.skipped = True  # a file directly in the root: the others go on
        position = key
        job.done += entry is not None
        if time.monotonic() >= until:
            is_last = False
            break
    if is_last and not job.is_held:
        if not job.skipped:
            table.set_job(number, None)
            return True
        position, job.is_held = None, True
    job.position = None if position is None else position.decode()
    table.set_job(number, job)
    return job.is_held


def _is_large(version: Version, top: str) -> bool:
    entry = version.get((top,))
    return entry is not None and entry.totals is not None and entry.totals.files > LARGE_TOP


def _behind(top: str) -> bytes:
    """A key behind those of all paths below a top-level directory."""
    return keys.key_of_path((top, "\U0010ffff"))


def _side_by_side(table: Table, version: Version, path: Path, after: bytes | None) -> Iterator[Pair]:
    rows = paths_in_order(table.storage, path, after)
    files = _files(version, path, after)
    row, file = next(rows, None), next(files, None)
    while row is not None or file is not None:
        if row is None or (file is not None and file[1] < row[0]):
            assert file is not None, "one of them is there"
            yield (*file, 0)
            file = next(files, None)
        elif file is None or row[0] < file[1]:
            yield keys.path_of_key(row[0]), row[0], None, row[1]
            row = next(rows, None)
        else:
            yield (*file, row[1])
            row, file = next(rows, None), next(files, None)


def _files(version: Version, path: Path, after: bytes | None) -> Iterator[tuple[Path, bytes, Entry | None]]:
    entry = version.get(path)
    if entry is not None and entry.kind is EntryKind.FILE:
        key = keys.key_of_path(path)
        if after is None or after < key:
            yield path, key, entry
        return
    start = None if after is None else keys.path_of_key(after)
    for here, found in version.walk_files(path, after=start):
        if found is not None:
            yield here, keys.key_of_path(here), found


def _path(text: str) -> Path:
    return tuple(text.split("\x01")) if text else ()
