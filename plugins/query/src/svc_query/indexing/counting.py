"""Counts over the rows: what waits, what is at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import chain, islice

from svc.plugin import Path, ViewStorage
from svc_query.indexing import keys
from svc_query.indexing.rows import JobRow, ReindexRow, decode_row

__all__ = [
    "count_jobs",
    "count_untaken",
    "count_waiting",
    "first_builds",
    "has_held_jobs",
    "is_busy",
    "reindexes",
]

_MOST_COUNTED = 100_000
_FIRST = frozenset(("build", "configuration", "tree"))
"""Reasons of jobs before which files are not found; during the others they are found as before."""
_SILENT_MS = 60_000
"""A reindex that gives no sign of life for so long is not under way: its process was killed."""


def count_waiting(storage: ViewStorage, path: Path, may: Callable[[Path], bool] | None = None) -> int:
    """Returns how many changed files at and below a path wait to be read; no more than 100,000.

    ``may`` says which of them count; None: all.
    """
    exact = keys.WAITING + keys.key_of_path(path)
    here = [exact] if path and storage.get(exact) is not None else []
    below = (key for key, _ in storage.scan(keys.WAITING + keys.below_key(path)))
    waiting = (keys.path_of_key(key[1:]) for key in islice(chain(here, below), _MOST_COUNTED))
    return sum(may is None or may(found) for found in waiting)


def count_jobs(storage: ViewStorage) -> tuple[int, int]:
    """Returns (files that are done, files in all) of all jobs."""
    rows = _jobs(storage)
    return sum(row.done for row in rows), sum(row.total for row in rows)


def reindexes(storage: ViewStorage, path: Path) -> list[JobRow]:
    """Returns what is reindexed at, above or below a path beside the view's own work, as jobs."""
    now_ms = time.time_ns() // 1_000_000
    rows = [decode_row(ReindexRow, value) for _, value in storage.scan(keys.REINDEX)]
    return [
        JobRow(row.path, "reindex", row.total, row.since_ms, done=row.done)
        for row in rows
        if _concerns(row.path, path) and abs(now_ms - row.seen_ms) < _SILENT_MS
    ]


def first_builds(storage: ViewStorage, paths: Iterable[Path]) -> tuple[tuple[str, int], ...]:
    """Returns (directory, files done) of jobs that index files at, above or below paths for the first time.

    Not those that wait until the index has room.
    """
    jobs = [job for job in _jobs(storage) if job.reason in _FIRST and not job.is_held]
    return tuple((job.path, job.done) for job in jobs if any(_concerns(job.path, path) for path in paths))


def is_busy(storage: ViewStorage) -> bool:
    """Whether waiting files are left, or jobs that do not wait for room."""
    return any(True for _ in storage.scan(keys.WAITING)) or not all(row.is_held for row in _jobs(storage))


def has_held_jobs(storage: ViewStorage) -> bool:
    """Whether a job waits until the index has room for more documents."""
    return any(row.is_held for row in _jobs(storage))


def count_untaken(storage: ViewStorage) -> int:
    """Returns how many values of documents no index took, because its type failed; about."""
    from pyroaring import BitMap

    return sum(len(BitMap.deserialize(value)) for _, value in storage.scan(keys.UNTAKEN))


def _jobs(storage: ViewStorage) -> list[JobRow]:
    return [decode_row(JobRow, value) for _, value in storage.scan(keys.JOB)]


def _concerns(joined: str, path: Path) -> bool:
    """Whether work at a path, its segments joined by 0x01, touches anything at, above or below another."""
    key = "\x01".join(path)
    return (
        not joined
        or not key
        or f"{key}\x01".startswith(f"{joined}\x01")
        or f"{joined}\x01".startswith(f"{key}\x01")
    )
