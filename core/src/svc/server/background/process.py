"""The life of a background process: stand for election, serve, and end when told to.

It is a process of its own, never a fork of one that serves, and works with plain threads: what blocks in one
view or job blocks nobody else.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from svc.database import Database
from svc.errors import SvcError
from svc.log.creation import make_state_directory
from svc.plugins import Plugins
from svc.server.assembly import boot_plugins
from svc.server.background.election import Candidate
from svc.server.background.office import Office
from svc.server.background.state_file import BackgroundState, StateFile
from svc.server.logs import configure_logs
from svc.server.options import ServerSettings
from svc.server.registration import Registration

__all__ = ["Stop", "main", "run_background"]

STANDBY_SECONDS = 0.25
BEAT_SECONDS = 1.0
_NICENESS = 10
"""Where a processor is wanted by both, those who answer requests come first."""

logger = logging.getLogger("svc.background")


class Stop:
    """Whether the process shall end: after a signal, or when the process that started it is gone.

    Args:
        parent: number of the process that started this one and must outlive it; None when nobody does.
    """

    def __init__(self, parent: int | None = None) -> None:
        self._parent = parent
        self._asked = False

    def follow_signals(self) -> None:
        """Ends with SIGTERM and SIGINT; one that has a parent leaves SIGINT, a terminal's, to it."""
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask if self._parent is None else signal.SIG_IGN)

    @property
    def is_asked(self) -> bool:
        """Whether to end now."""
        return self._asked or (self._parent is not None and os.getppid() != self._parent)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        # Only this: a lock taken here could be one that the interrupted code holds.
        self._asked = True


def run_background(settings: ServerSettings, stop: Stop, *, only_if_needed: bool = False) -> int:
    """Is a candidate, and once elected the background process, until it is told to stop. Blocks.

    Args:
        settings: the database, the plugins, and their options.
        stop: says when.
        only_if_needed: give up at once when another process is elected, instead of standing by.

    Returns:
        The exit code.

    Raises:
        SvcError: there is no database, or it can't be opened; a plugin option is not valid.
    """
    with Candidate(settings["database"]) as candidate:
        if only_if_needed and not candidate.stand():
            return 0
        plugins = boot_plugins(settings)
        directory = _state_directory(candidate.path)
        registration = Registration(directory, "standby")
        try:
            while not candidate.stand():
                if stop.is_asked:
                    return 0
                if candidate.is_outdated:
                    logger.warning("The database was replaced: this process ends.")
                    return 0
                time.sleep(STANDBY_SECONDS)
            registration.update(kind="background")
            return _serve(candidate, plugins, stop)
        finally:
            registration.close()


def _serve(candidate: Candidate, plugins: Plugins, stop: Stop) -> int:
    elected_ms = time.time_ns() // 1_000_000
    logger.info("Elected as the background process of %s.", candidate.path.name)
    file = StateFile(_state_directory(candidate.path))
    beat = _paced(lambda: file.beat(BackgroundState(os.getpid(), elected_ms)), BEAT_SECONDS)
    beat()
    database = Database(candidate.path, create=False, progress=lambda _done, _total: beat())
    office = Office(database, plugins, elected_ms)
    try:
        office.start()
        file.beat(office.state())
        _work(office, file, candidate, stop)
    finally:
        is_over = office.stop()
        file.remove()
        if is_over:
            database.close()
    if not is_over:
        # Threads are at work in the database: it is left as by a kill, which loses nothing.
        logging.shutdown()
        os._exit(0)
    return 0


def _work(office: Office, file: StateFile, candidate: Candidate, stop: Stop) -> None:
    next_beat = time.monotonic() + BEAT_SECONDS
    while not stop.is_asked:
        pause = office.look()
        if time.monotonic() >= next_beat:
            if candidate.is_outdated:
                logger.warning("The database was replaced: this process ends.")
                return
            office.follow_plugins()
            file.beat(office.state())
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


def _state_directory(path: Path) -> Path:
    """What lies beside the log; made when it is missing, as the log does."""
    directory = path.with_name(f"{path.name}.d")
    make_state_directory(directory)
    return directory


def main() -> None:
    """Runs what ``Supervisor`` starts: reads the settings from standard input, and exits."""
    os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), _NICENESS))
    order = json.load(sys.stdin)
    settings = ServerSettings(order["values"], order["given"])
    configure_logs(settings["log_format"])
    stop = Stop(order["parent"])
    stop.follow_signals()
    code = 1
    try:
        code = run_background(settings, stop, only_if_needed=order["only_if_needed"])
    except SvcError as error:
        logger.error("The background process can't run: %s", error.message)
        code = error.exit_code
    except Exception:
        logger.exception("The background process failed.")
    sys.exit(code)
