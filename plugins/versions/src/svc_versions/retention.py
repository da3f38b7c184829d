"""Retention: which snapshots are too old, and the background job that deletes each in a commit of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from svc.errors import NotFound
from svc.plugin import BackgroundJob, Database, JobContext
from svc_versions.documents import read_state
from svc_versions.lifecycle import lifecycle_of
from svc_versions.models import Lifecycle
from svc_versions.snapshots import Snapshot, delete_snapshot, list_snapshots

__all__ = ["RetentionJob", "delete_each", "delete_expired", "expired"]

_HOUR_MS = 3_600_000
_MONTHS = 12


def expired(snapshots: Iterable[Snapshot], settings: Lifecycle, now_ms: int) -> list[Snapshot]:
    """Returns the snapshots that are older than the settings keep them.

    The newest automatic snapshot of the last hour always stays: somebody may be about to need it.
    """
    kept = settings.snapshot_retention
    manual_ms = _months_before(now_ms, kept.manual_months)
    automatic_ms = _months_before(now_ms, kept.auto_months)
    found: list[Snapshot] = []
    newest: Snapshot | None = None
    for snapshot in snapshots:
        automatic = snapshot.kind == "automatic"
        if automatic and (newest is None or snapshot.created_ms > newest.created_ms):
            newest = snapshot
        limit_ms = automatic_ms if automatic and not snapshot.kept else manual_ms
        if limit_ms is not None and snapshot.created_ms < limit_ms:
            found.append(snapshot)
    if newest is not None and newest.created_ms > now_ms - _HOUR_MS:
        found = [snapshot for snapshot in found if snapshot != newest]
    return found


def delete_expired(database: Database, now_ms: int | None = None) -> list[str]:
    """Deletes the snapshots that are too old and returns their names; blocks for a commit each."""
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    settings = lifecycle_of(read_state(database)[2])
    kept = settings.snapshot_retention
    if not (kept.auto_months or kept.manual_months):
        return []
    return delete_each(database, expired(list_snapshots(database), settings, now_ms), "retention")


def delete_each(database: Database, snapshots: Iterable[Snapshot], reason: str) -> list[str]:
    """Deletes snapshots, but those that somebody has deleted or changed meanwhile; returns their names.

    Blocks for a commit each, whose message begins with ``reason``.
    """
    deleted: list[str] = []
    for snapshot in snapshots:
        try:
            message = f"{reason}: delete snapshot {snapshot.name}"
            delete_snapshot(database, snapshot.name, message=message, expected=snapshot)
        except NotFound:
            continue
        deleted.append(snapshot.name)
    return deleted


class RetentionJob(BackgroundJob):
    """Looks once an hour for snapshots that are too old."""

    name = "snapshot-retention"
    interval_s = 3600.0

    def run(self, context: JobContext) -> None:
        """Deletes them; one that is killed goes on where it was at its next run."""
        deleted = delete_expired(context.database)
        if deleted:
            context.logger.info("deleted %d snapshots that were too old", len(deleted))


def _months_before(now_ms: int, months: int) -> int | None:
    """The time so many calendar months ago; None for 0, which keeps everything."""
    if months == 0:
        return None
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    index = now.year * _MONTHS + now.month - 1 - months
    year, month = divmod(index, _MONTHS)
    if year < 1:
        return 0
    for day in range(now.day, 0, -1):
        try:
            then = now.replace(year=year, month=month + 1, day=day)
        except ValueError:  # The month is shorter.
            continue
        return int(then.timestamp() * 1000)
    return 0
