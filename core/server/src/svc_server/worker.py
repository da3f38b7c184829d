"""The worker class of ``svc start``: gunicorn's gevent worker, with honest endings.

It answers what can't be parsed in the one form of errors, asks for a body (``100 Continue``) only when
somebody reads it, closes connections that can't be reused and says so, and on a stop ends idle connections
at once, so that only requests at work are waited for.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
from types import FrameType, TracebackType
from typing import Any

import gevent
from gunicorn import util  # type: ignore[import-untyped]
from gunicorn.http import errors, message, parser  # type: ignore[import-untyped]
from gunicorn.workers import ggevent  # type: ignore[import-untyped]

from svc.pipeline.lifetime import Lifetime

__all__ = ["GeventWorker"]

REQUEST_LINE_LIMIT = 16384
"""A path of 4,096 bytes may take 12,288 when it is percent-encoded; gunicorn stops at 8,190."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_IDLE_SWEEP_SECONDS = 0.1


class ContinueOnRead:
    """The body of one request: tells the client to send it when it is first read."""

    def __init__(self, body: Any, request: Any, client: socket.socket) -> None:
        self._body = body
        self._request = request
        self._client = client
        self.awaits_continue: bool = request._expected_100_continue
        self._closing = False

    @property
    def failed(self) -> bool:
        """Whether the connection can't carry another request; gunicorn asks before it reads the next."""
        return bool(self._body.failed) or self._closing

    def close_connection(self) -> None:
        """Ends the connection after this request, and lets the answer say so."""
        self._closing = True
        self._request.force_close()

    def read(self, size: int | None = None) -> bytes:
        """Returns up to ``size`` bytes, all that is left when it is None."""
        if self.awaits_continue:
            self.awaits_continue = False
            self._client.sendall(_CONTINUE)
        piece: bytes = self._body.read(size)
        return piece


class Request(message.Request):  # type: ignore[misc]
    """gunicorn's request, with room for our longest paths."""

    def read_line(self, unreader: Any, buf: Any, limit: int = 0) -> Any:
        """Reads the request line; the limit is ours."""
        return super().read_line(unreader, buf, max(limit, REQUEST_LINE_LIMIT))


class _IdleTimeout:
    """Waiting for the next request of a connection: bounded in time, and over when the server stops."""

    def __init__(self, seconds: float, idle: set[gevent.Greenlet]) -> None:
        self._timeout = gevent.Timeout(seconds, False)
        self._idle = idle
        self._greenlet = gevent.getcurrent()

    def __enter__(self) -> None:
        self._idle.add(self._greenlet)
        self._timeout.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._idle.discard(self._greenlet)
        self._timeout.close()
        return error is self._timeout


class GeventWorker(ggevent.GeventWorker):  # type: ignore[misc]
    """The worker."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._idle: set[gevent.Greenlet] = set()

    def init_process(self) -> None:
        """Runs the worker; returns when it ends."""
        parser.RequestParser.mesg_class = Request
        super().init_process()

    def init_signals(self) -> None:
        """Leaves Ctrl-C, which a terminal sends to every process, to the master alone."""
        super().init_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # The master blocked these until the handlers above are in place.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGQUIT))

    def timeout_ctx(self) -> _IdleTimeout:
        """The bound on the wait for a request."""
        return _IdleTimeout(self.cfg.keepalive, self._idle)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM: streams end, idle connections are closed, requests at work go on."""
        super().handle_exit(sig, frame)
        lifetime: Lifetime | None = getattr(getattr(self, "wsgi", None), "lifetime", None)
        if lifetime is not None:
            lifetime.stop()
        gevent.spawn(self._close_idle)

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> None:
        """Serves one request."""
        req.body = ContinueOnRead(req.body, req, sock)
        # We ask for the body ourselves, when it is read.
        req._expected_100_continue = False
        super().handle_request(listener_name, req, sock, addr)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answers what never reached the application, and ends the connection."""
        if isinstance(exc, gevent.GreenletExit):
            return
        if isinstance(exc, ssl.SSLError):
            self.log.debug("TLS failed with %s: %s", addr, exc)
            return
        status, phrase, code, text = _explain(exc)
        if status == 500:
            self.log.error("The worker failed to serve a request.", exc_info=exc)
        else:
            self.log.info("Refused a request of %s: %s", addr[0] if addr else "?", text)
        request_id = os.urandom(16).hex()
        body = json.dumps({"error": text, "code": code}).encode("ascii") + b"\n"
        head = (
            f"HTTP/1.1 {status} {phrase}\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nX-Request-Id: {request_id}\r\n\r\n"
        )
        try:
            client.sendall(head.encode("ascii") + body)
            util.close_graceful(client)
        except OSError:
            self.log.debug("The client had gone.")

    def _close_idle(self) -> None:
        while True:
            for greenlet in list(self._idle):
                greenlet.kill(block=False)
            gevent.sleep(_IDLE_SWEEP_SECONDS)


_INVALID = (400, "Bad Request", "INVALID_INPUT")


def _explain(error: BaseException) -> tuple[int, str, str, str]:
    """Status, phrase, code and sentence for what gunicorn refused. Nothing of the request is repeated."""
    known: tuple[tuple[type[BaseException], tuple[int, str, str], str], ...] = (
        (errors.LimitRequestLine, (414, "URI Too Long", "INVALID_INPUT"), "The request line is too long."),
        (
            errors.LimitRequestHeaders,
            (431, "Request Header Fields Too Large", "INVALID_INPUT"),
            "The header fields are too many or too long.",
        ),
        (
            errors.ExpectationFailed,
            (417, "Expectation Failed", "INVALID_INPUT"),
            "Expect knows only 100-continue.",
        ),
        (
            errors.UnsupportedTransferCoding,
            (501, "Not Implemented", "INVALID_INPUT"),
            "The only transfer coding is chunked.",
        ),
        (errors.InvalidRequestMethod, _INVALID, "The method is not valid."),
        (errors.InvalidHTTPVersion, _INVALID, "The HTTP version is not valid."),
        (errors.InvalidRequestLine, _INVALID, "The request line is not valid."),
        (errors.ObsoleteFolding, _INVALID, "Header fields may not be folded."),
        (errors.InvalidHeaderName, _INVALID, "The name of a header field is not valid."),
        (errors.InvalidHeader, _INVALID, "A header field is not valid."),
        (errors.InvalidChunkSize, _INVALID, "The size of a chunk is not valid."),
        (errors.InvalidChunkExtension, _INVALID, "The extension of a chunk is not valid."),
        (errors.ChunkMissingTerminator, _INVALID, "A chunk is not terminated."),
        (errors.ForbiddenProxyRequest, (403, "Forbidden", "FORBIDDEN"), "The proxy is not allowed."),
    )
    for kind, (status, phrase, code), text in known:
        if isinstance(error, kind):
            return status, phrase, code, text
    if isinstance(error, errors.ParseException):
        return (*_INVALID, "The request is not valid.")
    return 500, "Internal Server Error", "INTERNAL_ERROR", "The server failed to handle the request."
