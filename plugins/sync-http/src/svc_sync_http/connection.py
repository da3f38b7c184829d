"""A kept connection to one node, with bounds on what it may answer."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult

import msgspec
from svc_sync.api import MAXIMUM_ANSWER, Connection
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from svc.errors import (
    AuthRequired,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    ServiceUnavailable,
    SvcError,
)
from svc_sync_http.configuration import SyncHttpConfiguration

__all__ = ["HttpConnection"]

_ERRORS: dict[int, type[SvcError]] = {
    400: InvalidInput,
    401: AuthRequired,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
}
_PIECE = 1 << 20
_ANSWER_SECONDS = 120.0
"""For the body of an answer, however slowly it comes."""


class _Problem(msgspec.Struct):
    """What an svc server says of an error."""

    error: str


class _Remembering:
    """A pool that knows its latest connection, also while that is in use."""

    latest: Any = None

    def _new_conn(self) -> Any:
        self.latest = super()._new_conn()  # type: ignore[misc] # of the pool beside
        return self.latest


class _Pool(_Remembering, HTTPConnectionPool):
    pass


class _SecurePool(_Remembering, HTTPSConnectionPool):
    pass


class HttpConnection(Connection):
    """A connection to the server of one node."""

    def __init__(self, url: SplitResult, settings: SyncHttpConfiguration) -> None:
        timeout = Timeout(connect=min(10.0, settings.timeout_seconds), read=settings.timeout_seconds)
        self._prefix = url.path.rstrip("/")
        self._pool: _Pool | _SecurePool
        host, port = url.hostname or "", url.port
        if url.scheme == "https":
            trust = ssl.create_default_context(cafile=None)
            if settings.ca_file is not None:
                trust.load_verify_locations(cafile=settings.ca_file)
            if settings.cluster_tls_cert is not None:
                trust.load_cert_chain(settings.cluster_tls_cert, settings.cluster_tls_key)
            self._pool = _SecurePool(host, port, maxsize=1, timeout=timeout, ssl_context=trust)
        else:
            self._pool = _Pool(host, port, maxsize=1, timeout=timeout)

    def close(self) -> None:
        """Ends the connection."""
        self._pool.close()

    def abort(self) -> None:
        """Lets a ``post`` fail that goes on in another thread; see ``Connection``."""
        used = getattr(self._pool.latest, "sock", None)
        if used is not None:
            with suppress(OSError):
                # Of TLS too: its own method would say goodbye, and wait.
                socket.socket.shutdown(used, socket.SHUT_RDWR)

    def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
        """Sends a request and returns what is answered; see ``Connection``."""
        fields = {"Content-Type": media_type, "Accept": media_type, "User-Agent": "svc-sync"}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        try:
            answer = self._pool.request(
                "POST",
                self._prefix + path,
                body=payload,
                headers=fields,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                body = _read(answer)
            finally:
                answer.close()
        except (HTTPError, OSError) as error:
            raise ServiceUnavailable(f"The node does not answer: {_words(error)}") from error
        if answer.status // 100 == 2:
            return body
        raise _error_of(answer.status, body)


def _read(answer: BaseHTTPResponse) -> bytes:
    pieces: list[bytes] = []
    size = 0
    ends = time.monotonic() + _ANSWER_SECONDS
    while piece := answer.read1(_PIECE):  # What has come, so that the clock is looked at.
        size += len(piece)
        if size > MAXIMUM_ANSWER or time.monotonic() > ends:
            raise ServiceUnavailable("The node answers without end.")
        pieces.append(piece)
    return b"".join(pieces)


def _error_of(status: int, body: bytes) -> SvcError:
    try:
        text = msgspec.json.decode(body[:65_536], type=_Problem).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = f"HTTP status {status}"
    return _ERRORS.get(status, ServiceUnavailable)(f"The node says: {text[:500]}")


def _words(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
