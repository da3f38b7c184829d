"""Starts a background process and starts it again when it ends; never waits for it longer than it says.

Settings flow in; a child process flows out. The child gets its settings through a pipe, where no list of
processes shows them, and none of the sockets of its parent.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import time

from svc.server.background.failures import wait_after
from svc.server.options import ServerSettings

__all__ = ["Supervisor"]

_CODE = "from svc.server.background.process import main; main()"
_LASTING_SECONDS = 10.0
"""A process that lasted that long is started again at once; a shorter life counts as a failure."""
_RETRY_SECONDS = 0.5
_KILL_AFTER_SECONDS = 7.0

logger = logging.getLogger("svc.background")


class Supervisor:
    """Keeps a background process running, from ``tick`` to ``tick``. For one thread or greenlet.

    Settings without ``background`` start none.

    Args:
        settings: the settings of the server.
        only_if_needed: start one only while the database has none. Several supervisors (the workers of a
            gunicorn of one's own) then keep one process together; otherwise theirs stand by.
    """

    def __init__(self, settings: ServerSettings, *, only_if_needed: bool = False) -> None:
        self._settings = settings
        self._only_if_needed = only_if_needed
        self._process: subprocess.Popen[bytes] | None = None
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

    def restart(self, settings: ServerSettings) -> None:
        """Lets the child end, and the next tick after that start one with new settings. Never blocks."""
        self._settings = settings
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
        from svc.server.background.election import is_elected

        return is_elected(self._settings["database"])

    def _start(self) -> None:
        self._started = time.monotonic()
        self._ending = False
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _CODE], stdin=subprocess.PIPE, stdout=sys.stderr.fileno()
            )
        except (OSError, ValueError) as error:
            self._failures += 1
            self._due = time.monotonic() + wait_after(self._failures)
            logger.error("The background process can't be started: %s", error)
            return
        self._process = process
        order = {
            "values": dict(self._settings.values),
            "given": dict(self._settings.given),
            "parent": os.getpid(),
            "only_if_needed": self._only_if_needed,
        }
        assert process.stdin is not None
        with contextlib.suppress(OSError), process.stdin as pipe:
            pipe.write(json.dumps(order).encode("ascii"))

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
