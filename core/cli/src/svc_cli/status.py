"""How a database is being served: what ``svc status`` shows, with and without a server. Changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

import msgspec

from svc.database import Database
from svc.database.view_marks import applied_in
from svc.findings import Finding, merge_findings
from svc.log import Writability
from svc.plugins import Plugins, enabled_plugins
from svc_cli.diagnosis import gather_findings
from svc_cli.processes.election import is_elected
from svc_cli.processes.registration import RegisteredProcess, registered_processes
from svc_cli.processes.state_file import JobState, Report, ViewState, read_report

__all__ = [
    "BackgroundStatus",
    "DatabaseStatus",
    "ServiceCondition",
    "ServiceStatus",
    "ViewStatus",
    "WorkerStatus",
    "condition_of",
    "gather_status",
]

_UNWRITABLE = frozenset(("database.latched", "database.locked", "database.read-only", "database.full"))


class ServiceCondition(Enum):
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
    ServiceCondition.HEALTHY: 0,
    ServiceCondition.UNWRITABLE: 9,
    ServiceCondition.DEGRADED: 13,
    ServiceCondition.STOPPED: 14,
}


class DatabaseStatus(msgspec.Struct, frozen=True):
    """The database. Times are Unix milliseconds, sizes bytes.

    ``writable`` says whether its medium takes writes, ``may_write`` whether from the caller's user too;
    ``in_use`` whether anybody else has it open, and ``visible`` whether that user may see who it is.
    """

    path: str
    sequence: int
    version: str
    committed_at: int | None
    age_ms: int | None
    latched: bool
    writable: bool
    may_write: bool
    in_use: bool
    visible: bool
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
    """Everything. ``findings`` say why the condition is what it is."""

    condition: str
    findings: tuple[Finding, ...]
    database: DatabaseStatus
    workers: tuple[WorkerStatus, ...]
    background: BackgroundStatus
    views: tuple[ViewStatus, ...]

    @property
    def exit_code(self) -> int:
        """Exit code of ``svc status``."""
        return ServiceCondition(self.condition).exit_code


def gather_status(
    database: Database, plugins: Plugins | None, hanging: Sequence[Finding] = ()
) -> ServiceStatus:
    """Looks at everything at once; blocks for milliseconds. Plugins are those of ``boot_for_diagnosis``."""
    now_ms = time.time_ns() // 1_000_000
    processes = registered_processes(database.state_directory)
    elected = is_elected(database.place.lock_file)
    report = read_report(database.state_directory)
    told = report if elected else None
    described = _describe_database(database, now_ms)
    workers = tuple(
        WorkerStatus(item.pid, item.started_ms, max(0, now_ms - item.started_ms), item.requests)
        for item in processes
        if item.kind == "worker"
    )
    background = _describe_background(processes, elected, told, now_ms)
    views = () if plugins is None else tuple(_describe_views(database, plugins, described.sequence, told))
    findings = merge_findings(
        gather_findings(database, plugins, processes, hanging), _gone_directory(described, database)
    )
    # Who may not see the workers takes whoever has the database open for one.
    serving = bool(workers) or (described.in_use and not described.visible)
    condition = condition_of(findings, serving=serving)
    return ServiceStatus(condition.value, findings, described, workers, background, views)


def condition_of(findings: tuple[Finding, ...], *, serving: bool) -> ServiceCondition:
    """Returns the verdict on what is wrong and on whether somebody serves the database."""
    if any(finding.code in _UNWRITABLE for finding in findings):
        return ServiceCondition.UNWRITABLE
    if findings:
        return ServiceCondition.DEGRADED
    return ServiceCondition.HEALTHY if serving else ServiceCondition.STOPPED


def _describe_database(database: Database, now_ms: int) -> DatabaseStatus:
    head = database.head()
    log = database.objects.log
    free, total = log.disk_space()
    writability = log.storage.writability()
    return DatabaseStatus(
        path=database.location,
        sequence=head.sequence,
        version=head.root.hex(),
        committed_at=head.time_ms or None,
        age_ms=max(0, now_ms - head.time_ms) if head.time_ms else None,
        latched=head.latched,
        writable=writability is not Writability.READ_ONLY,
        may_write=writability is Writability.WRITABLE,
        in_use=log.storage.others_present(),
        visible=_is_visible(log.state_directory),
        file_size=log.tail,
        disk_free=free,
        disk_total=total,
    )


def _is_visible(directory: Path) -> bool:
    """Whether the entries of processes can be read; where there is no directory, there are none."""
    return os.access(directory, os.R_OK | os.X_OK) or not os.path.lexists(directory)


def _gone_directory(described: DatabaseStatus, database: Database) -> Iterator[Finding]:
    directory = database.place.state_directory
    if described.in_use and not os.path.lexists(directory):
        yield Finding(
            "database.displaced",
            "database",
            f"Somebody has the database open, and the directory beside it, {directory.name}, is not there: a "
            "server takes no writes then, and cannot be seen here.",
            "If it was removed or moved, put it back, or start the server anew.",
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
