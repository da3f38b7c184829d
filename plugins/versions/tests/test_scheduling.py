"""Snapshots by a schedule: what is named when, and what goes again."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from svc.plugin import Database
from svc_versions import documents
from svc_versions.documents import SnapshotDocument
from svc_versions.lifecycle import change_lifecycle
from svc_versions.models import LifecycleChange, Schedule, ScheduleChange
from svc_versions.scheduling import REASON, ScheduleJob, follow_schedule, superfluous
from svc_versions.snapshots import Snapshot, create_snapshot, list_snapshots

from .conftest import write  # noqa: TID252

BEGIN = datetime(2026, 3, 2, 0, 30, tzinfo=UTC)  # a Monday


@dataclass
class Context:
    """What the job needs of its context."""

    database: Database
    logger: logging.Logger = logging.getLogger("svc.versions")  # noqa: RUF009 - one for all


def scheduled(moment: datetime) -> Snapshot:
    document = SnapshotDocument(
        created_at=int(moment.timestamp() * 1_000), kind="automatic", metadata={"reason": REASON}
    )
    return Snapshot(f"{moment:%m-%d %H}", bytes(32), document)


def kept(schedule: Schedule, moments: list[datetime]) -> list[str]:
    ordered = [scheduled(moment) for moment in sorted(moments, reverse=True)]
    gone = superfluous(ordered, schedule)
    return [one.name for one in ordered if one not in gone]


def test_the_newest_of_each_period_stays() -> None:
    moments = [BEGIN + timedelta(hours=hours) for hours in range(24 * 15)]  # up to Monday, 23:30
    assert kept(Schedule(hourly=3), moments) == ["03-16 23", "03-16 22", "03-16 21"]
    assert kept(Schedule(daily=3), moments) == ["03-16 23", "03-15 23", "03-14 23"]
    assert kept(Schedule(weekly=9), moments) == ["03-16 23", "03-15 23", "03-08 23"]
    both = kept(Schedule(hourly=2, weekly=2), moments)
    assert both == ["03-16 23", "03-16 22", "03-15 23"]


def test_periods_without_a_change_do_not_count() -> None:
    moments = [BEGIN, BEGIN + timedelta(days=40), BEGIN + timedelta(days=90)]
    assert len(kept(Schedule(daily=3), moments)) == 3


def test_following_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    now = int(BEGIN.timestamp() * 1_000)
    monkeypatch.setattr("svc_versions.snapshots.present_ms", lambda _database: now)
    assert follow_schedule(database, now) == (None, []), "nobody has asked for it"
    change_lifecycle(database, LifecycleChange(snapshot_schedule=ScheduleChange(hourly=2)))
    write(database, {"/a": "0"})
    assert follow_schedule(database, now) == ("auto-2026-03-02T00:30Z", [])
    write(database, {"/a": "1"})
    assert follow_schedule(database, now + 60_000) == (None, []), "the hour has its state"
    now += 3_600_000
    assert follow_schedule(database, now) == ("auto-2026-03-02T01:30Z", [])
    now += 3_600_000
    assert follow_schedule(database, now) == (None, []), "the state has a name"
    write(database, {"/a": "2"})
    create_snapshot(database, "auto-2026-03-02T02:30Z", root=database.head().root)
    write(database, {"/a": "3"})
    assert follow_schedule(database, now) == (None, []), "the name is somebody's own"
    assert follow_schedule(database, now + 60_000) == ("auto-2026-03-02T02:31Z", ["auto-2026-03-02T00:30Z"])
    assert [one.name for one in list_snapshots(database) if one.kind == "manual"] == [
        "auto-2026-03-02T02:30Z"
    ]
    now += 3_600_000
    write(database, {"/a": "4"})
    change_lifecycle(database, LifecycleChange(snapshot_writes_enabled=False))
    assert follow_schedule(database, now) == (None, [])


def test_what_somebody_asked_for_stays(database: Database) -> None:
    change_lifecycle(database, LifecycleChange(snapshot_schedule=ScheduleChange(hourly=1)))
    write(database, {"/a": "0"})
    now = documents.present_ms(database)
    first, _ = follow_schedule(database, now)
    again, is_new = create_snapshot(database, "mine")
    assert (again.name, is_new) == (first, False)
    write(database, {"/a": "1"})
    made, deleted = follow_schedule(database, now + 3_600_000)
    assert made is not None
    assert not deleted


def test_the_job_says_what_it_did(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    change_lifecycle(database, LifecycleChange(snapshot_schedule=ScheduleChange(daily=1)))
    write(database, {"/a": "0"})
    ScheduleJob().run(Context(database))
    [made] = list_snapshots(database)
    assert made.metadata == {"reason": REASON}
    assert made.name in caplog.text
