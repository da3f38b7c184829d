"""Starts a background process, with none of the sockets of its parent, and again whenever it ends."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from svc.plugins import PluginProblem
from svc_cli.processes.election import is_elected
from svc_server.background.failures import wait_after
from svc_server.options import ServerSettings

__all__ = ["Child", "Launch", "Supervisor", "run_background_program"]

_CODE = "from svc_server.background.process import main; main()"
_LASTING_SECONDS = 10.0
"""A process that lasted that long is started again at once; a shorter life counts as a failure."""
_RETRY_SECONDS = 0.5
_KILL_AFTER_SECONDS = 7.0

logger = logging.getLogger("svc.background")


class Child(Protocol):
    """A child process, as ``subprocess.Popen`` has it."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """Its exit code, 0 where somebody else was told; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; raises ``subprocess.TimeoutExpired``."""

    def terminate(self) -> None:
        """Tells it to end."""

    def kill(self) -> None:
        """Ends it."""


Launch = Callable[[dict[str, Any]], Child]
"""Starts a background process with an order: see ``run_ordered``."""


def run_background_program(order: dict[str, Any]) -> Child:
    """Starts a background process as a program of its own, for parents that can't fork: they run greenlets.

    It gets its order through a pipe, where no list of processes shows it.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE], stdin=subprocess.PIPE, stdout=sys.stderr.fileno()
    )
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin as pipe:
        pipe.write(json.dumps(order).encode("ascii"))
    return process


class Supervisor:
    """Keeps a background process running, from ``tick`` to ``tick``. For one thread or greenlet.

    Settings without ``background`` start none. With ``only_if_needed`` one is started only while the database
    has none. Several supervisors (the workers of a gunicorn of one's own) then keep one process together;
    otherwise theirs stand by. ``problems`` is what a boot of these plugins found wrong.

    Attributes:
        lock_file: of the database, for ``only_if_needed``; set when the database is open.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        only_if_needed: bool = False,
        launch: Launch = run_background_program,
        problems: Sequence[PluginProblem] | None = None,
    ) -> None:
        self._settings = settings
        self.lock_file: Path | None = None
        self._only_if_needed = only_if_needed
        self._launch = launch
        self._problems = problems
        self._process: Child | None = None
        self._started = 0.0
        self._due = time.monotonic()
        self._failures = 0
        self._ending = False
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The child, while it runs."""
        return self._process.pid if self._process is not None else None

    def tick(self) -> None:
        """Looks after the child; called about every second. Never blocks."""
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            self._note_end(code)
        if self._stopped or time.monotonic() < self._due:
            return
        if self._settings["background"] and not (self._only_if_needed and self._is_kept_by_others()):
            self._start()

    def restart(self, settings: ServerSettings, problems: Sequence[PluginProblem]) -> None:
        """Lets the child end, and the next tick after that start one with new settings. Never blocks."""
        self._settings = settings
        self._problems = problems
        self._terminate()

    def stop(self) -> None:
        """Tells the child to end, and starts no other. Never blocks."""
        self._stopped = True
        self._terminate()

    def wait(self) -> None:
        """Waits until the child has ended, for a few seconds; then it is killed."""
        if self._process is None:
            return
        try:
            self._process.wait(_KILL_AFTER_SECONDS)
        except subprocess.TimeoutExpired:
            logger.warning("The background process (pid %d) did not end and is killed.", self._process.pid)
            self._process.kill()
            self._process.wait()
        self._process = None

    def _is_kept_by_others(self) -> bool:
        # Imported here: the master of a server imports nothing that has to do with open databases.

        return self.lock_file is not None and is_elected(self.lock_file)

    def _start(self) -> None:
        self._started = time.monotonic()
        self._ending = False
        order = {
            "values": dict(self._settings.values),
            "given": dict(self._settings.given),
            "of_plugins": self._settings.of_plugins,
            "parent": os.getpid(),
            "only_if_needed": self._only_if_needed,
            "problems": self._problems,
        }
        try:
            self._process = self._launch(order)
        except (OSError, ValueError) as error:
            self._failures += 1
            self._due = time.monotonic() + wait_after(self._failures)
            logger.error("The background process can't be started: %s", error)

    def _note_end(self, code: int) -> None:
        self._process = None
        lasted = time.monotonic() - self._started
        if self._ending:
            self._failures, self._due = 0, time.monotonic()
            return
        if self._only_if_needed and code == 0:
            # Another one was quicker.
            self._due = time.monotonic() + _RETRY_SECONDS
            return
        self._failures = 0 if lasted >= _LASTING_SECONDS else self._failures + 1
        delay = wait_after(self._failures) if self._failures > 1 else 0.0
        self._due = time.monotonic() + delay
        logger.warning("The background process ended after %.0f s; the next starts in %.1f s.", lasted, delay)

    def _terminate(self) -> None:
        self._ending = True
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._process.terminate()
