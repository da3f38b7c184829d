"""Counts over the rows: what waits, what is at work."""

from __future__ import annotations

from svc.plugin import Path, ViewStorage
from svc_query.indexing import keys
from svc_query.indexing.rows import JobRow, decode_row

__all__ = ["count_jobs", "count_waiting", "is_busy"]

_MOST_COUNTED = 100_000


def count_waiting(storage: ViewStorage, path: Path) -> int:
    """Returns how many changed files at and below a path wait to be read; no more than 100,000."""
    count = int(bool(path) and storage.get(keys.WAITING + keys.key_of_path(path)) is not None)
    for _ in storage.scan(keys.WAITING + keys.below_key(path)):
        count += 1
        if count >= _MOST_COUNTED:
            break
    return count


def count_jobs(storage: ViewStorage) -> tuple[int, int]:
    """Returns (files that are done, files in all) of all jobs."""
    rows = [decode_row(JobRow, value) for _, value in storage.scan(keys.JOB)]
    return sum(row.done for row in rows), sum(row.total for row in rows)


def is_busy(storage: ViewStorage) -> bool:
    """Whether jobs or waiting files are left."""
    return any(True for kind in (keys.JOB, keys.WAITING) for _ in storage.scan(kind))
