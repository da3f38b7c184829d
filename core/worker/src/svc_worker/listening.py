"""Accepting connections: no more than there are file descriptors for, and no more than other workers do."""

from __future__ import annotations

import errno
import resource
import time
from collections.abc import Callable
from typing import Any

from gevent.server import StreamServer

from svc_worker.balance import Patience, Place

__all__ = ["Listener", "connections_that_fit", "raise_file_limit"]

RESERVE = 128
"""Descriptors that are left for the application: databases, logs, temporary files."""

MOST_FILES = 1_048_576
"""Asked for where the system sets no limit."""

PAUSE_SECONDS = 1.0
REPORT_SECONDS = 60.0
GIVE_WAY_SECONDS = 0.0005
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def raise_file_limit() -> int:
    """Lets this process have as many open files as it may; returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):
            pass
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def connections_that_fit(wanted: int, log: Any) -> int:
    """Returns how many connections a worker may have: as many as are wanted, and as there are files for."""
    files = raise_file_limit()
    fitting = max(1, files - RESERVE, files // 4)
    if fitting < wanted:
        log.info("A worker takes %d connections at once: it may open %d files.", fitting, files)
        return fitting
    return wanted


class Listener(StreamServer):  # type: ignore[misc]
    """A listening socket. Connections beyond the bound of the pool wait in it.

    ``handle`` is called with each connection and its address, in a greenlet of the pool. ``place`` is where
    this worker notes how many it has; None where it takes no part.
    """

    def __init__(
        self,
        listener: Any,
        handle: Callable[[Any, Any], None],
        pool: Any,
        log: Any,
        place: Place | None = None,
    ) -> None:
        super().__init__(listener, handle=handle, spawn=pool)
        self._log = log
        self._place = place
        self._patience = Patience()
        self._failures = 0
        self._reported_at = float("-inf")

    def do_read(self) -> Any:
        """Accepts a connection; None when there is none, none can be had, or another worker shall have it."""
        place = self._place
        if place is not None and self._patience.is_left(len(self.pool), place.smallest()):
            self._accept_again_in(GIVE_WAY_SECONDS)
            return None
        try:
            accepted = super().do_read()
            if place is not None and accepted is not None:
                place.note(len(self.pool) + 1)
            return accepted
        except ConnectionAbortedError:
            return None
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            self._rest(error)
            return None

    def _rest(self, error: OSError) -> None:
        """Stops accepting for a moment; says so, once a minute."""
        self._failures += 1
        now = time.monotonic()
        if now - self._reported_at >= REPORT_SECONDS:
            self._log.warning(
                "No connection can be accepted (%s): they wait. Tried %d times since this was last said.",
                error.strerror,
                self._failures,
            )
            self._failures, self._reported_at = 0, now
        self._accept_again_in(PAUSE_SECONDS)

    def _accept_again_in(self, seconds: float) -> None:
        self.stop_accepting()
        self._timer = self.loop.timer(seconds)
        self._timer.start(self._start_accepting_if_started)
