"""The life of a background process: try to become the only one, serve, and end when told to.

It is a process of its own, never a fork of one that serves, and works with plain threads: what blocks in one
view or job blocks nobody else.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from svc.database import Database
from svc.errors import SvcError
from svc.log import NO_BACKENDS, StorageBackend, scheme_of
from svc.log.creation import make_state_directory
from svc.metrics import begin_metrics
from svc.plugins import PluginProblem, Plugins, plugin_findings
from svc_cli.opening import require_backend
from svc_cli.processes.election import Candidate
from svc_cli.processes.registration import Registration
from svc_cli.processes.state_file import BackgroundState, StateFile
from svc_server.assembly import boot_plugins
from svc_server.background.work import BackgroundWork
from svc_server.diagnosis import Reporter
from svc_server.logs import configure_logs
from svc_server.options import PluginValue, ServerSettings

__all__ = ["Stop", "allow_in_children", "main", "run_background", "run_ordered"]

STANDBY_SECONDS = 0.25
BEAT_SECONDS = 1.0
PROCESS_NAME = "svc-background"
_NICENESS = 10
"""Where a processor is wanted by both, those who answer requests come first."""

_NOT_NEEDED = ("routes", "commands", "auth_modes", "health_checks")
"""Registries that stay empty: what answers requests and commands is half of what plugins import."""

_CACHE_BYTES = 16 * 1024 * 1024
"""Views read each version once, soon after it was made: little of what they have read is of use again."""

logger = logging.getLogger("svc.background")


class Stop:
    """Whether the process shall end: after a signal, or when the ``parent`` that must outlive it is gone."""

    def __init__(self, parent: int | None = None) -> None:
        self._parent = parent
        self._asked = False

    def follow_signals(self) -> None:
        """Ends with SIGTERM and SIGINT; one that has a parent leaves SIGINT, a terminal's, to it."""
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask if self._parent is None else signal.SIG_IGN)

    @property
    def parent(self) -> int | None:
        """Process id of the parent that must outlive it."""
        return self._parent

    @property
    def is_asked(self) -> bool:
        """Whether to end now."""
        return self._asked or (self._parent is not None and os.getppid() != self._parent)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        # Only this: a lock taken here could be one that the interrupted code holds.
        self._asked = True


def run_background(
    settings: ServerSettings,
    stop: Stop,
    *,
    only_if_needed: bool = False,
    problems: Sequence[PluginProblem] | None = None,
) -> int:
    """Is a candidate, and once elected the background process, until it is told to stop. Blocks.

    With ``only_if_needed`` it gives up at once when another process is elected, instead of standing by.
    ``problems`` is what a whole boot found wrong with the plugins; then less is booted here.
    """
    # Only the URL of a backend needs plugins to be understood.
    is_remote = scheme_of(settings["database"]) is not None
    plugins = _boot(settings, problems) if is_remote else None
    location = settings["database"]
    place = require_backend(location, _backends_of(plugins)).locate(location)
    with Candidate(place.lock_file) as candidate:
        if only_if_needed and not candidate.acquire():
            return 0
        if plugins is None:
            plugins = _boot(settings, problems)
        directory = place.state_directory
        make_state_directory(directory)
        registration = Registration(directory, "standby")
        begin_metrics(directory)
        reporter = Reporter(registration, "background", plugins.allowed)
        try:
            reporter.tell(plugin_findings(plugins))
            while not candidate.acquire():
                if stop.is_asked:
                    return 0
                if candidate.is_outdated:
                    logger.warning("The database was replaced: this process ends.")
                    return 0
                time.sleep(STANDBY_SECONDS)
            registration.update(kind="background")
            return _serve(candidate, directory, plugins, settings, stop, reporter)
        finally:
            registration.close()


def _boot(settings: ServerSettings, problems: Sequence[PluginProblem] | None) -> Plugins:
    """Boots the plugins; wholly where nobody has done so, since what is wrong may be anywhere."""
    if problems is None:
        return boot_plugins(settings)
    return boot_plugins(settings, without=_NOT_NEEDED, known=problems)


def _serve(
    candidate: Candidate,
    directory: Path,
    plugins: Plugins,
    settings: ServerSettings,
    stop: Stop,
    reporter: Reporter,
) -> int:
    elected_ms = time.time_ns() // 1_000_000
    make_state_directory(directory)
    logger.info("Elected as the background process of %s.", directory.name.removesuffix(".d"))
    file = StateFile(directory, stop.parent)
    beat = _paced(lambda: file.beat(BackgroundState(os.getpid(), elected_ms)), BEAT_SECONDS)
    beat()
    database = Database(
        settings["database"],
        create=False,
        progress=lambda _done, _total: beat(),
        max_tree_entries=settings["max_tree_entries"],
        backends=_backends_of(plugins),
        cache_bytes=_CACHE_BYTES,
    )
    work = BackgroundWork(database, plugins, elected_ms)
    try:
        work.start()
        file.beat(work.state())
        reporter.tell(work.findings())
        _work_until(stop, work, file, candidate, reporter)
    finally:
        is_over = work.stop()
        file.remove()
        if is_over:
            database.close()
    if not is_over:
        # Threads are at work in the database: it is left as by a kill, which loses nothing.
        logging.shutdown()
        os._exit(0)
    return 0


def _work_until(
    stop: Stop, work: BackgroundWork, file: StateFile, candidate: Candidate, reporter: Reporter
) -> None:
    next_beat = time.monotonic() + BEAT_SECONDS
    while not stop.is_asked:
        pause = work.look()
        if time.monotonic() >= next_beat:
            if candidate.is_outdated:
                logger.warning("The database was replaced: this process ends.")
                return
            work.follow_plugins()
            file.beat(work.state())
            reporter.tell(work.findings())
            next_beat = time.monotonic() + BEAT_SECONDS
        time.sleep(pause)


def _paced(function: Callable[[], None], seconds: float) -> Callable[[], None]:
    """A function that does something at most once in so many seconds, however often it is called."""
    due = time.monotonic()

    def call() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + seconds
            function()

    return call


def _backends_of(plugins: Plugins | None) -> Mapping[str, StorageBackend]:
    return NO_BACKENDS if plugins is None else plugins.registries.storage_backends.values


def run_ordered(order: dict[str, Any]) -> int:
    """Is the background process that a ``Supervisor`` starts, to its end; returns the exit code.

    The order has the settings (``values`` and ``given``), the ``parent`` to live as long as, and
    ``only_if_needed`` and ``problems`` as in ``run_background``.
    """
    os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), _NICENESS))
    stop = Stop(order["parent"])
    stop.follow_signals()
    with contextlib.suppress(OSError):
        # What `ps -o comm` and `top` show: a fork has the command line of its parent.
        Path("/proc/self/comm").write_text(PROCESS_NAME)
    of_plugins = tuple(PluginValue(*value) for value in order["of_plugins"])
    settings = ServerSettings(order["values"], order["given"], of_plugins)
    allow_in_children(settings)
    configure_logs(settings["log_format"])
    try:
        only_if_needed, problems = order["only_if_needed"], order["problems"]
        return run_background(settings, stop, only_if_needed=only_if_needed, problems=problems)
    except SvcError as error:
        logger.error("The background process can't run: %s", error.message)
        return error.exit_code
    except Exception:
        logger.exception("The background process failed.")
        return 1


def allow_in_children(settings: ServerSettings) -> None:
    """Lets the programs that plugins start in turn, as those of tasks, use the plugins of this deployment."""
    if settings["plugins"] is not None:
        os.environ["SVC_PLUGINS"] = ",".join(settings["plugins"])


def main() -> None:
    """The program: reads its order from standard input, and exits."""
    sys.exit(run_ordered(json.load(sys.stdin)))
