"""Lifecycle settings: what is too old goes, and nothing else."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from svc.plugin import Database
from svc_versions.documents import SnapshotDocument, read_state
from svc_versions.lifecycle import change_lifecycle, lifecycle_of
from svc_versions.models import Lifecycle, LifecycleChange, Retention, RetentionChange
from svc_versions.retention import RetentionJob, delete_expired, expired
from svc_versions.snapshots import Snapshot, create_snapshot, list_snapshots

from .conftest import write  # noqa: TID252

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


NOW_MS = ms(2026, 3, 31, 12)


def snapshot(name: str, created_ms: int, kind: str = "manual", *, kept: bool = False) -> Snapshot:
    return Snapshot(name, bytes(32), SnapshotDocument(created_at=created_ms, kind=kind, kept=kept))


def keeping(auto: int, manual: int) -> Lifecycle:
    return Lifecycle(snapshot_retention=Retention(auto_months=auto, manual_months=manual))


def test_zero_months_keep_everything() -> None:
    ancient = [snapshot("a", 0), snapshot("b", 0, "automatic")]
    assert expired(ancient, keeping(0, 0), NOW_MS) == []


@pytest.mark.parametrize(
    ("months", "limit"),
    [
        (1, ms(2026, 2, 28, 12)),
        (2, ms(2026, 1, 31, 12)),
        (12, ms(2025, 3, 31, 12)),
        (13, ms(2025, 2, 28, 12)),
    ],
)
def test_months_are_those_of_the_calendar(months: int, limit: int) -> None:
    found = expired([snapshot("at", limit), snapshot("before", limit - 1)], keeping(0, months), NOW_MS)
    assert [one.name for one in found] == ["before"]


def test_more_months_than_there_were_keep_everything() -> None:
    assert expired([snapshot("a", 0)], keeping(12_000, 12_000), NOW_MS) == []
    assert expired([snapshot("a", 0)], keeping(0, 30_000), NOW_MS) == []


def test_each_kind_has_a_time_of_its_own_and_what_was_asked_for_counts_as_manual() -> None:
    old = ms(2026, 1, 1)
    all_ = [snapshot("m", old), snapshot("a", old, "automatic"), snapshot("k", old, "automatic", kept=True)]
    assert [one.name for one in expired(all_, keeping(1, 0), NOW_MS)] == ["a"]
    assert [one.name for one in expired(all_, keeping(0, 1), NOW_MS)] == ["m", "k"]


def test_the_newest_automatic_one_of_the_last_hour_stays() -> None:
    recent = snapshot("a", NOW_MS - 1000, "automatic")
    assert expired([recent], keeping(1, 1), NOW_MS) == []


def test_settings_change_member_by_member_and_last(database: Database) -> None:
    assert lifecycle_of(database.system()) == Lifecycle()
    change_lifecycle(database, LifecycleChange(snapshot_writes_enabled=False))
    change_lifecycle(database, LifecycleChange(snapshot_retention=RetentionChange(auto_months=3)))
    change_lifecycle(database, LifecycleChange(snapshot_retention=RetentionChange(manual_months=5)))
    expected = Lifecycle(
        snapshot_writes_enabled=False, snapshot_retention=Retention(auto_months=3, manual_months=5)
    )
    assert lifecycle_of(read_state(database)[2]) == expected


def test_changes_at_the_same_time_are_all_made(database: Database) -> None:
    def work(number: int) -> None:
        if number % 2:
            change = LifecycleChange(snapshot_retention=RetentionChange(auto_months=number))
        else:
            change = LifecycleChange(snapshot_writes_enabled=False)
        change_lifecycle(database, change)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = lifecycle_of(database.system())
    assert not found.snapshot_writes_enabled
    assert found.snapshot_retention.auto_months in (1, 3, 5, 7)


@dataclass
class Context:
    """What the job is handed."""

    database: Database
    plugin_id: str = "versions"
    configuration: Any = None
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("test"))
    is_stopping: bool = False

    def wait(self, seconds: float) -> bool:
        return seconds > 0 and self.is_stopping


def test_the_job_deletes_what_is_too_old(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    write(database, {"/a": "1"})
    create_snapshot(database, "one")
    write(database, {"/a": "2"})
    create_snapshot(database, "two")
    later = list_snapshots(database)[0].created_ms + 40 * 86_400_000
    assert delete_expired(database, later) == []
    change_lifecycle(database, LifecycleChange(snapshot_retention=RetentionChange(manual_months=1)))
    RetentionJob().run(Context(database))
    assert len(list_snapshots(database)) == 2
    assert sorted(delete_expired(database, later)) == ["one", "two"]
    assert list_snapshots(database) == []
    last = database.commits(database.head().sequence - 2)
    messages = [commit.transactions[0].message or "" for commit in last]
    assert all(message.startswith("retention: ") for message in messages)
