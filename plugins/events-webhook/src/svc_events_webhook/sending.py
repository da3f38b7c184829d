"""Sends requests to one webhook, over a connection that is kept; nothing that it answers costs much."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.util.ssl_match_hostname import CertificateError

from svc_events_webhook.addresses import Target, parse_target, resolve
from svc_events_webhook.configuration import WebhookConfiguration

__all__ = ["Answer", "Sender"]

_SHOWN = 1_024
"""Bytes of an answer's body that are read to be shown."""
_DRAINED = 65_536
"""A longer rest is not read: the connection ends instead."""
_MOST_INTERIM = 8
_LOOK_S = 0.05
_QUIET_S = 5.0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request.

    Attributes:
        status: HTTP status; None: there was no answer.
        error: why it was not taken; None: it was.
        retry_after: seconds that the receiver asks to be left alone.
        body: the beginning of the answer's body.
    """

    status: int | None = None
    error: str | None = None
    retry_after: float | None = None
    body: bytes = b""


class _Response(http.client.HTTPResponse):
    """An answer whose head has an end: the library reads interim answers (RFC 9110, 15.2) for ever."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self._interim = 0

    def _read_status(self) -> Any:
        self._interim += 1
        if self._interim > _MOST_INTERIM:
            raise http.client.HTTPException("too many interim answers")
        return super()._read_status()  # type: ignore[misc]  # of the library, undocumented


class Sender:
    """Sends requests to a URL. For one thread at a time.

    Args:
        url: where to.
        settings: where webhooks may go to, and how long an answer may take.
    """

    def __init__(self, url: str, settings: WebhookConfiguration) -> None:
        self._url = url
        self._settings = settings
        self._connection: HTTPConnection | None = None
        self._address = ""

    def close(self) -> None:
        """Ends the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def send(self, body: bytes, fields: Mapping[str, str]) -> Answer:
        """Sends a POST and returns what became of it; blocks, no longer than the settings say."""
        deadline = time.monotonic() + self._settings.timeout_seconds
        try:
            target = parse_target(self._url, self._settings)
            address = resolve(target, self._settings)
            if address != self._address:
                self.close()
                self._address = address
            is_kept = self._connection is not None
            try:
                return self._exchange(target, body, fields, deadline)
            except (http.client.RemoteDisconnected, ConnectionError):
                # The receiver may have ended the connection while nothing was sent.
                self.close()
                if not is_kept:
                    raise
                return self._exchange(target, body, fields, deadline)
        except Exception as error:  # noqa: BLE001 - whatever a receiver does is a failure of the receiver
            self.close()
            late = time.monotonic() >= deadline
            seconds = self._settings.timeout_seconds
            return Answer(error=f"no answer within {seconds:g} seconds" if late else _words(error))

    def _exchange(self, target: Target, body: bytes, fields: Mapping[str, str], deadline: float) -> Answer:
        connection = self._connection
        remaining = max(0.001, deadline - time.monotonic())
        if connection is None:
            connection = self._connection = self._open(target, remaining)
            connection.response_class = _Response
        connection.timeout = remaining
        # A receiver that sends a byte now and then outlasts every timeout of a socket.
        with _deadlines.held(connection, deadline):
            if connection.sock is None:
                connection.connect()
            else:
                connection.sock.settimeout(remaining)
            headers = {"Host": target.authority, "Accept": "*/*", **fields}
            connection.request(
                *("POST", target.path, body, headers), preload_content=False, decode_content=False
            )
            response = connection.getresponse()
            shown = b""
            is_whole = False
            with contextlib.suppress(HTTPError, OSError, http.client.HTTPException):
                # The head has said what counts; a body that is torn or late changes nothing.
                shown = response.read(_SHOWN)
                length = response.headers.get("Content-Length", "")
                rest = int(length) - len(shown) if length.isdecimal() and len(length) < 10 else 0
                is_whole = len(shown) < _SHOWN or 0 < rest == len(response.read(min(rest, _DRAINED)))
            if not is_whole or response.headers.get("Connection", "").lower() == "close":
                self.close()
            return _answer(response.status, response.headers, shown)

    def _open(self, target: Target, seconds: float) -> HTTPConnection:
        if target.scheme == "http":
            return HTTPConnection(self._address, target.port, timeout=seconds)
        context = ssl.create_default_context()
        if self._settings.ca_file is not None:
            context.load_verify_locations(self._settings.ca_file)
        return HTTPSConnection(
            self._address,
            target.port,
            timeout=seconds,
            ssl_context=context,
            server_hostname=target.host,
            assert_hostname=target.host,
        )


class _Deadlines:
    """Ends connections whose time is over. One thread looks after all of them, while there are some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, tuple[float, Any]] = {}
        self._is_running = False

    @contextlib.contextmanager
    def held(self, connection: Any, deadline: float) -> Iterator[None]:
        """Ends a connection if the context lasts longer than until ``deadline``, by ``time.monotonic``."""
        key = id(connection)
        with self._lock:
            self._held[key] = deadline, connection
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="svc-webhook-deadlines", daemon=True).start()
        try:
            yield
        finally:
            del self._held[key]

    def _run(self) -> None:
        quiet_since = time.monotonic()
        while True:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            for deadline, connection in list(self._held.values()):
                quiet_since = now
                if deadline <= now:
                    with contextlib.suppress(OSError, AttributeError):
                        connection.sock.shutdown(2)
            with self._lock:
                if not self._held and now - quiet_since > _QUIET_S:
                    self._is_running = False
                    return


_deadlines = _Deadlines()


def _answer(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    if 200 <= status < 300:
        return Answer(status=status, body=body)
    error = f"the receiver answered {status}"
    if 300 <= status < 400:
        error += ": redirects are not followed"
    return Answer(status=status, error=error, retry_after=_retry_after(headers.get("Retry-After")), body=body)


def _retry_after(text: str | None) -> float | None:
    """Seconds, or a date (RFC 9110, 10.2.3)."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _words(error: Exception) -> str:
    """Why there was no answer, without what may be secret in it."""
    if isinstance(error, PermissionError) and error.errno is None:
        return str(error)
    if isinstance(error, ssl.SSLError | CertificateError):
        return "the certificate or the handshake failed"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    cause = error.__cause__
    if isinstance(error, HTTPError) and isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return f"no HTTP answer ({type(error).__name__})"
