"""``svc start``: gunicorn with our worker, our listening socket, and nothing of the directory it starts in.

The master holds the socket and the children, never the database. It imports what workers and the background
process need, so that they are there as soon as they are forked. Nothing that it imports starts a thread,
opens a file or keeps a function that gevent replaces in a worker. Plugins are imported by its children only.
Errors end with a message and the exit code of their class.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import click
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]
from gunicorn.util import load_class  # type: ignore[import-untyped]

from svc.errors import SvcError, UsageError
from svc.log import scheme_of, shown_location
from svc.pipeline import Lifetime
from svc.plugins import forget_installed
from svc_server.assembly import make_application
from svc_server.background.forked import fork_background
from svc_server.background.supervision import Supervisor
from svc_server.boot_report import BootReport
from svc_server.deferred import open_in_background
from svc_server.gunicorn_log import GunicornLog
from svc_server.import_locks import use_native_import_locks
from svc_server.listening import TLS_CIPHERS, is_loopback, make_tls_context, url_of
from svc_server.logs import configure_logs
from svc_server.options import ServerSettings, default_workers
from svc_server.preflight import Findings, Preflight, PreflightError
from svc_server.probe import wait_until_answered

__all__ = ["serve"]

_log = logging.getLogger("svc.server")

KEEPALIVE_SECONDS = 75
WORKER_CONNECTIONS = 10_000
WORKER_TIMEOUT_SECONDS = 300
STOP_SIGNALS = (signal.SIGTERM, signal.SIGQUIT)
GTHREAD_THREADS = 64
WORKER_CLASSES = {
    "http1": "svc_worker.Worker",
    "gevent": "svc_server.worker.GeventWorker",
    "gthread": "gthread",
}
BOOT_FAILURE = Arbiter.WORKER_BOOT_ERROR


def serve(settings: ServerSettings, resolve: Callable[[], ServerSettings], preflight: Preflight) -> int:
    """Serves until it is stopped; returns the exit code. Blocks.

    ``resolve`` gives the settings anew, for a reload (SIGHUP).
    """
    # Meanwhile: gevent takes as long to import as the check takes.
    load_class(WORKER_CLASSES[settings["worker_class"]])
    found = preflight.wait()
    application = ServerProcess(settings, resolve, found)
    # What is imported stays for good: no process that is forked goes through it, or copies it for that.
    gc.freeze()
    gc.enable()
    master = os.getpid()
    try:
        _Arbiter(application).run()
    except SystemExit as exit_request:
        # Workers end through here too: they are forks of this very call.
        failure = application.report.error() if os.getpid() == master else None
        if failure is not None:
            raise PreflightError(*failure) from None
        return exit_request.code if isinstance(exit_request.code, int) else 1
    return 0


class _Arbiter(Arbiter):  # type: ignore[misc]
    """gunicorn's master. Ctrl-C stops as SIGTERM does; a second one at once."""

    handle_int = Arbiter.handle_term

    def __init__(self, app: ServerProcess) -> None:
        super().__init__(app)
        self._background = Supervisor(app.settings, launch=fork_background, problems=app.problems)

    def manage_workers(self) -> None:
        super().manage_workers()
        self._background.tick()

    def spawn_workers(self) -> None:
        """Makes the workers that are missing; gunicorn would pause after each."""
        for _ in range(self.num_workers - len(self.WORKERS)):
            self.spawn_worker()

    def reload(self) -> None:
        """Takes new settings at SIGHUP. Where they are refused nothing changes, and no worker is replaced."""
        if self.app.renew():
            super().reload()
            self._background.restart(self.app.settings, self.app.problems)

    def stop(self, graceful: bool = True) -> None:
        self._background.stop()
        super().stop(graceful)
        self._background.wait()

    def spawn_worker(self) -> Any:
        """Makes a worker; a stop that comes before the worker has its handlers waits for them."""
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            return super().spawn_worker()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


class ServerProcess(BaseApplication):  # type: ignore[misc]
    """What gunicorn runs."""

    def __init__(
        self,
        settings: ServerSettings,
        resolve: Callable[[], ServerSettings],
        found: Findings,
    ) -> None:
        self.problems = found.problems
        self.settings = settings
        self.report = BootReport()
        self._resolve = resolve
        self._host = found.host
        assert found.listener is not None
        self._url = url_of(found.listener, tls=settings["tls_cert"] is not None)
        self._address = found.listener.getsockname()
        # From here on gunicorn owns the descriptor.
        self._descriptor = found.listener.detach()
        super().__init__()

    def load_config(self) -> None:
        """Sets gunicorn's settings. Only ours: no file and no variable of gunicorn's is read."""
        settings = self.settings
        chosen: dict[str, Any] = {
            "bind": f"fd://{self._descriptor}",
            "workers": settings["workers"] or default_workers(),
            "worker_class": WORKER_CLASSES[settings["worker_class"]],
            "threads": GTHREAD_THREADS if settings["worker_class"] == "gthread" else 1,
            "worker_connections": WORKER_CONNECTIONS,
            "keepalive": KEEPALIVE_SECONDS,
            "timeout": WORKER_TIMEOUT_SECONDS,
            "graceful_timeout": settings["graceful_timeout"],
            "logger_class": GunicornLog,
            "accesslog": None,
            "proc_name": "svc",
            "http_parser": "python",
            "control_socket_disable": True,
            # What gunicorn has no setting for, our worker class takes from here.
            "raw_env": [f"SVC_MIN_RATE={settings['min_rate']}"],
            "certfile": settings["tls_cert"],
            "keyfile": settings["tls_key"],
            "ciphers": TLS_CIPHERS,
            # The same proxies say whether the client came by TLS; gunicorn's own default is loopback.
            **_proxies(settings["trusted_proxies"]),
            "post_worker_init": _take_signals,
            "worker_exit": _close_service,
        }
        for name, value in chosen.items():
            self.cfg.set(name, value)
        self.cfg.svc_log_format = settings["log_format"]

    def renew(self) -> bool:
        """Reads the settings anew and checks them as a start does; False, and why, where they can't be used.

        Blocks for as long as a boot of the plugins takes; workers go on meanwhile.
        """
        forget_installed()
        try:
            settings = self._resolve()
            make_tls_context(settings["tls_cert"], settings["tls_key"])
            _refuse_other_database(self.settings, settings)
            found = Preflight(settings, is_reload=True).wait()
            self._refuse_other_address(settings["port"], found.host)
        except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
            reason = error.message if isinstance(error, SvcError) else f"{type(error).__name__}: {error}"
            click.echo(f"svc: not reloaded: {reason}", err=True)
            return False
        self.settings, self.problems = settings, found.problems
        return True

    def _refuse_other_address(self, port: int, host: str) -> None:
        """A server keeps its socket; one that everybody reaches must not let everybody in by a reload."""
        present = self._host, self.settings["port"]
        if (host, port) != present:
            raise UsageError(
                f"The host and port would be {host} {port}, and are {present[0]} {present[1]}: "
                "they change by a restart alone.",
                field="port" if host == self._host else "host",
            )

    def load(self) -> Any:
        """Makes the application, in a worker, after its fork and after gevent has patched it."""
        use_native_import_locks()
        configure_logs(self.settings["log_format"])
        gc.disable()
        try:
            lifetime = Lifetime()
            if self.settings["worker_class"] == "gthread":
                # The other classes do both themselves: leave Ctrl-C to the master, and end long streams.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                lifetime.follow_signals()
            application = make_application(self.settings, lifetime)
        except SvcError as error:
            self.report.fail(error)
            sys.exit(BOOT_FAILURE)
        finally:
            gc.enable()
        open_in_background(application, self.settings, lambda: self._announce(application), self._stop_server)
        return application

    def _announce(self, application: Any) -> None:
        if not self.report.claim_announcement():
            return
        wait_until_answered(self._address, tls=self._url.startswith("https"))
        live = application.service.live
        if live is None:
            return
        self._warn_of_open_listening()
        root = live.database.head().root.hex()
        click.echo(f"svc ready at {self._url} serving {live.database.location} at version {root}")

    def _warn_of_open_listening(self) -> None:
        """Says so where others can reach the server, and nothing that it is told of encrypts."""
        host, port = self._address[:2]
        if self._url.startswith("https") or is_loopback(host) or self.settings["trusted_proxies"]:
            return
        where = "every address of this machine" if host in ("0.0.0.0", "::") else host
        _log.warning(
            "Listening on %s, port %d, without TLS: keys and files can be read on their way. Give --tls-cert "
            "and --tls-key, name a proxy by --trusted-proxies, or listen with --host 127.0.0.1.",
            where,
            port,
        )

    def _stop_server(self, error: Exception) -> None:
        """Ends the whole server: the next worker would fail in the same way, again and again."""
        self.report.fail(error)
        os.kill(os.getppid(), signal.SIGTERM)


def _refuse_other_database(present: ServerSettings, wanted: ServerSettings) -> None:
    before, after = present["database"], wanted["database"]
    if before != after and (scheme_of(before) or scheme_of(after) or not _is_same_path(before, after)):
        raise UsageError(
            f"The database would be {shown_location(after)}, and is {shown_location(before)}: "
            "it changes by a restart alone.",
            field="database",
        )


def _is_same_path(one: str, other: str) -> bool:
    return os.path.abspath(one) == os.path.abspath(other)


def _proxies(trusted: tuple[str, ...]) -> dict[str, str]:
    return {"forwarded_allow_ips": ",".join(trusted)} if trusted else {}


def _take_signals(_worker: Any) -> None:
    """Lets a worker, whose handlers are in place by now, get the signals that the master held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _close_service(_arbiter: Any, worker: Any) -> None:
    """Closes the database: the hook at the end of a worker, which the master calls for lost ones too."""
    service = getattr(getattr(worker, "wsgi", None), "service", None)
    if service is not None:
        service.close()
