"""Snapshots by a schedule: HEAD gets a name once an hour, a day or a week, and names that are too old go.

Of each period the newest snapshot counts. One that no period needs goes: that of an hour, once there are
newer ones, unless it is the last of its day or week.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from svc.errors import AlreadyExists
from svc.plugin import BackgroundJob, Database, JobContext
from svc_versions.documents import read_state
from svc_versions.lifecycle import lifecycle_of
from svc_versions.models import Schedule
from svc_versions.retention import delete_each
from svc_versions.snapshots import Snapshot, add_head_snapshot, list_snapshots

__all__ = ["REASON", "ScheduleJob", "follow_schedule", "superfluous"]

REASON = "schedule"
"""What these snapshots say of themselves in their metadata."""


def superfluous(snapshots: Iterable[Snapshot], schedule: Schedule) -> list[Snapshot]:
    """Returns those of the schedule's snapshots, newest first, that none of its periods needs."""
    ordered = list(snapshots)
    needed: set[str] = set()
    for period, count in _counts(schedule):
        newest: dict[tuple[int, ...], Snapshot] = {}
        for snapshot in ordered:
            newest.setdefault(_bucket(period, snapshot.created_ms), snapshot)
        needed |= {snapshot.name for snapshot in list(newest.values())[:count]}
    return [snapshot for snapshot in ordered if snapshot.name not in needed]


def follow_schedule(database: Database, now_ms: int | None = None) -> tuple[str | None, list[str]]:
    """Names HEAD if a period has begun in which that was not done, and deletes what is superfluous.

    A state that has a snapshot already gets no second one. Blocks: a commit each.

    Returns:
        The name that was made, or None; and those that were deleted.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    head, _, system = read_state(database)
    settings = lifecycle_of(system)
    counts = _counts(settings.snapshot_schedule)
    if not counts or not settings.snapshot_writes_enabled:
        return None, []
    present = list_snapshots(database)
    own = [one for one in present if one.kind == "automatic" and one.metadata.get("reason") == REASON]
    shortest = counts[0][0]
    is_due = not own or _bucket(shortest, own[0].created_ms) < _bucket(shortest, now_ms)
    made = None
    if is_due and all(one.root != head for one in present):
        made = _name_head(database, now_ms)
        own = [one for one in list_snapshots(database) if one.name == made] + own
    gone = [one for one in superfluous(own, settings.snapshot_schedule) if not one.kept]
    return made, delete_each(database, gone, REASON)


class ScheduleJob(BackgroundJob):
    """Looks every minute whether HEAD is to get a name."""

    name = "snapshot-schedule"
    interval_s = 60.0

    def run(self, context: JobContext) -> None:
        """Follows the schedule; one that is killed goes on where it was at its next run."""
        made, deleted = follow_schedule(context.database)
        if made or deleted:
            context.logger.info("made snapshot %s by the schedule, deleted %d", made or "none", len(deleted))


def _name_head(database: Database, now_ms: int) -> str | None:
    name = f"auto-{datetime.fromtimestamp(now_ms / 1_000, UTC):%Y-%m-%dT%H:%M}Z"
    transaction = database.transaction(message=f"create snapshot {name}")
    add_head_snapshot(database, transaction, name, actor=None, reason=REASON)
    try:
        transaction.commit()
    except AlreadyExists:  # Somebody's own; the next minute has another name.
        return None
    return name


def _counts(schedule: Schedule) -> list[tuple[str, int]]:
    """The periods of which states are kept, the shortest first."""
    counts = (("hourly", schedule.hourly), ("daily", schedule.daily), ("weekly", schedule.weekly))
    return [(period, count) for period, count in counts if count]


def _bucket(period: str, ms: int) -> tuple[int, ...]:
    """The hour, day or week of a time (UTC)."""
    moment = datetime.fromtimestamp(ms / 1_000, UTC)
    if period == "weekly":
        return moment.isocalendar()[:2]
    day = (moment.year, moment.month, moment.day)
    return day if period == "daily" else (*day, moment.hour)
