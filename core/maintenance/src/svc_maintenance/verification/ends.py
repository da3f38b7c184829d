"""Checks the bytes behind the last commit of a log, up to the end of the file.

While somebody writes to the log, these may be uploads and commits under way. Otherwise only records are
allowed that no commit names, if they lie below the shared tail of this boot or a clean-end mark follows them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from svc.hashing import ObjectKind
from svc.log import DamagedRegion, Log, ScannedRecord
from svc.log.remains import count
from svc_maintenance.verification.stretches import Stretch, check_stretch

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["check_end"]

_SETTLE_SECONDS = 3.0
_POLL_SECONDS = 0.01

Take = Callable[[Stretch], None]
"""Takes over what was found of one record."""

Report = Callable[[str, int], None]
"""Called with what is wrong, a sentence, and where."""


def check_end(database: Database, start: int, take: Take, report: Report) -> tuple[int, int]:
    """Accounts for every byte from the end of the last commit on; blocks, for seconds where somebody writes.

    Returns how many whole records there are that no commit names, and how many others.
    """
    log = database.objects.log
    tail, size = _settled(log)
    if size < tail:
        report(f"The file has {size} bytes, but {tail} were written: it was cut short.", size)
    is_live = log.storage.others_present()
    unnamed, others, first = _check_records(database, start, min(tail, size), is_live, take, report)
    # Since the machine started everything before the shared tail was written whole by whoever wrote it.
    if unnamed and not is_live and log.needs_recovery:
        verb = "stands" if unnamed == 1 else "stand"
        report(
            f"{count(unnamed, 'whole record')} that no commit names {verb} at the end of the file: an upload "
            "that was never finished, or the file was cut short within a commit, or something was added.",
            first,
        )
    if tail < size:
        remains = log.survey(tail, size)
        who = "Somebody who was stopped left" if is_live else "Behind the last record stand"
        report(f"{who} {count(remains.size, 'byte')}: {remains.describe()}.", tail)
    return unnamed, others


def _settled(log: Log) -> tuple[int, int]:
    """Returns tail and size, once no append is under way; stops waiting after seconds.

    If the tail moves, a living process wrote behind it: the next appender cuts what a killed one left.
    """
    first = log.tail
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        tail = log.tail
        size = log.storage.size()
        if tail == size or not log.storage.others_present() or time.monotonic() > deadline:
            return tail, size
        if tail != first:
            return tail, tail
        time.sleep(_POLL_SECONDS)


def _check_records(
    database: Database, start: int, end: int, is_live: bool, take: Take, report: Report
) -> tuple[int, int, int]:
    """Checks the records between the last commit and the tail.

    Returns how many at the end no commit names and no clean-end mark follows, how many others there are, and
    the offset of the first of these.
    """
    log = database.objects.log
    unnamed = others = 0
    first = start
    for record in log.scan_tolerant(start, end):
        if isinstance(record, DamagedRegion):
            what = log.survey(record.offset, record.end).describe()
            report(f"Behind the last commit the log is damaged: {what}.", record.offset)
            continue
        take(check_stretch(log.storage.read, record.offset, record.end, record.end, log.database_id))
        is_vouched = record.kind is ObjectKind.VOID and log.clean_end_at(record.offset) is not None
        if is_vouched or record.kind is ObjectKind.COMMIT:
            others += unnamed + 1
            unnamed, first = 0, record.end
        else:
            unnamed += 1
        if record.kind is ObjectKind.COMMIT and not (is_live or _is_expected(database, record)):
            report("A whole commit stands behind the last one that belongs to the database.", record.offset)
    return unnamed, others, first


def _is_expected(database: Database, record: ScannedRecord) -> bool:
    """Whether a commit that was found behind HEAD is published by now, or will be by the next writer."""
    head = database.head()
    return head.commit_end >= record.end or bool(head.pending_from)
