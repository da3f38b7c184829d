"""What a worker does beside requests: it keeps its entry in the list of processes up to date.

In a gunicorn of one's own it also looks after the background process, together with the other workers.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from svc.server.registration import Registration

if TYPE_CHECKING:
    from pathlib import Path

    from svc.pipeline import Application
    from svc.server.background.supervision import Supervisor

__all__ = ["Companion"]

_TICK_SECONDS = 1.0

logger = logging.getLogger("svc.worker")


class Companion:
    """A thread (a greenlet under gevent) beside the requests of a worker.

    Args:
        application: whose requests are counted.
        directory: what lies beside the log.
        supervisor: keeps a background process; None where somebody else does.
        keeps_background: whether this server keeps one at all.
    """

    def __init__(
        self,
        application: Application,
        directory: Path,
        supervisor: Supervisor | None,
        *,
        keeps_background: bool,
    ) -> None:
        self._application = application
        self._registration = Registration(directory, "worker", keeps_background=keeps_background)
        self._supervisor = supervisor
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="svc-companion", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def close(self) -> None:
        """Ends it, and the background process that it keeps; waits for neither for more than seconds."""
        self._ending.set()
        if self._supervisor is not None:
            self._supervisor.stop()
            self._supervisor.wait()
        self._registration.close()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._registration.update(requests=self._application.served)
                if self._supervisor is not None:
                    self._supervisor.tick()
            except Exception:
                logger.exception("The worker could not look after its background process.")
            self._ending.wait(_TICK_SECONDS)
