"""The end of every request: its answer's bytes, its line in the log, and the state of its connection."""

from __future__ import annotations

import errno
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from svc.metrics import Counter, Histogram
from svc.pipeline.bodies import BodyStream
from svc.pipeline.framework import Fields
from svc.plugins.registry import KERNEL
from svc.redaction import leave_request

if TYPE_CHECKING:
    from svc.pipeline.blame import Faults
    from svc.pipeline.context import RequestContext
    from svc.pipeline.observing import Observation
    from svc.pipeline.routing import Endpoint

__all__ = [
    "AnswerBody",
    "Exchange",
    "count_request",
    "fields_for",
    "first_piece",
    "log_error",
    "pairs_of",
    "tell_observers",
]

REQUEST_SECONDS = Histogram(
    "svc_http_request_seconds",
    "How long requests took, to the last byte of the answer.",
    ("route", "method", "status"),
)
SENT_BYTES = Counter("svc_http_sent_bytes", "Bytes of the bodies of answers.")
RECEIVED_BYTES = Counter("svc_http_received_bytes", "Bytes of the bodies of requests.")

_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
"""W3C Trace Context, version 00."""

_access = logging.getLogger("svc.access")
_errors = logging.getLogger("svc.error")


class Exchange:
    """An answer that is more than one piece, or is to be logged, with the body of its request (``source``).

    ``began`` is by ``time.perf_counter``; ``logs`` says whether a line is wanted in the log.
    """

    __slots__ = ("_began", "_logs", "source", "status_line")

    def __init__(self, source: BodyStream, status_line: str, began: float, *, logs: bool) -> None:
        self.source = source
        self.status_line = status_line
        self._began = began
        self._logs = logs

    def end(self, environ: dict[str, Any], sent: int, complete: bool) -> None:
        """Counts the request, and writes the access line."""
        count_request(environ, self.status_line, self._began, sent, self.source.received)
        tell_observers(environ, self.status_line, sent, self.source.received, is_complete=complete)
        if not self._logs or not _access.isEnabledFor(logging.INFO):
            return
        context: RequestContext | None = environ.get("svc.context")
        identity = context.identity_or_none if context is not None else None
        peer = environ.get("REMOTE_ADDR") or None
        fields: dict[str, Any] = {
            "method": environ.get("REQUEST_METHOD", ""),
            "path": _readable_path(environ.get("PATH_INFO", "")),
            "status": int(self.status_line[:3]),
            "ms": round((time.perf_counter() - self._began) * 1000, 3),
            "bytes": sent,
            "request_id": environ["svc.request_id"],
            "user": identity.name if identity is not None else None,
            "remote": context.client_address if context is not None else peer,
        }
        if self.source.received:
            fields["received"] = self.source.received
        if query := environ.get("QUERY_STRING"):
            fields["query"] = f"?{query}"
        if parent := _TRACE_PARENT.fullmatch(environ.get("HTTP_TRACEPARENT", "")):
            fields["trace_id"] = parent[1]
        if not complete:
            fields["aborted"] = True
        _access.info("request", extra={"fields": fields})

    def prepare_connection(self) -> None:
        """Before the head of the answer is written: gives up the connection if it can't be used again."""
        if self.source.prevents_reuse:
            self.source.abandon()

    def finish_connection(self) -> None:
        """After the answer: drops what a client still sends, so that the next request starts where it should.

        If the connection is to be closed, unread bytes would cause a reset, and the answer might be lost.
        """
        if not self.source.is_finished and not self.source.drain():
            self.source.abandon()


class AnswerBody:
    """The body of an answer on its way to the server: counted, and cut off when it fails half way."""

    __slots__ = ("_closed", "_complete", "_environ", "_exchange", "_faults", "_on_close", "_pieces", "_sent")

    def __init__(
        self,
        environ: dict[str, Any],
        exchange: Exchange,
        pieces: Iterator[bytes],
        faults: Faults,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._environ = environ
        self._faults = faults
        self._exchange = exchange
        self._pieces = pieces
        self._on_close = on_close
        self._sent = 0
        self._closed = False
        self._complete = False

    def __iter__(self) -> AnswerBody:
        return self

    def __next__(self) -> bytes:
        try:
            piece = next(self._pieces)
        except StopIteration:
            self._complete = True
            raise
        except Exception as error:  # noqa: BLE001 - logged, and told to the client as well as can be
            # The head is out, so only a cut connection tells the client. Servers take this error for a
            # connection that broke; the log has the true one.
            log_error(self._environ, error, self._faults)
            raise ConnectionResetError(errno.ECONNRESET, "the answer failed half way") from None
        self._sent += len(piece)
        return piece

    def close(self) -> None:
        """Called by the server at the end, whatever that was."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._on_close is not None:
                self._on_close()
        finally:
            self._exchange.end(self._environ, self._sent, self._complete)
            leave_request()
            self._exchange.finish_connection()


def count_request(environ: dict[str, Any], status_line: str, began: float, sent: int, received: int) -> None:
    """Counts an answered request by its route, not by its URL, of which there may be any number."""
    endpoint: Endpoint | None = environ.get("svc.endpoint")
    route, method = ("", "") if endpoint is None else (endpoint.template, environ["REQUEST_METHOD"])
    REQUEST_SECONDS.observe(time.perf_counter() - began, route, method, status_line[:3])
    if sent:
        SENT_BYTES.add(sent)
    if received:
        RECEIVED_BYTES.add(received)


def tell_observers(
    environ: dict[str, Any], status_line: str, sent: int, received: int, *, is_complete: bool = True
) -> None:
    """Tells of an answered request whoever observes it."""
    observation: Observation | None = environ.get("svc.observation")
    if observation is not None:
        endpoint: Endpoint | None = environ.get("svc.endpoint")
        observation.end(
            environ,
            "" if endpoint is None else endpoint.template,
            int(status_line[:3]),
            _readable_path(environ.get("PATH_INFO", "")),
            sent=sent,
            received=received,
            is_complete=is_complete,
        )


def pairs_of(fields: Fields) -> list[tuple[str, str]]:
    """Returns header fields as PEP 3333 has them."""
    return list(fields.items()) if isinstance(fields, dict) else fields


def fields_for(environ: dict[str, Any], fields: Fields) -> Fields:
    """Returns header fields in a form that the server of this environment takes."""
    return fields if "svc.takes_mappings" in environ else pairs_of(fields)


def log_error(environ: dict[str, Any], error: BaseException, faults: Faults) -> None:
    """Writes the traceback of a failure of ours, and notes whose it is."""
    endpoint: Endpoint | None = environ.get("svc.endpoint")
    path = _readable_path(environ.get("PATH_INFO", ""))
    owner, place = (KERNEL, path) if endpoint is None else (endpoint.plugin_id, endpoint.template)
    plugin_id = faults.note(error, owner, place)
    fields = {
        "plugin": plugin_id,
        "method": environ.get("REQUEST_METHOD", ""),
        "path": path,
        "request_id": environ["svc.request_id"],
    }
    _errors.error("request failed", exc_info=error, extra={"fields": fields})


def first_piece(pieces: Iterable[bytes]) -> tuple[Iterator[bytes], Callable[[], None] | None]:
    """Takes the first piece of a stream, so that an error before it can still be an error answer.

    Returns the whole stream again, and what closes it. What the stream raises is raised here.
    """
    iterator = iter(pieces)
    close = getattr(pieces, "close", None) or getattr(iterator, "close", None)
    try:
        first = next(iterator, None)
    except BaseException:
        if close is not None:
            close()
        raise
    return (iter(()) if first is None else _chain([first], iterator)), close


def _chain(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    # Popped: a piece that was handed on is not to be kept while its client reads slowly.
    yield first.pop()
    yield from rest


def _readable_path(path_info: str) -> str:
    if path_info.isascii():
        return path_info
    return path_info.encode("latin-1", "replace").decode("utf-8", "replace")
