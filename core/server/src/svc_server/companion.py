"""What a worker does beside requests: it keeps its entry up to date, and says what it finds wrong.

In a gunicorn of one's own it also looks after the background process, together with the other workers.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from svc.errors import DatabaseClosed
from svc.metrics import begin_metrics
from svc_cli.processes.registration import Registration
from svc_server.diagnosis import Reporter, Surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from svc.pipeline import Application
    from svc_server.background.supervision import Supervisor

__all__ = ["Companion"]

_TICK_SECONDS = 1.0
_CHECK_SECONDS = 5.0
"""How old the answers of health checks may be that nobody has asked for."""

logger = logging.getLogger("svc.worker")


class Companion:
    """A thread (a greenlet under gevent) beside the requests of a worker."""

    def __init__(
        self,
        application: Application,
        directory: Path,
        supervisor: Supervisor | None,
        surroundings: Surroundings,
        *,
        keeps_background: bool,
    ) -> None:
        self._application = application
        self._registration = Registration(directory, "worker", keeps_background=keeps_background)
        begin_metrics(directory, os.getppid())
        self._reporter = Reporter(self._registration, "worker", application.service.plugins.allowed)
        self._surroundings = surroundings
        self._supervisor = supervisor
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="svc-companion", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def close(self) -> None:
        """Ends it, and the background process that it keeps; waits for neither for more than seconds."""
        self._ending.set()
        self._surroundings.close()
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
                self._tell()
            except DatabaseClosed:
                pass  # The worker is about to end.
            except Exception:
                if not self._ending.is_set():
                    logger.exception("The worker could not look after itself.")
            self._ending.wait(_TICK_SECONDS)

    def _tell(self) -> None:
        live = self._application.service.live
        if live is None:
            return
        beside = self._surroundings.look(live.database)
        faults = self._application.service.faults.findings()
        self._reporter.tell((*live.findings(max_age_s=_CHECK_SECONDS), *faults, *beside))
