"""The worker class: accepts connections, reports to gunicorn's master, and stops gracefully."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from email.utils import formatdate
from types import FrameType
from typing import Any, ClassVar

import gevent
from gevent.event import Event
from gevent.pool import Pool
from gunicorn import sock as gunicorn_sock  # type: ignore[import-untyped]
from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]
from gunicorn.http.wsgi import base_environ  # type: ignore[import-untyped]
from gunicorn.workers import ggevent  # type: ignore[import-untyped]

from svc_worker.balance import ConnectionCounts
from svc_worker.bodies import BufferPool
from svc_worker.connections import Connection
from svc_worker.files import FileWrapper
from svc_worker.hooks import Hooks
from svc_worker.listening import Listener, connections_that_fit
from svc_worker.memory import make_ahead, shrink
from svc_worker.patching import entry_points_read_once, keep_closing, read_entry_points
from svc_worker.settings import HttpSettings, unsupported_settings
from svc_worker.streams import UNSENT_BYTES, PlainStream, Stream, StreamExpired
from svc_worker.sweep import SWEEP_SECONDS, Sweep
from svc_worker.tls import TlsStream

__all__ = ["Worker"]

STOP_POLL_SECONDS = 0.05


class Worker(ggevent.GeventWorker):  # type: ignore[misc]
    """The worker class. Choose it with ``-k svc_worker.Worker``.

    Attributes:
        date: the line of the ``Date`` field.
        is_serving: False from the moment when the worker begins to stop.
    """

    settings: HttpSettings
    hooks: Hooks
    _counts: ClassVar[ConnectionCounts | None] = None

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        # In the master, before it forks.
        super().__init__(*arguments, **keywords)
        read_entry_points()
        if Worker._counts is None:
            Worker._counts = ConnectionCounts()
        self._place = Worker._counts.reserve()
        self.application: Any = None
        self.buffers = BufferPool()
        self.date = ""
        self.is_serving = True
        self.connections: set[Connection] = set()
        self._streams: set[Stream] = set()
        self._context: ssl.SSLContext | None = None
        self._wake: Any = None
        self._pool: Any = None

    def patch(self) -> None:
        """Lets gevent replace what blocks; called in the worker, before the application is loaded."""
        with entry_points_read_once():
            super().patch()
        keep_closing()

    def init_signals(self) -> None:
        """Leaves Ctrl-C, which a terminal sends to every process, to the master alone."""
        super().init_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run(self) -> None:
        """Serves until the worker is told to stop."""
        self._prepare()
        self._pool = pool = Pool(connections_that_fit(self.worker_connections, self.log))
        servers = [self._listen(listener, pool) for listener in self.sockets]
        sweep = Sweep(self._streams, self.connections, self.settings, lambda: self._drop_caches(pool))
        gevent.spawn_later(SWEEP_SECONDS, make_ahead)
        # In this greenlet: when memory is given back, nothing of a wait of its own is in use then.
        while self.alive:
            self._look_after(sweep)
            self._wake.wait(SWEEP_SECONDS)
        self.is_serving = False
        if self._place is not None:
            self._place.note_closed()
        for server in servers:
            server.close()
        self._finish(pool, sweep)

    def count_request(self) -> None:
        """Counts a request, and ends the worker after its last one."""
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:
            self.log.info("Autorestarting worker after current request.")
            self._stop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM: streams end, idle connections are closed, requests at work go on."""
        super().handle_exit(sig, frame)
        self._stop()

    def handle_abort(self, sig: int, frame: FrameType | None) -> None:
        """SIGABRT: the master has given up on this worker."""
        self.is_serving = False
        super().handle_abort(sig, frame)

    def _stop(self) -> None:
        self.alive = False
        self.is_serving = False
        # For applications with streams that would never end.
        lifetime = getattr(getattr(self, "wsgi", None), "lifetime", None)
        if lifetime is not None:
            lifetime.stop()
        if self._wake is not None:
            self._wake.set()

    def _prepare(self) -> None:
        self.application = self.wsgi
        self._wake = Event()
        unsupported = unsupported_settings(self.cfg)
        try:
            self.settings = HttpSettings.load(self.cfg, os.environ)
        except ValueError as error:
            self.log.error("%s", error)
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from None
        if unsupported:
            self.log.error("svc_worker.Worker has no %s.", ", ".join(unsupported))
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR)
        self.hooks = Hooks(self, self.cfg, self.log)
        self._set_date()
        if self.cfg.is_ssl:
            self._context = gunicorn_sock.ssl_context(self.cfg)
            # gunicorn may offer HTTP/2 here; this class speaks only HTTP/1.1.
            self._context.set_alpn_protocols(["http/1.1"])

    def _listen(self, listener: Any, pool: Any) -> Listener:
        if listener.family in (socket.AF_INET, socket.AF_INET6):
            # Accepted sockets inherit both. Heads and small bodies are one send: waiting gains nothing.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        template = self._template(listener.getsockname())

        def handle(client: Any, address: Any) -> None:
            self._serve(client, address, template)

        server = Listener(listener, handle, pool, self.log, self._place)
        if self.cfg.workers > 1:
            # Otherwise the first worker to wake takes every connection that waits.
            server.max_accept = 1
        server.start()
        return server

    def _template(self, name: Any) -> dict[str, Any]:
        environ: dict[str, Any] = base_environ(self.cfg)
        environ.update(
            {
                "wsgi.multithread": True,
                "wsgi.file_wrapper": FileWrapper,
                "wsgi.url_scheme": "https" if self.cfg.is_ssl else "http",
                "SCRIPT_NAME": "",
            }
        )
        if isinstance(name, tuple):
            environ["SERVER_NAME"], environ["SERVER_PORT"] = name[0], str(name[1])
        else:
            environ["SERVER_NAME"] = "localhost"
            environ["SERVER_PORT"] = "443" if self.cfg.is_ssl else "80"
        return environ

    def _serve(self, client: Any, address: Any, template: dict[str, Any]) -> None:
        environ = template.copy()
        peer = ""
        if isinstance(address, tuple):
            peer = environ["REMOTE_ADDR"] = address[0]
            environ["REMOTE_PORT"] = str(address[1])
        else:
            environ["REMOTE_ADDR"] = ""
        stream = self._open(client)
        if stream is None:
            return
        environ["gunicorn.socket"] = stream.socket
        settings = self.settings
        scheme_fields = settings.scheme_fields if settings.trusts(peer) else ()
        connection = Connection(self, stream, environ, scheme_fields)
        self.connections.add(connection)
        try:
            connection.run()
        finally:
            self.connections.discard(connection)
            self._streams.discard(stream)
            if self._place is not None and self.is_serving:
                self._place.note(len(self._pool) - 1)

    def _open(self, client: Any) -> Stream | None:
        """Returns the stream of a client, its handshake made; None when that failed."""
        settings = self.settings
        if self._context is None:
            plain = PlainStream(client, settings.write_timeout_s)
            self._streams.add(plain)
            return plain
        try:
            stream = TlsStream.accept(
                client, self._context, settings.write_timeout_s, ragged=self.cfg.suppress_ragged_eofs
            )
        except OSError:
            client.close()
            return None
        self._streams.add(stream)
        try:
            stream.handshake(time.monotonic() + settings.header_timeout_s)
        except (OSError, StreamExpired) as error:
            self.log.debug("TLS failed: %s", error)
            self._streams.discard(stream)
            stream.reset()
            return None
        except BaseException:
            self._streams.discard(stream)
            stream.reset()
            raise
        return stream

    def _look_after(self, sweep: Sweep) -> None:
        self.notify()
        self._set_date()
        if self._place is not None and self.is_serving:
            self._place.note_alive(len(self._pool))
        sweep.run()

    def _drop_caches(self, pool: Any) -> None:
        drop_caches = getattr(self.application, "drop_caches", None)
        if drop_caches is not None:
            drop_caches()
        shrink(self._streams, self.connections, pool.greenlets)

    def _set_date(self) -> None:
        self.date = f"Date: {formatdate(usegmt=True)}\r\n"

    def _finish(self, pool: Any, sweep: Sweep) -> None:
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while self._hang_up_idle() or len(pool):
            if time.monotonic() >= deadline:
                break
            self._look_after(sweep)
            gevent.sleep(STOP_POLL_SECONDS)
        if len(pool):
            self.log.warning("%d requests did not end within the graceful timeout.", len(pool))
            for stream in list(self._streams):
                stream.hang_up(both=True)
            pool.kill(timeout=1)

    def _hang_up_idle(self) -> int:
        idle = [connection for connection in self.connections if connection.is_idle]
        for connection in idle:
            # What the client has sent already can still be read, and is served.
            connection.stream.hang_up()
        return len(idle)
