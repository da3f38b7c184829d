"""Request bodies: read piece by piece, under a limit, and never past what the client sent.

Reading raises 413 for too much, 400 for what breaks off or is framed wrongly, 408 for a client that stopped.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import falcon

from svc.database import pause, without_turn
from svc.errors import InvalidInput, PayloadTooLarge, RequestTimeout, SvcError, UnsupportedMediaType
from svc.operations.json import decode_json
from svc.pipeline.digests import BodyDigests
from svc.pipeline.examples import json_command
from svc.pipeline.middleware import authorize_again
from svc.redaction import conceal

if TYPE_CHECKING:
    from svc.pipeline.settings import Limits

__all__ = ["PIECE_SIZE", "USUAL_JSON", "BodyStream", "body_of", "body_stream", "read_json"]

PIECE_SIZE = 262144
"""Bytes that one read of a body gives at most, unless more is asked for."""

_CREDENTIAL_BYTES = 65536
"""JSON bodies up to this size are searched for keys and passwords, which the log must not repeat."""

USUAL_JSON = 1048576
"""Bytes of a JSON body that a route takes unless it says more. They are decoded in 20 ms at worst."""

_TEXTS_OF_OPERATION = 12
_BYTES_OF_TEXT = 30

_DRAIN_BYTES = 1048576
_DRAIN_SECONDS = 2.0

T = TypeVar("T")


class BodyStream:
    """The body of one request: counted, bounded, with a deadline for every read.

    ``Database.store`` reads from it. Responders get it from ``body_stream``.

    Attributes:
        declared: bytes that the client announced; None for a body in chunks.
        is_malformed: whether what it announced is no number.
        received: bytes read so far.
        digests: what its bytes must add up to: reading the last one raises InvalidInput where they do not.
        at_end: called with the time at which the body was made (Unix seconds) when its last byte has been
            read, before anybody gets that; what it raises, reading raises.

    Args:
        timeout_s: longest wait for the client's next bytes; None waits as long as the server does.
    """

    __slots__ = (
        "_abandoned",
        "_began_s",
        "_done",
        "_failed",
        "_limit",
        "_raw",
        "_socket",
        "_timeout_s",
        "at_end",
        "declared",
        "digests",
        "is_malformed",
        "received",
    )

    def __init__(self, environ: dict[str, Any], timeout_s: float | None) -> None:
        self._raw = environ.get("wsgi.input")
        self._socket = environ.get("gunicorn.socket")
        self._timeout_s = timeout_s
        self._limit: int | None = None
        self._failed = False
        self._abandoned = False
        self.received = 0
        self.declared, self.is_malformed = _declared_length(environ)
        self._done = self._raw is None or self.declared == 0
        self.digests: BodyDigests | None = None
        self.at_end: Callable[[float], None] | None = None
        self._began_s = time.time()

    def limited_to(self, limit: int | None) -> BodyStream:
        """Sets the most bytes that are taken, None for any number, and returns this body.

        Raises:
            PayloadTooLarge: the declared length is over the limit.
            InvalidInput: the declared length is not a number.
        """
        if self.is_malformed:
            raise InvalidInput("Content-Length is not a number of bytes.", field="Content-Length")
        if self.declared == 0:
            return self
        if limit is not None and self.declared is not None and self.declared > limit:
            raise _too_large(limit)
        self._limit = limit
        return self

    @property
    def is_finished(self) -> bool:
        """Whether the whole body was read."""
        return self._done and not self._failed

    @property
    def prevents_reuse(self) -> bool:
        """Whether the connection can't carry another request.

        Reading broke off; or the client still waits to be told to send the body; or more is to come than is
        worth reading just to drop it.
        """
        if self._failed:
            return True
        if self._done:
            return False
        rest = None if self.declared is None else self.declared - self.received
        return rest is None or rest > _DRAIN_BYTES or self._awaits_continue

    def read(self, size: int = PIECE_SIZE) -> bytes:
        """Returns the next bytes, ``b""`` at the end; a negative ``size`` reads all that is left.

        Blocks for the client's bytes, and lets other requests run between large pieces.

        Raises:
            PayloadTooLarge: the body goes on past the limit.
            InvalidInput: it ends before its declared length, or its chunks are malformed.
            RequestTimeout: nothing came for the time allowed, or less than the server asks for.
        """
        if size < 0:
            gathered = bytearray()  # pieces may be a byte each, and an object of their own costs forty
            while more := self.read(PIECE_SIZE):
                gathered += more
            return bytes(gathered)
        if self._done:
            return b""
        # ``read1`` gives what has come already; to wait for all would take memory meanwhile.
        read = getattr(self._raw, "read1", None) or self._raw.read  # type: ignore[union-attr]
        piece: bytes = self._receive(read, self._bounded(size))
        if self.digests is not None:
            self.digests.update(piece)
        self._count(len(piece))
        return piece

    def readinto(self, view: memoryview) -> int:
        """Puts the next bytes into a view and returns how many they are, 0 at the end; raises as ``read``."""
        read_into = getattr(self._raw, "readinto", None)
        if self._done or read_into is None:
            piece = self.read(len(view))
            view[: len(piece)] = piece
            return len(piece)
        count: int = self._receive(read_into, view[: self._bounded(len(view))])
        if self.digests is not None:
            self.digests.update(view[:count])
        self._count(count)
        return count

    def drain(self) -> bool:
        """Reads and drops a rest of the body, for a moment; returns whether the end was reached."""
        self.at_end = self.digests = None
        if self._awaits_continue:
            return False
        deadline = time.monotonic() + _DRAIN_SECONDS
        left = _DRAIN_BYTES
        self._limit = None
        if self._timeout_s is None or self._timeout_s > _DRAIN_SECONDS:
            self._timeout_s = _DRAIN_SECONDS
        while not self._done and not self._failed and left > 0 and time.monotonic() < deadline:
            try:
                left -= len(self.read(65536))
            except SvcError:
                return False
        return self.is_finished

    def abandon(self) -> None:
        """Tells the server that the connection can't be used again; a second call does nothing.

        gunicorn ignores a ``Connection`` header of an application; its body object knows ``failed``, and
        that of our own worker ``close_connection``.
        """
        if self._abandoned:
            return
        self._abandoned = True
        close_connection = getattr(self._raw, "close_connection", None)
        if close_connection is not None:
            close_connection()
        else:
            with contextlib.suppress(AttributeError):
                self._raw.failed = True  # type: ignore[union-attr]

    @property
    def _awaits_continue(self) -> bool:
        """Whether the client sends nothing before it has seen ``100 Continue`` (our own worker knows)."""
        return self.received == 0 and bool(getattr(self._raw, "awaits_continue", False))

    def _bounded(self, size: int) -> int:
        return size if self.declared is None else min(size, self.declared - self.received)

    def _count(self, count: int) -> None:
        if not count:
            if self.declared is not None:
                self._failed = True
                raise InvalidInput(f"The body ended after {self.received} of {self.declared} bytes.")
            self._finish()
            return
        self.received += count
        if self._limit is not None and self.received > self._limit:
            self._done = self.received == self.declared
            raise _too_large(self._limit)
        if self.received == self.declared:
            self._finish()
        if count >= 65536:
            # Where data keeps coming, a receive never yields: a large upload would hold up all others.
            pause()

    def _finish(self) -> None:
        self._done = True
        if self.digests is not None:
            self.digests.check()
        at_end, self.at_end = self.at_end, None
        if at_end is not None:
            at_end(self._began_s)

    def _receive(self, call: Callable[[Any], Any], argument: int | memoryview) -> Any:
        socket = None if self._timeout_s is None else self._socket
        if getattr(self._raw, "has_bytes", False):
            return self._received_by(None, call, argument)
        # A client that sends slowly, or never, is to hold no turn that others wait for.
        with without_turn():
            return self._received_by(socket, call, argument)

    def _received_by(self, socket: Any, call: Callable[[Any], Any], argument: int | memoryview) -> Any:
        try:
            if socket is None:
                return call(argument)
            socket.settimeout(self._timeout_s)
            try:
                return call(argument)
            finally:
                try:  # noqa: SIM105 - three calls fewer for each small body
                    socket.settimeout(None)
                except OSError:
                    pass
        except TimeoutError:
            self._failed = True
            raise RequestTimeout("The client sent the body too slowly, or stopped sending it.") from None
        except Exception:  # noqa: BLE001 - each server has types of its own for this
            # It is always about what the client sent: bad chunk framing, a connection that broke.
            self._failed = True
            raise InvalidInput("The body broke off or is not framed as it should be.") from None


def body_of(environ: dict[str, Any], timeout_s: float | None) -> BodyStream:
    """Returns the body of a request."""
    if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
        return BodyStream(environ, timeout_s)
    return _NO_BODY


def body_stream(req: falcon.Request, limit: int | None) -> BodyStream:
    """Returns the body of a request as an object with ``read(n)``.

    A declared length over the limit is refused here, before anything is read; chunks are counted on the way.

    With the last bytes the caller is asked for again, and what the responder declares: reading raises what
    the request would get if it came then, and ``req.context`` knows who the caller is by now. What else the
    responder has decided by the caller's rights, it decides again behind that.

    Raises:
        PayloadTooLarge: the declared length is over the limit.
        InvalidInput: the declared length is not a number, the body is a part of something
            (``Content-Range``), or what it is announced to add up to is malformed or can't be.
    """
    if "HTTP_CONTENT_RANGE" in req.env:
        # Whoever does not know of the field would take the part for the whole (RFC 9110, 14.5).
        raise InvalidInput("A part of a body cannot be sent: send the whole.", field="Content-Range")
    digests = BodyDigests.of(req.env)
    body = req.env.get("svc.input")
    if body is None:
        body = req.env["svc.input"] = BodyStream(req.env, None)
    stream: BodyStream = body.limited_to(limit)
    if not stream.is_finished:
        stream.digests = digests
        stream.at_end = partial(authorize_again, req)  # type: ignore[arg-type] # ours are all SvcRequest
    elif digests is not None:
        digests.check()  # there is nothing to read
    return stream


def read_json(req: falcon.Request, form: type[T], limit: int | None = None) -> T:
    """Reads a JSON body and checks its form.

    Args:
        req: the request. Its content type must be JSON, or absent.
        form: a msgspec Struct, or any type that msgspec knows.
        limit: most bytes to take, within the server's limit on JSON bodies; None for ``USUAL_JSON``.

    Raises:
        UnsupportedMediaType: another content type, a charset other than UTF-8, or a content coding.
        PayloadTooLarge: over the limit, or with more texts than a large body may have.
        InvalidInput: not JSON, or not of the form; ``field`` names the member.
    """
    _require_json(req, form)
    limits: Limits = req.context.limits
    most = min(USUAL_JSON if limit is None else limit, limits.json_body)
    body = body_stream(req, most).read(-1)
    if not body:
        raise InvalidInput("The request needs a JSON body.")
    if len(body) > USUAL_JSON:
        _require_few_texts(body, limits.batch_operations)
    decoded = decode_json(body, form)
    if len(body) <= _CREDENTIAL_BYTES:
        conceal(decoded)
    return decoded


def _declared_length(environ: dict[str, Any]) -> tuple[int | None, bool]:
    """The body's length (None in chunks), and whether it is malformed; without headers 0 (RFC 9112, 6.3)."""
    text = environ.get("CONTENT_LENGTH")
    if text:
        if not (text.isascii() and text.isdigit()) or len(text) > 18:
            return 0, True
        return int(text), False
    return (None if environ.get("HTTP_TRANSFER_ENCODING") else 0), False


def _require_json(req: falcon.Request, form: Any) -> None:
    if req.env.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise UnsupportedMediaType("A JSON body is sent as it is, in no Content-Encoding.")
    content_type = req.content_type
    if not content_type:
        return
    media_type, _, parameters = content_type.partition(";")
    media_type = media_type.strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        # A form is what a page of any origin may send without asking: it is never taken for JSON.
        raise UnsupportedMediaType(
            f"The body must be JSON (Content-Type: application/json). For example: {json_command(req, form)}"
        )
    for parameter in parameters.lower().split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise UnsupportedMediaType("A JSON body must be in UTF-8.")


def _require_few_texts(body: bytes, operations: int) -> None:
    """Refuses a large body of very many short texts: to decode it would hold up everybody else.

    So many are fine as the operations of a batch have, and further ones that are long, such as hashes.
    """
    most = operations * _TEXTS_OF_OPERATION + len(body) // _BYTES_OF_TEXT
    quotes = 0
    for start in range(0, len(body), USUAL_JSON):
        piece = body[start : start + USUAL_JSON]
        quotes += piece.count(b'"') - piece.count(b'\\"')
        if quotes > 2 * most:
            raise PayloadTooLarge(f"A body of this size may have at most {most} texts.", limit=most)
        pause()


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body may have at most {limit} bytes.", limit=limit)


_NO_BODY = BodyStream({}, None)
"""The body of every request that has none. Nothing ever changes it: there is nothing to read."""
