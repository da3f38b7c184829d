"""The application for a gunicorn of one's own: what a process must do after its fork waits until then."""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from svc.errors import UsageError
from svc.executor import use_executor
from svc.pipeline import Application, Lifetime
from svc_server.assembly import assemble, make_application, opener_of
from svc_server.background.supervision import Supervisor
from svc_server.companion import Companion
from svc_server.diagnosis import Surroundings
from svc_server.executors import executor_of_process
from svc_server.import_locks import use_native_import_locks
from svc_server.logs import configure_logs
from svc_server.options import OPTIONS, ServerSettings, resolve_settings
from svc_server.scheduling import prefer_quick_turns

__all__ = ["DeferredApplication", "defer_application", "open_in_background"]


class DeferredApplication:
    """A WSGI callable that makes its application in the process that calls it.

    The first request of a process begins to open the database, in a thread (a greenlet under gevent);
    requests wait for a moment, and are then answered 503 until it is open.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._process: int | None = None
        self._application: Application | None = None
        self._lock: threading.Lock | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers one request (PEP 3333)."""
        application = self._application
        if application is None or self._process != os.getpid():
            application = self._make()
        return application(environ, start_response)

    def drop_caches(self) -> None:
        """See ``Application.drop_caches``."""
        if self._application is not None and self._process == os.getpid():
            self._application.drop_caches()

    def _make(self) -> Application:
        # A lock made before gevent patched this process would be of the wrong kind.
        if self._process != os.getpid():
            self._process, self._lock, self._application = os.getpid(), threading.Lock(), None
        assert self._lock is not None
        with self._lock:
            if self._application is None:
                use_native_import_locks()
                configure_logs(self._settings["log_format"])
                lifetime = Lifetime()
                lifetime.follow_signals()
                application = make_application(self._settings, lifetime)
                supervisor = Supervisor(self._settings, only_if_needed=True)
                open_in_background(application, self._settings, supervisor=supervisor)
                self._application = application
            return self._application


def defer_application(given: Mapping[str, Any]) -> DeferredApplication:
    """Returns the application for what ``create_app`` was given; errors as those of ``create_app``."""
    not_ours = {option.key for option in OPTIONS if not option.application}
    for key in given:
        if key in not_ours:
            raise UsageError(f"create_app() takes no option {key!r}.", field=key)
    settings = resolve_settings(given)
    assemble(settings)
    return DeferredApplication(settings)


def open_in_background(
    application: Application,
    settings: ServerSettings,
    on_open: Callable[[], None] | None = None,
    on_failure: Callable[[Exception], None] | None = None,
    supervisor: Supervisor | None = None,
) -> threading.Thread:
    """Begins to open the database of an application, and closes it when the process ends."""
    service = application.service
    process = os.getpid()
    executor = executor_of_process()
    use_executor(executor)
    prefer_quick_turns()
    companions: list[Companion] = []
    allowed = service.plugins.allowed
    surroundings = Surroundings(allowed, expected=settings["background"], certificate=settings["tls_cert"])
    service.watch = surroundings.findings

    def close() -> None:
        if os.getpid() == process:
            for companion in companions:
                companion.close()
            service.close()

    def run() -> None:
        try:
            service.open(opener_of(settings, service.plugins, service.selected, executor))
        except Exception as error:  # noqa: BLE001 - the service keeps it and answers 503
            if on_failure is not None:
                on_failure(error)
            return
        live = service.live
        if live is not None:
            if supervisor is not None:
                supervisor.lock_file = live.database.place.lock_file
            companion = Companion(
                application,
                live.database.state_directory,
                supervisor,
                surroundings,
                keeps_background=settings["background"],
            )
            companions.append(companion)
            companion.start()
        # Programs and plugins stay for good: a collection need not go through them while requests wait.
        gc.collect()
        gc.freeze()
        if on_open is not None:
            on_open()

    atexit.register(close)
    thread = threading.Thread(target=run, name="svc-open", daemon=True)
    thread.start()
    return thread
