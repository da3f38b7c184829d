"""How a database is being served: what ``svc status`` shows.

The log's HEAD, the entries of processes, the report of the background process and the marks of views flow
in; one description, with a verdict, flows out. Works with and without a server, and changes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from enum import Enum

import msgspec

from svc.database import Database
from svc.database.view_marks import applied_in
from svc.plugins import Plugins, enabled_plugins
from svc.server.background.election import is_elected
from svc.server.background.state_file import JobState, Report, ViewState, read_report
from svc.server.background.watch import MISSING_SECONDS
from svc.server.registration import RegisteredProcess, registered_processes

__all__ = [
    "BackgroundStatus",
    "Condition",
    "DatabaseStatus",
    "ServiceStatus",
    "ViewStatus",
    "WorkerStatus",
    "gather_status",
]

_FULL_BYTES = 64 * 1024


class Condition(Enum):
    """The verdict. Each has its exit code, which the documentation lists."""

    HEALTHY = "healthy"
    UNWRITABLE = "unwritable"
    DEGRADED = "degraded"
    STOPPED = "stopped"

    @property
    def exit_code(self) -> int:
        """Exit code of ``svc status``."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Condition.HEALTHY: 0,
    Condition.UNWRITABLE: 9,
    Condition.DEGRADED: 13,
    Condition.STOPPED: 14,
}


class DatabaseStatus(msgspec.Struct, frozen=True):
    """The database. Times are Unix milliseconds, sizes bytes."""

    path: str
    sequence: int
    version: str
    committed_at: int | None
    age_ms: int | None
    latched: bool
    writable: bool
    file_size: int
    disk_free: int
    disk_total: int


class WorkerStatus(msgspec.Struct, frozen=True):
    """A worker. ``requests`` are those of its life, as of about a second ago."""

    pid: int
    started_at: int
    uptime_ms: int
    requests: int


class BackgroundStatus(msgspec.Struct, frozen=True):
    """The background process; members are None where none is elected or it has told nothing yet."""

    running: bool
    expected: bool
    pid: int | None
    elected_at: int | None
    heartbeat_at: int | None
    heartbeat_age_ms: int | None
    standby: tuple[int, ...]
    jobs: tuple[JobState, ...]
    last_error: str | None
    last_error_at: int | None


class ViewStatus(msgspec.Struct, frozen=True):
    """A view. ``behind`` counts the commits that are not in it yet."""

    name: str
    plugin: str
    applied: int
    behind: int
    failures: int
    error: str | None
    failing_since: int | None


class ServiceStatus(msgspec.Struct, frozen=True):
    """Everything. ``problems`` are sentences: why the condition is what it is."""

    condition: str
    problems: tuple[str, ...]
    database: DatabaseStatus
    workers: tuple[WorkerStatus, ...]
    background: BackgroundStatus
    views: tuple[ViewStatus, ...]

    @property
    def exit_code(self) -> int:
        """Exit code of ``svc status``."""
        return Condition(self.condition).exit_code


def gather_status(database: Database, plugins: Plugins) -> ServiceStatus:
    """Looks at everything at once; blocks for milliseconds.

    Args:
        database: open for reading.
        plugins: the outcome of the boot: which views there should be.
    """
    now_ms = time.time_ns() // 1_000_000
    processes = registered_processes(database.state_directory)
    elected = is_elected(database.path)
    report = read_report(database.state_directory)
    told = report if elected else None
    described = _describe_database(database, now_ms)
    workers = tuple(
        WorkerStatus(item.pid, item.started_ms, max(0, now_ms - item.started_ms), item.requests)
        for item in processes
        if item.kind == "worker"
    )
    background = _describe_background(processes, elected, told, now_ms)
    views = tuple(_describe_views(database, plugins, described.sequence, told))
    wrong = list(_problems(background, views, told))
    if _is_silent(processes, background, report, now_ms):
        wrong.append(
            "The background process does not respond."
            if elected
            else "The background process is not running."
        )
    condition = Condition.DEGRADED if wrong else Condition.HEALTHY
    blocked = tuple(_obstacles(described))
    if blocked:
        condition = Condition.UNWRITABLE
    elif not wrong and not workers:
        condition = Condition.STOPPED
    return ServiceStatus(condition.value, (*blocked, *wrong), described, workers, background, views)


def _describe_database(database: Database, now_ms: int) -> DatabaseStatus:
    head = database.head()
    log = database.objects.log
    free, total = log.disk_space()
    return DatabaseStatus(
        path=str(database.path),
        sequence=head.sequence,
        version=head.root.hex(),
        committed_at=head.time_ms or None,
        age_ms=max(0, now_ms - head.time_ms) if head.time_ms else None,
        latched=head.latched,
        writable=os.access(database.path, os.W_OK),
        file_size=log.tail,
        disk_free=free,
        disk_total=total,
    )


def _describe_background(
    processes: list[RegisteredProcess], elected: bool, told: Report | None, now_ms: int
) -> BackgroundStatus:
    holder = next((item for item in processes if item.kind == "background"), None)
    state = told.state if told is not None else None
    return BackgroundStatus(
        running=elected,
        expected=any(item.keeps_background for item in processes),
        pid=state.pid if state is not None else holder.pid if holder is not None else None,
        elected_at=state.elected_ms if state is not None else None,
        heartbeat_at=told.heartbeat_ms if told is not None else None,
        heartbeat_age_ms=max(0, now_ms - told.heartbeat_ms) if told is not None else None,
        standby=tuple(item.pid for item in processes if item.kind == "standby"),
        jobs=state.jobs if state is not None else (),
        last_error=state.last_error if state is not None else None,
        last_error_at=state.last_error_ms if state is not None else None,
    )


def _describe_views(
    database: Database, plugins: Plugins, sequence: int, told: Report | None
) -> Iterator[ViewStatus]:
    enabled = enabled_plugins(database, plugins)
    states = {state.name: state for state in told.state.views} if told is not None else {}
    for item in plugins.registries.views:
        plugin = enabled.get(item.plugin_id)
        if plugin is None or plugin.problem is not None:
            continue
        applied = applied_in(database, item.value)
        state = states.get(item.name, ViewState(item.name, item.plugin_id, applied))
        yield ViewStatus(
            name=item.name,
            plugin=item.plugin_id,
            applied=applied,
            behind=max(0, sequence - applied),
            failures=state.failures,
            error=state.error,
            failing_since=state.failing_since_ms,
        )


def _obstacles(database: DatabaseStatus) -> Iterator[str]:
    """What keeps the database from taking writes."""
    if database.latched:
        yield "The database takes no writes after an I/O error; see the log of the server."
    if not database.writable:
        yield "The database file can't be written."
    elif database.disk_free < _FULL_BYTES:
        yield "The disk is full."


def _problems(
    background: BackgroundStatus, views: tuple[ViewStatus, ...], told: Report | None
) -> Iterator[str]:
    for view in views:
        if view.error is not None:
            yield f"The view {view.name} fails, {view.behind} commits behind: {view.error}"
    for job in background.jobs:
        if job.error is not None:
            yield f"The job {job.name} of {job.plugin} failed {job.failures} times in a row: {job.error}"
    if told is not None:
        yield from told.state.problems


def _is_silent(
    processes: list[RegisteredProcess], background: BackgroundStatus, report: Report | None, now_ms: int
) -> bool:
    """Whether the background process should be at work, and has not been heard for too long."""
    if not (background.running or background.expected):
        return False
    since = [item.started_ms for item in processes if item.kind != "standby"]
    last = max([report.heartbeat_ms if report is not None else 0, min(since, default=now_ms)])
    return now_ms - last > MISSING_SECONDS * 1000
