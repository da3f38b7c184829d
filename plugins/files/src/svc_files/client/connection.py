"""HTTP/1.1 connections to a server: kept alive, one for each thread, with the errors of svc.

Requests flow out, responses flow back; a response that reports an error is raised as the class of
``svc.errors`` that the server raised.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from svc import errors
from svc.paths import Path

__all__ = ["Connections", "ServerAddress", "file_url", "is_server_url", "json_of"]

Body = bytes | Callable[[], Iterable[bytes]] | None
"""A request's body: bytes, or a function that starts it anew each time it has to be sent."""

_PIECE = 1024 * 1024
_ERROR_BODY_LIMIT = 1024 * 1024
_LOST = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, http.client.BadStatusLine)
_ATTEMPTS = 6
_LONGEST_PAUSE_S = 30.0

_ERRORS: dict[str, type[errors.SvcError]] = {
    "NOT_FOUND": errors.NotFound,
    "ALREADY_EXISTS": errors.AlreadyExists,
    "CONFLICT": errors.Conflict,
    "INVALID_INPUT": errors.InvalidInput,
    "INVALID_PATH": errors.InvalidPath,
    "AUTH_REQUIRED": errors.AuthRequired,
    "FORBIDDEN": errors.Forbidden,
    "RATE_LIMITED": errors.RateLimited,
    "PAYLOAD_TOO_LARGE": errors.PayloadTooLarge,
    "METHOD_NOT_ALLOWED": errors.MethodNotAllowed,
    "PRECONDITION_FAILED": errors.PreconditionFailed,
    "RANGE_NOT_SATISFIABLE": errors.RangeNotSatisfiable,
    "UNSUPPORTED_MEDIA_TYPE": errors.UnsupportedMediaType,
    "SERVICE_UNAVAILABLE": errors.ServiceUnavailable,
    "INSUFFICIENT_STORAGE": errors.InsufficientStorage,
}

_BY_STATUS: dict[int, type[errors.SvcError]] = {
    401: errors.AuthRequired,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    412: errors.PreconditionFailed,
    413: errors.PayloadTooLarge,
    416: errors.RangeNotSatisfiable,
    429: errors.RateLimited,
    502: errors.ServiceUnavailable,
    503: errors.ServiceUnavailable,
    504: errors.ServiceUnavailable,
    507: errors.InsufficientStorage,
}


def is_server_url(text: str) -> bool:
    """Whether a ``--database`` value names a server rather than a file."""
    return text.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is and how to speak to it.

    Attributes:
        secure: TLS or not.
        host: name or address, without brackets.
        port: TCP port.
        prefix: path in front of every route, without a slash at its end.
        token: bearer token, never shown.
        ca_file: PEM file of the authorities to trust instead of the system's.
    """

    secure: bool
    host: str
    port: int
    prefix: str = ""
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None

    @classmethod
    def parse(cls, url: str, token: str | None = None, ca_file: str | None = None) -> ServerAddress:
        """Reads ``http[s]://host[:port][/prefix]``.

        Raises:
            UsageError: it is not such a URL, or the token cannot stand in a header.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise errors.UsageError(f"'{url}' is not a URL: {error}.") from None
        if not parts.hostname or parts.scheme not in ("http", "https"):
            raise errors.UsageError("A server's URL has the form http://host:port or https://host:port.")
        if parts.username is not None or parts.password is not None:
            raise errors.UsageError("A server's URL may not hold a user or a password; use --token.")
        if parts.query or parts.fragment:
            raise errors.UsageError("A server's URL may not hold a query or a fragment.")
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
            raise errors.UsageError("The token holds characters that a token cannot have.")
        secure = parts.scheme == "https"
        default = 443 if secure else 80
        return cls(secure, parts.hostname, port or default, parts.path.rstrip("/"), token or None, ca_file)

    @property
    def url(self) -> str:
        """The URL as a message may show it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"

    def tls_context(self) -> ssl.SSLContext | None:
        """Makes the TLS settings: certificates and host names are always verified.

        Raises:
            UsageError: the file of authorities cannot be read.
        """
        if not self.secure:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise errors.UsageError(f"--tls-ca {self.ca_file} cannot be used: {error}.") from None


def file_url(route: str, path: Path) -> str:
    """The URL path of a route and a database path, each segment percent-encoded."""
    return route + "/".join([quote(segment, safe="~!$'()*,;:@") for segment in path])


class Connections:
    """Connections to one server: each thread has its own, kept alive between its requests.

    Args:
        address: the server.
        timeout: seconds that a connect, a send or a receive may take.
    """

    def __init__(self, address: ServerAddress, timeout: float = 120.0) -> None:
        self.address = address
        self._timeout = timeout
        self._context = address.tls_context()
        self._mine = threading.local()
        self._all: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def request(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body = None,
        repeatable: bool = True,
    ) -> http.client.HTTPResponse:
        """Sends a request and returns the response once its head has arrived; blocks.

        The response must be read to its end before this thread sends the next request.

        Args:
            method: ``GET`` and so on.
            url: encoded path below the address's prefix.
            query: query parameters.
            headers: header fields.
            body: what to send; a function is called again when the body has to be sent again.
            repeatable: whether sending the request twice does what sending it once does: then a
                lost kept-alive connection and a busy server (429, 503) are tried again.

        Raises:
            SvcError: the server answered with an error, or cannot be reached.
        """
        target = self.address.prefix + url + (f"?{urlencode(query)}" if query else "")
        attempt = 0
        while True:
            attempt += 1
            reused = self._is_connected()
            try:
                response = self._send(method, target, dict(headers or {}), body)
            except _LOST as error:
                self.drop()
                if reused and repeatable and attempt < _ATTEMPTS:
                    continue
                self._unreachable(error)
            except (OSError, http.client.HTTPException) as error:
                self.drop()
                self._unreachable(error)
            except BaseException:
                # The connection stands in the middle of a request: it is of no further use.
                self.drop()
                raise
            if response.status < 400 and response.status not in (301, 302, 307, 308):
                return response
            problem = self._error_of(response, method)
            if repeatable and response.status in (429, 503) and attempt < _ATTEMPTS:
                time.sleep(_pause(problem, response, attempt))
                continue
            raise problem

    def read(self, response: http.client.HTTPResponse, size: int = _PIECE) -> bytes:
        """Returns the next piece of a response; nothing at its end.

        Raises:
            ServiceUnavailable: the connection ended before the body did.
        """
        try:
            piece = response.read(size)
        except (OSError, http.client.HTTPException) as error:
            self.drop()
            self._unreachable(error)
        # A body with a Content-Length ends early without an error of http.client.
        if not piece and response.length:
            self.drop()
            self._unreachable(http.client.IncompleteRead(b"", response.length))
        return piece

    def drop(self) -> None:
        """Closes this thread's connection: a response that is not read to its end needs that."""
        connection = getattr(self._mine, "connection", None)
        if connection is not None:
            self._mine.connection = None
            connection.close()
            with self._lock:
                self._all.remove(connection)

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            connections, self._all = self._all, []
        for connection in connections:
            connection.close()
        self._mine = threading.local()

    def _is_connected(self) -> bool:
        connection = getattr(self._mine, "connection", None)
        return connection is not None and connection.sock is not None

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            address = self.address
            if self._context is not None:
                connection = http.client.HTTPSConnection(
                    address.host, address.port, timeout=self._timeout, context=self._context, blocksize=_PIECE
                )
            else:
                connection = http.client.HTTPConnection(
                    address.host, address.port, timeout=self._timeout, blocksize=_PIECE
                )
            self._mine.connection = connection
            with self._lock:
                self._all.append(connection)
        return connection

    def _send(
        self, method: str, target: str, headers: dict[str, str], body: Body
    ) -> http.client.HTTPResponse:
        connection = self._connection()
        headers.setdefault("Accept", "*/*")
        headers["User-Agent"] = "svc"
        if self.address.token:
            headers["Authorization"] = f"Bearer {self.address.token}"
        content = body() if callable(body) else body
        try:
            connection.request(
                method, target, content, headers, encode_chunked="Transfer-Encoding" in headers
            )
        except (BrokenPipeError, ConnectionResetError):
            # A server may refuse a body before it has read it all, and its answer says why.
            if not callable(body):
                raise
            return _answer_to_half_a_request(connection)
        return connection.getresponse()

    def _error_of(self, response: http.client.HTTPResponse, method: str) -> errors.SvcError:
        try:
            content = b"" if method == "HEAD" else response.read(_ERROR_BODY_LIMIT)
        except (OSError, http.client.HTTPException):
            content = b""
        if response.will_close or not response.isclosed():
            self.drop()
        kind = _BY_STATUS.get(
            response.status, errors.InternalError if response.status >= 500 else errors.InvalidInput
        )
        try:
            body = msgspec.json.decode(content)
        except msgspec.DecodeError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("error"), str):
            return kind(f"{self.address.url} answered {response.status} {response.reason}.")
        # A batch answers 409 whatever refuses one of its operations, and says the code in "reason".
        kind = _ERRORS.get(str(body.get("reason")), _ERRORS.get(str(body.get("code")), kind))
        details = {
            key: value
            for key, value in body.items()
            if isinstance(key, str) and key not in ("error", "code", "message")
        }
        return kind(body["error"], **details)

    def _unreachable(self, error: Exception) -> NoReturn:
        url = self.address.url
        if isinstance(error, ssl.SSLCertVerificationError):
            raise errors.ServiceUnavailable(
                f"The certificate of {url} cannot be trusted ({error.verify_message}); "
                "--tls-ca names the authority that signed it."
            ) from error
        if isinstance(error, TimeoutError):
            raise errors.ServiceUnavailable(
                f"{url} did not answer within {self._timeout:g} seconds."
            ) from error
        if isinstance(error, OSError) and error.strerror:
            raise errors.ServiceUnavailable(f"{url} cannot be reached: {error.strerror.lower()}.") from error
        raise errors.ServiceUnavailable(f"The connection to {url} ended before the answer did.") from error


def json_of(connections: Connections, response: http.client.HTTPResponse) -> Any:
    """Returns a response's JSON document.

    Raises:
        ServiceUnavailable: the connection ended early, or the answer is not JSON: no svc server.
    """
    pieces = []
    while piece := connections.read(response):
        pieces.append(piece)
    try:
        return msgspec.json.decode(b"".join(pieces))
    except msgspec.DecodeError:
        raise errors.ServiceUnavailable(
            f"{connections.address.url} does not answer as an svc server does."
        ) from None


def _answer_to_half_a_request(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    response = connection.getresponse()
    response.will_close = True
    return response


def _pause(problem: errors.SvcError, response: http.client.HTTPResponse, attempt: int) -> float:
    """Seconds to wait before a busy server is asked again: what it says, else doubling from 0.2."""
    asked = problem.details.get("retry_after") or response.headers.get("Retry-After") or ""
    try:
        return min(_LONGEST_PAUSE_S, max(0.05, float(asked)))
    except (TypeError, ValueError):
        return min(_LONGEST_PAUSE_S, 0.1 * float(2**attempt))
