"""Requests to one server: kept-alive connections, retries that are safe, and the errors of svc."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec
import urllib3
import urllib3.exceptions

from svc.confidential import Confidential
from svc.errors import AuthRequired, NotFound, ServiceUnavailable, SvcError
from svc_client.address import Credentials, ServerAddress
from svc_client.credentials import SignIn, StoredTokens
from svc_client.failures import error_of_answer, error_of_connection, foreign_answer
from svc_client.paging import ArrayReader
from svc_client.proxies import proxy_of

__all__ = ["PIECE", "Body", "Response", "Transport"]

PIECE = 1024 * 1024
"""Bytes that are read from a connection at once."""

Body = bytes | Callable[[], Iterable[bytes]] | Iterable[bytes] | None
"""A request's body. Bytes, or a function that starts it anew, can be sent again; an iterable cannot."""

T = TypeVar("T")

_ERROR_BODY_LIMIT = 1024 * 1024
_JSON_LIMIT = 128 * 1024 * 1024
"""Bytes of an answer that is read whole; the largest page of a server is a small part of it."""
_LONGEST_LINE = 64 << 20
_CONNECTIONS = 64
_LONGEST_PAUSE_S = 30.0
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_BUSY = (429, 503)
_REPEATABLE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "PUT"))
_CONDITIONS = frozenset(("if-match", "if-none-match", "if-unmodified-since"))
_RENEW_BEFORE_S = 30.0


class Response:
    """An answer whose head has arrived. Read it to its end, or ``close`` it; a context does that.

    ``headers`` take names in any case.
    """

    __slots__ = ("_bearer", "_raw", "_transport", "headers", "status")

    def __init__(
        self, raw: urllib3.BaseHTTPResponse, transport: Transport, bearer: str | None = None
    ) -> None:
        self._raw = raw
        self._transport = transport
        self._bearer = bearer
        self.status = raw.status
        self.headers: Mapping[str, str] = raw.headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the answer; a connection that stands in the middle of a body is closed."""
        self._raw.close()
        self._raw.release_conn()

    def read(self, size: int = PIECE) -> bytes:
        """Returns the next bytes of the body, at most so many; nothing at its end.

        Raises ServiceUnavailable where the connection ended before the body did.
        """
        try:
            return self._raw.read(size, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise self._transport.unreachable(error) from error

    def pieces(self) -> Iterator[bytes]:
        """Yields the body in pieces of at most 1 MiB, and closes the answer at the end or when left."""
        try:
            while piece := self.read():
                yield piece
        finally:
            self.close()

    def arriving(self) -> Iterator[bytes]:
        """Yields the body as it arrives, without waiting for more: for streams that go on.

        Raises ServiceUnavailable where the connection ended before the body, or nothing came for too long.
        """
        try:
            while True:
                try:
                    piece = self._raw.read1(PIECE, decode_content=False)
                except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                    raise self._transport.unreachable(error) from error
                if not piece:
                    return
                yield piece
        finally:
            self.close()

    def event_data(self) -> Iterator[bytes]:
        """Yields what each message of an event stream says, as it arrives; the server writes it in one line.

        Raises ServiceUnavailable as ``arriving``, and where a line is longer than any.
        """
        rest = b""
        for piece in self.arriving():
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line[5:] for line in lines if line.startswith(b"data:"))
            if len(rest) > _LONGEST_LINE:
                raise self.foreign()

    def content(self) -> bytes:
        """Returns the whole body."""
        return b"".join(self.pieces())

    def json(self, form: type[T]) -> T:
        """Returns the body as a value of a type.

        Raises ServiceUnavailable where it is not such a value, or longer than any: no server of svc answered.
        """
        content = bytearray()
        for piece in self.pieces():
            content += piece
            if len(content) > _JSON_LIMIT:
                raise self.foreign()
        try:
            return msgspec.json.decode(content, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.foreign() from None

    def items(self, head: str, form: type[T]) -> Generator[T, None, dict[str, Any]]:
        """Yields the items of ``{"<head>": [...], <members>}`` while they come; the members are its value.

        Raises ServiceUnavailable where the body is no such document, or ends early.
        """
        with self:
            reader = ArrayReader(self.pieces(), head)
            try:
                for item in reader.items():
                    yield msgspec.convert(item, form)
            except (ValueError, RecursionError):
                raise self.foreign() from None
        return reader.members

    def foreign(self) -> ServiceUnavailable:
        """Returns the error that says that no server of svc answers so."""
        return foreign_answer(self._transport.address.url)

    def document(self, form: Any) -> dict[str, Any]:
        """Returns the body as it is: a JSON object that has the members of a type, and maybe others.

        Raises ServiceUnavailable where it is no such object.
        """
        found = self.json(dict[str, Any])
        try:
            msgspec.convert(found, form)
        except msgspec.ValidationError:
            raise self.foreign() from None
        return found

    def header(self, name: str) -> str:
        """Returns a header field that every server of svc sends; ServiceUnavailable where it is missing."""
        value = self.headers.get(name)
        if value is None:
            raise ServiceUnavailable(
                f"{self._transport.address.url} does not answer as an svc server does: {name} is missing."
            )
        return value

    def number(self, name: str) -> int:
        """Returns a header field that every server of svc sends, and that is a number."""
        try:
            return int(self.header(name))
        except ValueError:
            raise self.foreign() from None


class Transport:
    """Sends requests to one server. Any number of threads may use it at once.

    ``stored`` is a sign-in that was kept, for when there are no credentials. ``timeout`` is the seconds that
    a connect, a send or a receive may take; ``attempts`` how often a request is sent at most.
    """

    def __init__(
        self,
        address: ServerAddress,
        credentials: Credentials,
        *,
        stored: StoredTokens | None = None,
        timeout: float = 120.0,
        attempts: int = 6,
    ) -> None:
        self.address = address
        self._credentials = credentials
        self._stored = stored
        self._timeout = timeout
        self._attempts = max(1, attempts)
        self._pool = _pool(address, timeout)
        self._lock = threading.Lock()
        self._token = credentials.token
        self._token_ends = float("inf")

    def request(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body = None,
        repeatable: bool | None = None,
        anonymous: bool = False,
    ) -> Response:
        """Sends a request and returns the answer once its head has arrived; blocks.

        A server that is too busy (429, 503) is asked again when it says, if the request carries a condition
        or may be repeated; a lost connection is made anew only if it may be repeated.

        ``url`` is an encoded path below the address's prefix. ``repeatable`` says whether to send it twice
        does what sending it once does; by default what HTTP says of the method, but not of ``DELETE``, which
        is 404 the second time. ``anonymous`` sends no credentials.

        Raises the error that the server answered with, or that it cannot be reached.
        """
        target = self.address.prefix + url + (f"?{urlencode(query, doseq=True)}" if query else "")
        fields = dict(headers or {})
        restartable = body is None or isinstance(body, bytes) or callable(body)
        repeat_lost = restartable and (method in _REPEATABLE_METHODS if repeatable is None else repeatable)
        repeat_busy = repeat_lost or (restartable and any(name.lower() in _CONDITIONS for name in fields))
        renewed = False
        attempt = 0
        while True:
            attempt += 1
            may_go_on = attempt < self._attempts
            try:
                response = self._follow(method, target, fields, body, anonymous)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                if repeat_lost and may_go_on and _was_lost(error):
                    time.sleep(_pause(None, attempt - 1))
                    continue
                raise self.unreachable(error) from error
            if response.status < 300 or response.status == 304:
                return response
            problem = self._error_of(response, method)
            if isinstance(problem, AuthRequired) and not renewed and restartable and self._renew(response):
                renewed = True
                continue
            if response.status in _BUSY and repeat_busy and may_go_on:
                time.sleep(_pause(_asked_pause(problem, response), attempt))
                continue
            if isinstance(problem, AuthRequired) and not anonymous and "'svc login" not in problem.message:
                problem.message += f" 'svc login {self.address.url}' signs in."
            raise problem

    def json(
        self,
        method: str,
        url: str,
        form: type[T],
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        value: Any = None,
        repeatable: bool | None = None,
        anonymous: bool = False,
    ) -> T:
        """Sends a request, with a JSON body if there is a value, and returns the answer as a type."""
        options: dict[str, Any] = {"query": query, "repeatable": repeatable, "anonymous": anonymous}
        return self._ask(method, url, value, headers, options).json(form)

    def document(
        self,
        method: str,
        url: str,
        form: Any,
        *,
        query: Mapping[str, str] | None = None,
        value: Any = None,
        repeatable: bool | None = None,
    ) -> dict[str, Any]:
        """As ``json``, but returns the object as the server sent it, once it has the members of the type."""
        options: dict[str, Any] = {"query": query, "repeatable": repeatable}
        return self._ask(method, url, value, None, options).document(form)

    def unreachable(self, error: Exception) -> ServiceUnavailable:
        """Returns the error that says why there was no answer."""
        return error_of_connection(self.address.url, error, self._timeout)

    def close(self) -> None:
        """Closes all connections."""
        self._pool.clear() if isinstance(self._pool, urllib3.PoolManager) else self._pool.close()

    def _ask(
        self,
        method: str,
        url: str,
        value: Any,
        headers: Mapping[str, str] | None,
        options: dict[str, Any],
    ) -> Response:
        fields = dict(headers or {})
        body: bytes | None = None
        if value is not None:
            fields["Content-Type"] = "application/json"
            body = msgspec.json.encode(value)
        return self.request(method, url, headers=fields, body=body, **options)

    def _follow(
        self, method: str, target: str, headers: dict[str, str], body: Body, anonymous: bool
    ) -> Response:
        """Sends a request; a redirect of a read is followed, within the server's own origin only."""
        for _ in range(_MOST_REDIRECTS):
            response = self._send(method, target, headers, body, anonymous)
            if response.status not in _REDIRECTS:
                return response
            response.close()
            try:
                place = urljoin(self.address.origin + target, response.headers.get("Location", ""))
                is_own = self._is_own(place)
            except ValueError:
                raise foreign_answer(self.address.url) from None
            if method not in ("GET", "HEAD") or not is_own:
                shown = place.partition("?")[0]
                raise ServiceUnavailable(
                    f"{self.address.url} sends its callers to {shown}; use the URL of that server."
                )
            parts = urlsplit(place)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
        raise ServiceUnavailable(f"{self.address.url} sends its callers in a circle.")

    def _is_own(self, url: str) -> bool:
        parts = urlsplit(url)
        default = 443 if parts.scheme == "https" else 80
        own = self.address
        return (parts.scheme == "https", parts.hostname, parts.port or default) == (
            own.secure,
            own.host,
            own.port,
        )

    def _send(
        self, method: str, target: str, headers: dict[str, str], body: Body, anonymous: bool
    ) -> Response:
        fields = {"Accept": "*/*", "User-Agent": "svc", **headers}
        token = None if anonymous or "Authorization" in fields else self._bearer()
        if token is not None:
            fields["Authorization"] = f"Bearer {token}"
        return self._send_raw(method, target, fields, body, token)

    def _send_raw(
        self, method: str, target: str, fields: dict[str, str], body: Body, bearer: str | None = None
    ) -> Response:
        # A pool takes a path, a proxy the whole URL.
        url = target if isinstance(self._pool, urllib3.HTTPConnectionPool) else self.address.origin + target
        raw = self._pool.urlopen(
            method,
            url,
            body=body() if callable(body) else body,
            headers=fields,
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        return Response(raw, self, bearer)

    def _bearer(self) -> str | None:
        """The token to send; an API key is exchanged for one first, and again shortly before that ends."""
        key = self._credentials.api_key
        if self._credentials.token is not None:
            return self._credentials.token
        if key is None:
            if self._stored is None:
                return None
            with self._lock:
                return self._stored.bearer(self._refresh)
        with self._lock:
            if self._token is None or time.monotonic() > self._token_ends - _RENEW_BEFORE_S:
                self._token, lifetime = self._exchange(key)
                self._token_ends = time.monotonic() + lifetime
            return self._token

    def _exchange(self, key: str) -> tuple[str, float]:
        # The key is there to get the next token: no refresh token is needed.
        answer = self._ask_for_token("/auth/token", {"api_key": key, "refresh": False})
        return answer.token, answer.expires_in

    def _refresh(self, refresh_token: str) -> SignIn:
        return self._ask_for_token("/auth/refresh", {"refresh_token": refresh_token}).signed_in()

    def _ask_for_token(self, url: str, value: dict[str, Any]) -> Token:
        fields = {"Accept": "application/json", "User-Agent": "svc", "Content-Type": "application/json"}
        try:
            response = self._send_raw("POST", self.address.prefix + url, fields, msgspec.json.encode(value))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self.unreachable(error) from error
        if response.status >= 300:
            problem = self._error_of(response, "POST", *(one for one in value.values() if one))
            if isinstance(problem, NotFound):
                raise AuthRequired(f"{self.address.url} takes no API keys: it gives no tokens.")
            raise problem
        return response.json(Token)

    def _renew(self, response: Response) -> bool:
        """Gets another token in the place of one that was refused; returns whether there is one."""
        refused = response._bearer
        if self._credentials.token is not None or refused is None:
            return False
        with self._lock:
            if self._credentials.api_key is None:
                return self._stored is not None and self._stored.renew(refused, self._refresh)
            if self._token == refused:
                self._token = None
            return True

    def _error_of(self, response: Response, method: str, *sent: object) -> SvcError:
        content = b""
        if method != "HEAD":
            try:
                content = response.read(_ERROR_BODY_LIMIT)
            except ServiceUnavailable:
                content = b""
        response.close()
        # A proxy or a foreign server may repeat what it was sent.
        stored = () if self._stored is None else self._stored.secrets
        for secret in (self._credentials.token, self._credentials.api_key, self._token, *stored, *sent):
            if isinstance(secret, str) and secret:
                content = content.replace(secret.encode(), b"***")
        reason = response._raw.reason or ""
        return error_of_answer(self.address.url, response.status, reason, response.headers, content)


class Token(Confidential, frozen=True):
    """What a server answers to a key or a refresh token."""

    shown = ("expires_in",)

    token: str
    expires_in: float
    refresh_token: str | None = None

    def signed_in(self) -> SignIn:
        """The sign-in that an answer begins now."""
        ends = time.time() + self.expires_in
        return SignIn(token=self.token, expires_at=ends, refresh_token=self.refresh_token)


def _pool(address: ServerAddress, timeout: float) -> urllib3.HTTPConnectionPool | urllib3.ProxyManager:
    options: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=timeout, read=timeout),
        "maxsize": _CONNECTIONS,
        "blocksize": PIECE,
    }
    context = address.tls_context()
    proxy = proxy_of(address)
    if proxy is not None:
        return urllib3.ProxyManager(proxy.url, proxy_headers=proxy.headers, ssl_context=context, **options)
    if context is not None:
        return urllib3.HTTPSConnectionPool(address.host, address.port, ssl_context=context, **options)
    return urllib3.HTTPConnectionPool(address.host, address.port, **options)


def _was_lost(error: Exception) -> bool:
    """Whether a connection that stood was lost: another one may last. Nobody there stays nobody there."""
    return isinstance(error, urllib3.exceptions.ProtocolError)


def _asked_pause(problem: SvcError, response: Response) -> float | None:
    asked = problem.details.get("retry_after")
    if asked is None:
        asked = response.headers.get("Retry-After") or None
    try:
        return None if asked is None else float(asked)
    except (TypeError, ValueError):
        return None


def _pause(asked: float | None, attempt: int) -> float:
    """Seconds to wait before a request is sent again: what the server says, else doubling from 0.2."""
    if asked is not None:
        return min(_LONGEST_PAUSE_S, max(0.05, asked))
    if not attempt:
        return 0.0
    return float(min(_LONGEST_PAUSE_S, 0.1 * 2**attempt) * random.uniform(0.75, 1.25))
