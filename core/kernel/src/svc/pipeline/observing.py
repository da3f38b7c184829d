"""Tells observers of requests what was answered. Where no plugin has any, nothing here is called."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from svc.plugins.contracts import FinishedRequest
from svc.redaction import redact_text
from svc.steps import follow_steps, forget_steps

if TYPE_CHECKING:
    from svc.pipeline.service import Service
    from svc.plugins.contracts import RequestObserver

__all__ = ["Observation", "Observers"]

_PAUSE_SECONDS = 60.0

_log = logging.getLogger("svc.service")


class Observers:
    """The observers of all plugins of this process.

    Args:
        service: knows which of them are in use.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._items = tuple(service.plugins.registries.request_observers)
        self._paused: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def begin(self) -> Observation:
        """Begins to observe the request that this greenlet or thread answers from now on."""
        return Observation(self)

    def tell(self, request: FinishedRequest) -> None:
        """Tells those that are in use for the database."""
        live = self._service.live
        if live is None:
            return
        contexts = live.commit_state().contexts
        for item in self._items:
            context = contexts.get(item.plugin_id)
            if context is None or time.monotonic() < self._paused.get(item.name, 0.0):
                continue
            observer: RequestObserver = item.value
            try:
                observer.finished(request, context)
            except Exception as error:
                self._paused[item.name] = time.monotonic() + _PAUSE_SECONDS
                context.logger.error("The observer %s failed.", item.name, exc_info=error)


class Observation:
    """One request that is observed, from its first moment on."""

    __slots__ = ("_began", "_began_ns", "_observers", "_steps")

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self._steps = follow_steps()
        self._began_ns = time.time_ns()
        self._began = time.monotonic()

    def end(
        self,
        environ: dict[str, Any],
        route: str,
        status: int,
        path: str,
        *,
        sent: int,
        received: int,
        is_complete: bool,
    ) -> None:
        """Tells of the request. Raises nothing: its answer is on its way, or there."""
        forget_steps()
        try:
            self._observers.tell(
                FinishedRequest(
                    request_id=environ["svc.request_id"],
                    method=environ["REQUEST_METHOD"],
                    route=route,
                    path=redact_text(path),
                    scheme=environ["wsgi.url_scheme"],
                    protocol=environ.get("SERVER_PROTOCOL", "").partition("/")[2],
                    status=status,
                    is_complete=is_complete,
                    began_ns=self._began_ns,
                    seconds=time.monotonic() - self._began,
                    received=received,
                    sent=sent,
                    trace_parent=environ.get("HTTP_TRACEPARENT"),
                    trace_state=environ.get("HTTP_TRACESTATE"),
                    began=self._began,
                    steps=tuple(self._steps),
                )
            )
        except Exception as error:  # noqa: BLE001 - logged; the answer is the client's all the same
            _log.error("observers were not told of a request", exc_info=error)
