"""Where tasks and schedules stand in the system tree, and how they are written: files of JSON.

A record that another program wrote in another form counts as absent.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from typing import Any, TypeVar, cast

import msgspec

from svc.plugin import Condition, Database, Entry, EntryKind, Hash, Path, Version, hash_content

__all__ = [
    "ACTIVE",
    "RECORDS",
    "SCHEDULES",
    "TASKS",
    "ScheduleState",
    "active_file",
    "encode",
    "fingerprint",
    "is_task_id",
    "new_task_id",
    "now_ms",
    "read_record",
    "record_file",
    "same_content",
    "schedule_file",
]

TASKS: Path = ("tasks",)
RECORDS: Path = ("tasks", "records")
ACTIVE: Path = ("tasks", "active")
"""A file for each task that waits or runs, named by what the task is: only one can be there."""
SCHEDULES: Path = ("tasks", "schedules")

_ID = re.compile(r"[0-9a-f]{32}")
_MOST_KNOWN = 4_096

T = TypeVar("T", bound=msgspec.Struct)


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of the runs of a schedule, at ``tasks/schedules/<id>``. Times are Unix milliseconds.

    Attributes:
        considered_until: everything that was due up to here has been enqueued, or is not to be.
        schedule: the expression that this is about; with another one the runs begin anew.
        timezone: the time zone that this is about.
        last_run_at: when a task was last enqueued.
        last_task_id: that task.
    """

    considered_until: int
    schedule: str
    timezone: str
    last_run_at: int | None = None
    last_task_id: str | None = None


def record_file(task_id: str) -> Path:
    """The record of a task."""
    return (*RECORDS, task_id)


def active_file(key: str) -> Path:
    """The file that holds the id of the task with this fingerprint that waits or runs."""
    return (*ACTIVE, key)


def schedule_file(schedule_id: str) -> Path:
    """The state of a schedule."""
    return (*SCHEDULES, schedule_id)


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


_id_lock = threading.Lock()
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


def same_content(entry: Entry | None) -> Condition:
    """Returns the condition that an entry is still what it was when it was read; None was nothing."""
    if entry is None:
        return Condition(if_none_match=("*",))
    return Condition(if_match=(entry.hash.hex(),))


_UNKNOWN: Any = object()
_known: dict[tuple[Hash, type], msgspec.Struct | None] = {}
"""Records by the hash of their bytes, decoded once in a process; a content never changes."""


def read_record(system: Version, entry: Entry | None, form: type[T]) -> T | None:
    """Returns the record that an entry holds; None when there is none, or none of this form."""
    if entry is None or entry.kind is not EntryKind.FILE:
        return None
    key = (entry.hash, form)
    known = _known.get(key, _UNKNOWN)
    if known is not _UNKNOWN:
        return cast("T | None", known)
    try:
        record = msgspec.json.decode(system.read_all(entry), type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        record = None
    # Each step is atomic, and a record that is decoded twice is the same both times.
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = record
    return record
