"""Where tasks and schedules stand in the system tree, and how they are written: files of JSON."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any

import msgspec

from svc.plugin import Database, Path, hash_content, native_lock

__all__ = [
    "ACTIVE",
    "LAST_RUNS",
    "RECORDS",
    "SCHEDULES",
    "TASKS",
    "LastRun",
    "ScheduleState",
    "active_file",
    "encode",
    "fingerprint",
    "is_task_id",
    "last_run_file",
    "new_task_id",
    "now_ms",
    "record_file",
    "schedule_file",
]

TASKS: Path = ("tasks",)
RECORDS: Path = ("tasks", "records")
ACTIVE: Path = ("tasks", "active")
"""A file for each task that waits or runs, named by what the task is: only one can be there."""
SCHEDULES: Path = ("tasks", "schedules")
LAST_RUNS: Path = ("tasks", "last-runs")

_ID = re.compile(r"[0-9a-f]{32}")


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of the runs of a schedule, at ``tasks/schedules/<id>``. Times are Unix milliseconds.

    Attributes:
        considered_until: everything that was due up to here has been enqueued, or is not to be.
        schedule: the expression that this is about; with another one the runs begin anew.
        timezone: the time zone that this is about.
        last_run_at: when a task, ``last_task_id``, was last enqueued.
    """

    considered_until: int
    schedule: str
    timezone: str
    last_run_at: int | None = None
    last_task_id: str | None = None


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """The last run of a schedule that one node of a cluster runs, for the one that does so next.

    It stands at ``tasks/last-runs/<id>``, which nodes exchange. Times are Unix milliseconds.

    Attributes:
        considered_until: everything that was due up to here has been enqueued.
        schedule: the expression that this is about.
        timezone: the time zone that this is about.
    """

    considered_until: int
    schedule: str
    timezone: str


def record_file(task_id: str) -> Path:
    """The record of a task."""
    return (*RECORDS, task_id)


def active_file(key: str) -> Path:
    """The file that holds the id of the task with this fingerprint that waits or runs."""
    return (*ACTIVE, key)


def schedule_file(schedule_id: str) -> Path:
    """The state of a schedule."""
    return (*SCHEDULES, schedule_id)


def last_run_file(schedule_id: str) -> Path:
    """The last run of a schedule that one node runs."""
    return (*LAST_RUNS, schedule_id)


def encode(record: msgspec.Struct) -> bytes:
    """Returns a record as it is stored."""
    return msgspec.json.encode(record)


def fingerprint(task_type: str, args: dict[str, Any]) -> str:
    """Returns what two tasks have in common that are the same work: 32 hexadecimal digits."""
    content = msgspec.json.encode([task_type, args], order="deterministic")
    return hash_content(content).hex()[:32]


def is_task_id(text: str) -> bool:
    """Whether a text is of the form of a task's id."""
    return _ID.fullmatch(text) is not None


_id_lock = native_lock()
_last_id = 0


def new_task_id(database: Database) -> str:
    """Returns an id that is greater than those before, also where the clock was set back since."""
    global _last_id
    with _id_lock:
        _last_id = max(now_ms() << 16, database.head().time_ms << 16, _last_id + 1)
        return f"{_last_id & (1 << 64) - 1:016x}{secrets.token_hex(8)}"


def now_ms() -> int:
    """The present time, Unix milliseconds."""
    return time.time_ns() // 1_000_000
