"""The report of the background process: a small file beside the log, and its heartbeat.

The heartbeat is the file's modification time, which can be set even if the disk is full.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

from svc.state_files import replace_content

__all__ = ["BackgroundState", "JobState", "Report", "StateFile", "ViewState", "read_report", "view_places"]

_NAME = "background.json"
LASTING_SECONDS = 60.0
"""A background process that lives longer has not failed by starting."""


class ViewState(msgspec.Struct, frozen=True):
    """How far one view is (``applied``); ``failures`` since it last got on, and the last one's ``error``."""

    name: str
    plugin: str
    applied: int
    failures: int = 0
    error: str | None = None
    failing_since_ms: int | None = None


class JobState(msgspec.Struct, frozen=True):
    """How one periodic job is: ``runs`` ended, well or not; of the last ones ``failures`` in a row failed.

    ``running_since_ms`` is None between runs; ``duration_ms`` and ``error`` are those of the last run.
    """

    name: str
    plugin: str
    interval_s: float
    runs: int = 0
    failures: int = 0
    running_since_ms: int | None = None
    ended_ms: int | None = None
    duration_ms: int | None = None
    error: str | None = None


class BackgroundState(msgspec.Struct, frozen=True):
    """What the background process tells; it is the one since ``elected_ms``.

    ``crashes`` counts those before it that ended without being told to, each soon after its start, while the
    ``server`` that keeps them went on: one that is killed with all its processes says nothing of them.
    ``last_error`` stays when all is well again.
    """

    pid: int
    elected_ms: int
    views: tuple[ViewState, ...] = ()
    jobs: tuple[JobState, ...] = ()
    crashes: int = 0
    last_error: str | None = None
    last_error_ms: int | None = None
    server: str = ""


class Report(msgspec.Struct, frozen=True):
    """A state as a reader finds it; at ``heartbeat_ms`` the process was last known to be alive."""

    state: BackgroundState
    heartbeat_ms: int


class StateFile:
    """The file, as the background process writes it."""

    def __init__(self, directory: Path, server: int | None = None) -> None:
        """Reads what the one before has left.

        Args:
            directory: the state directory of the database.
            server: process id of the server that keeps the process; None where nobody does.
        """
        self._path = directory / _NAME
        self._server = "" if server is None else _identity(server)
        self._written: bytes | None = None
        self._began = time.monotonic()
        self._crashes = _crashes_before(read_report(directory), self._server)

    def beat(self, state: BackgroundState) -> None:
        """Shows that the process is alive, and what has changed. What can't be written waits."""
        if self._crashes and time.monotonic() - self._began > LASTING_SECONDS:
            self._crashes = 0
        content = msgspec.json.encode(
            msgspec.structs.replace(state, crashes=self._crashes, server=self._server)
        )
        with contextlib.suppress(OSError):
            if content != self._written or not self._path.exists():
                replace_content(self._path, content)
                self._written = content
        with contextlib.suppress(OSError):
            os.utime(self._path)

    def remove(self) -> None:
        """Takes the file away, at an orderly end."""
        with contextlib.suppress(OSError):
            self._path.unlink()


def read_report(directory: Path) -> Report | None:
    """Returns what the last background process of a database told; None when there is nothing to read."""
    try:
        with open(directory / _NAME, "rb") as file:
            heartbeat_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            return Report(msgspec.json.decode(file.read(), type=BackgroundState), heartbeat_ms)
    except (OSError, msgspec.DecodeError):
        return None


def _identity(process: int) -> str:
    """Names a process so that none that has the same number later is taken for it."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            # Behind its name, which may hold anything: the 22nd value is when it was started.
            started = file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = ""
    return f"{process}:{started}"


def _crashes_before(left: Report | None, server: str) -> int:
    """Counts the ends in a row soon after the start; a process that is stopped removes its file."""
    if left is None or left.state.server != server:
        return 0
    lasted_ms = left.heartbeat_ms - left.state.elected_ms
    return left.state.crashes + 1 if lasted_ms < LASTING_SECONDS * 1000 else 1


def view_places(state_directory: Path) -> dict[str, int]:
    """Returns how far the views of a database are, by name, as the background process said last.

    Reads one file, and waits for nothing that a view may hold.
    """
    report = read_report(state_directory)
    return {} if report is None else {view.name: view.applied for view in report.state.views}
