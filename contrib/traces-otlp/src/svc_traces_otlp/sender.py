"""What sends spans: a queue that never grows beyond its bound, and a thread that empties it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from svc.plugin import Counter, FinishedRequest, run_blocking
from svc_traces_otlp.configuration import TracesConfiguration

if TYPE_CHECKING:
    from svc_traces_otlp.spans import Exporter

__all__ = ["Sender"]

_BATCH = 256
_FLUSH_SECONDS = 0.8
"""A plugin ends its threads within a second."""

SENT = Counter("svc_traces_sent", "Traced requests whose spans a collector has taken.")
DROPPED = Counter(
    "svc_traces_dropped",
    "Traced requests whose spans were dropped: the queue was full, the collector failed, the server ended.",
    ("reason",),
)


class Sender:
    """Sends the spans of requests to a collector, some seconds later.

    In a worker on gevent its thread is a greenlet; what takes time runs in a native thread beside it.
    """

    def __init__(self, settings: TracesConfiguration, logger: logging.Logger) -> None:
        self._settings = settings
        self._logger = logger
        self._queue: deque[FinishedRequest] = deque()
        self._under_way = 0
        self._wake = threading.Event()
        self._ending = False
        self._ended = threading.Event()
        self._exporter: Exporter | None = None
        self._fails = False
        self._is_given_up = False
        threading.Thread(target=self._run, name="svc-traces", daemon=True).start()

    def put(self, request: FinishedRequest) -> None:
        """Queues a request, or drops it. Does not wait."""
        if self._ending or len(self._queue) >= self._settings.queue_size:
            DROPPED.add(1, "queue")
            return
        self._queue.append(request)
        if len(self._queue) >= _BATCH:
            self._wake.set()

    def stop(self) -> None:
        """Sends what waits; what is not sent within a second is dropped."""
        self._ending = True
        self._wake.set()
        if not self._ended.wait(_FLUSH_SECONDS):
            self._is_given_up = True
            left = len(self._queue) + self._under_way
            self._queue.clear()
            DROPPED.add(left, "stop")
            self._logger.warning("%d traced requests were not sent before the end.", left)

    def _run(self) -> None:
        self._try(self._prepare)
        while not self._ending:
            self._wake.wait(self._settings.interval_seconds)
            self._wake.clear()
            self._empty()
        self._empty()
        self._ended.set()

    def _empty(self) -> None:
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
            self._under_way = len(batch)
            problem = self._try(self._send, batch)
            if self._is_given_up:
                return
            self._under_way = 0
            if problem is None:
                SENT.add(len(batch))
            else:
                DROPPED.add(len(batch), "collector")
            self._tell(problem)

    def _try(self, work: Callable[..., str | None], *arguments: object) -> str | None:
        """Does something in a native thread; returns what is wrong, or None: the thread goes on."""
        try:
            return run_blocking(work, *arguments)
        except Exception as error:  # noqa: BLE001 - told by the caller
            return f"{type(error).__name__}: {error}"

    def _prepare(self) -> None:
        """Loads half a second's imports at the first request that is traced: the end waits for none."""
        self._load()

    def _load(self) -> Exporter:
        if self._exporter is None:
            from svc_traces_otlp.spans import Exporter

            self._exporter = Exporter(self._settings)
        return self._exporter

    def _send(self, batch: list[FinishedRequest]) -> str | None:
        """Sends a batch; returns what is wrong, or None."""
        return self._load().send(batch)

    def _tell(self, problem: str | None) -> None:
        """Writes to the log when it begins to fail, and when it no longer does."""
        if problem is not None and not self._fails:
            self._logger.warning("Traces are dropped: %s", problem)
        elif problem is None and self._fails:
            self._logger.info("Traces are sent again.")
        self._fails = problem is not None
