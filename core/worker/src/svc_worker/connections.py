"""One client: its requests are read, served and answered in order, until one side ends the connection."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from gevent import getcurrent

from svc_worker.bodies import BufferPool, ChunkedBody, LengthBody, RequestBody
from svc_worker.files import FileSegment, FileWrapper
from svc_worker.head import CHUNKED, HeadParser
from svc_worker.refusals import ClientDisconnected, Refusal, bad_request, refusal_bytes
from svc_worker.responses import Response
from svc_worker.settings import HttpSettings
from svc_worker.streams import LARGE_PIECE, NEVER, Stream, StreamExpired
from svc_worker.target import check_start
from svc_worker.turns import Abandoned, abandon, forget_abandoned, pause

if TYPE_CHECKING:
    from svc_worker.hooks import Hooks

__all__ = ["Connection", "Server"]

RECEIVE_BYTES = 16384
SMALL_PIECES = 64
"""After so many small pieces of an answer, other connections get their turn."""

TURN_SECONDS = 0.002
"""They get it after so long, too: what is sent may have cost much to make."""

_END = b"\r\n\r\n"


class Server(Protocol):
    """The worker, as its connections see it; ``date`` is the line of the ``Date`` field, with its end."""

    application: Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
    settings: HttpSettings
    buffers: BufferPool
    hooks: Hooks
    log: Any
    date: str
    is_serving: bool
    connections: set[Connection]

    def count_request(self) -> None:
        """Called with each request."""


class Connection:
    """Serves a client, whose stream it closes.

    ``template`` is what is the same in the environments of all its requests; ``scheme_fields`` are those by
    which this peer may say that its client came by TLS.

    Attributes:
        is_idle: whether it waits for the first byte of a request.
        head_sent: whether the head of the present answer is out.
        keep_alive: whether another request may follow the present one.
    """

    __slots__ = (
        "_client_is_gone",
        "_empty_body",
        "_greenlet",
        "_is_first",
        "_parser",
        "_response",
        "_scheme_fields",
        "_template",
        "buffers",
        "head_sent",
        "is_http_1_0",
        "is_idle",
        "keep_alive",
        "server",
        "settings",
        "stream",
    )

    def __init__(
        self,
        server: Server,
        stream: Stream,
        template: dict[str, Any],
        scheme_fields: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.server = server
        self.stream = stream
        self.settings = server.settings
        self.buffers = server.buffers
        self._template = template
        self._scheme_fields = scheme_fields
        self._parser = HeadParser(server.settings, template)
        self.is_idle = False
        self._is_first = True
        self._greenlet: Any = None
        self._client_is_gone = False
        self._response: Response | None = None
        self.head_sent = False
        self.keep_alive = True
        self.is_http_1_0 = False
        self._empty_body = LengthBody(self, 0, False)
        template["wsgi.input"] = self._empty_body
        template["svc.takes_mappings"] = True
        if stream.can_send_files:
            template["svc.file_segment"] = FileSegment

    def run(self) -> None:
        """Serves until the end, and closes the stream. What goes wrong is answered or logged."""
        stream = self.stream
        self._greenlet = getcurrent()
        try:
            while self._serve_one():
                pass
        except (ClientDisconnected, StreamExpired):
            pass
        finally:
            stream.close()
            # Ends the reference cycles of this connection: the collector would free it late.
            self._greenlet = None
            self._template.clear()
            self._parser.close()
            del self._empty_body

    @property
    def works_unwatched(self) -> bool:
        """Whether an application works that does not wait for the client: it would not see that one gone."""
        stream = self.stream
        is_open = not stream.is_closed and self._response is not None
        return is_open and not stream.is_sending and stream.deadline == NEVER

    def stop_if_client_is_gone(self) -> bool:
        """Stops the application at its next ``pause`` if the client is gone; returns whether it is."""
        response, stream = self._response, self.stream
        if response is None or not self.works_unwatched:
            return False
        if not stream.client_is_gone(is_answered=self.head_sent, is_chunked=response.is_chunked):
            return False
        self._client_is_gone = True
        abandon(self._greenlet)
        return True

    def _serve_one(self) -> bool:
        """Serves a request; returns whether another may follow."""
        self.head_sent = False
        self.keep_alive = True
        try:
            head = self._next_head()
            if head is None:
                return False
            parser = self._parser
            environ = parser.parse(head)
            if self._scheme_fields:
                self._set_scheme(environ)
        except Refusal as refusal:
            self._refuse(refusal)
            return False
        self._is_first = False
        self.keep_alive = parser.keep_alive
        self.is_http_1_0 = parser.is_http_1_0
        self.server.count_request()
        body: RequestBody = self._empty_body
        if parser.length:
            body = self._body_of(parser)
            environ["wsgi.input"] = body
        self._respond(environ, body)
        if body.flaw is not None:
            body.forget_frames()
        if self.stream.is_closed:
            return False
        if self.keep_alive and not body.is_finished:
            self.keep_alive = body.drain()
        if not self.keep_alive and (self.stream.buffered or not body.is_finished):
            self.stream.linger()
        return self.keep_alive

    def _set_scheme(self, environ: dict[str, Any]) -> None:
        """Believes what a trusted peer says about its client's TLS."""
        said = {environ[name] == value for name, value in self._scheme_fields if name in environ}
        if said:
            if len(said) > 1:
                raise bad_request("The header fields contradict each other on the scheme.")
            environ["wsgi.url_scheme"] = "https" if said.pop() else "http"

    def _body_of(self, parser: HeadParser) -> RequestBody:
        if parser.length == CHUNKED:
            return ChunkedBody(self, parser.expects_continue)
        return LengthBody(self, parser.length, parser.expects_continue)

    def _next_head(self) -> bytes | None:
        """Returns the next head, up to its empty line; None when there is none.

        Raises Refusal where what comes is no head, and StreamExpired where nothing came for too long.
        """
        stream = self.stream
        data = stream.buffered
        if data:
            # A pipelined request waits for its turn, and until the answers before it have been taken.
            stream.await_room()
            pause()
        else:
            if not (self._is_first or self.server.is_serving):
                return None
            settings = self.settings
            patience = settings.header_timeout_s if self._is_first else settings.keepalive_s
            self.is_idle = True
            data = stream.receive(RECEIVE_BYTES, time.monotonic() + patience)
            self.is_idle = False
            if not data:
                return None
        end = data.find(_END) + 4
        if end < 4 or data[0] in (10, 13):
            found = self._complete_head(data)
            if found is None:
                return None
            data, end = found
        stream.buffered = data[end:]
        return data[:end]

    def _complete_head(self, data: bytes) -> tuple[bytes, int] | None:
        """Completes a head that came in part, or behind empty lines; None when the client left.

        Returns what was received, and where the head ends in it.
        """
        settings, stream = self.settings, self.stream
        deadline = time.monotonic() + settings.header_timeout_s
        skipped = searched = 0
        while True:
            while data[:2] == b"\r\n":
                data = data[2:]
                skipped, searched = skipped + 2, 0
            self._check_part(data, skipped)
            end = data.find(_END, max(0, searched - 3)) + 4
            if end >= 4:
                return data, end
            searched = len(data)
            try:
                more = stream.receive(RECEIVE_BYTES, deadline)
            except StreamExpired:
                raise Refusal(408, "The head of the request took too long.", "SERVICE_UNAVAILABLE") from None
            if not more:
                return None
            stream.moved += len(more)
            data += more

    def _check_part(self, data: bytes, skipped: int) -> None:
        settings = self.settings
        line_end = data.find(b"\n")
        if line_end < 0:
            if data and data != b"\r":
                check_start(data, settings.request_line)
        elif data[line_end - 1 : line_end] != b"\r":
            raise bad_request("A line of the head is not ended by CR LF.")
        elif line_end > settings.request_line:
            raise Refusal(414, "The request line is too long.")
        if len(data) > settings.head and _END not in data[: settings.head]:
            raise Refusal(431, "The header fields are too many or too long.")
        if skipped > 64:
            raise bad_request("The request begins with too many empty lines.")
        if line_end >= 0 and data.endswith(b"\n") and not data.endswith(b"\r\n"):
            raise bad_request("A line of the head is not ended by CR LF.")

    def _respond(self, environ: dict[str, Any], body: RequestBody) -> None:
        response = self._response = Response(self, body, environ["REQUEST_METHOD"] == "HEAD")
        hooks = self.server.hooks
        began = time.perf_counter() if hooks.timed else 0.0
        try:
            if hooks.active:
                hooks.before(environ)
            self._run_application(environ, response)
        except (ClientDisconnected, Abandoned):
            self.keep_alive = False
            self.stream.reset()
        except Refusal as refusal:
            # The application let the flaws of a body pass.
            self._fail(response, environ, refusal)
        except (Exception, SystemExit) as error:
            if isinstance(error, SystemExit) and not self.server.is_serving:
                raise
            if not (self.head_sent and isinstance(error, ConnectionError)):
                self.server.log.exception("The application failed to answer a request.")
            self._fail(
                response, environ, Refusal(500, "The server failed to handle the request.", "INTERNAL_ERROR")
            )
        finally:
            self._response = None
            if self._client_is_gone:
                self._client_is_gone = False
                forget_abandoned(self._greenlet)
            if hooks.active:
                elapsed = timedelta(seconds=time.perf_counter() - began)
                hooks.after(environ, response, elapsed)

    def _run_application(self, environ: dict[str, Any], response: Response) -> None:
        result = self.server.application(environ, response.start)
        if type(result) is list and len(result) == 1:
            response.write_only(result[0])
            response.finish()
            return  # a list has nothing to close
        try:
            if isinstance(result, FileWrapper):
                self._send_wrapped(result, response)
            else:
                self._send_pieces(result, response)
            response.finish()
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()

    def _send_pieces(self, pieces: Iterable[bytes], response: Response) -> None:
        """Sends pieces one by one: each is made when the system has room for it, and none is kept."""
        clock = time.monotonic
        small, ends = 0, clock() + TURN_SECONDS
        for piece in pieces:
            if piece:
                response.write(piece)
                small += 1
            is_long = small == SMALL_PIECES or clock() >= ends
            if not (is_long or len(piece) >= LARGE_PIECE):
                continue
            small = 0
            del piece
            self.stream.await_room()
            if is_long:
                pause()  # Behind the wait for room: many may have it at once.
            ends = clock() + TURN_SECONDS

    def _send_wrapped(self, wrapper: FileWrapper, response: Response) -> None:
        segment = wrapper.segment() if self.stream.can_send_files else None
        if segment is not None:
            response.write_only(segment)  # type: ignore[arg-type]
            return
        self._send_pieces(wrapper, response)

    def _fail(self, response: Response, environ: dict[str, Any], reason: Refusal) -> None:
        """Ends a request that the application left without an answer, or with a part of one."""
        self.keep_alive = False
        if self.head_sent:
            self.stream.reset()
            return
        self.head_sent = True
        response.status, response.headers = str(reason.status), ()
        answer = refusal_bytes(
            reason.status,
            reason.text,
            reason.code,
            self.server.date,
            request_id=environ.get("svc.request_id"),
            with_body=environ["REQUEST_METHOD"] != "HEAD",
        )
        with contextlib.suppress(ClientDisconnected):
            self.stream.send(answer)

    def _refuse(self, refusal: Refusal) -> None:
        self.server.log.info(
            "Refused a request of %s: %s", self._template.get("REMOTE_ADDR") or "?", refusal.text
        )
        with contextlib.suppress(ClientDisconnected):
            self.stream.send(refusal_bytes(refusal.status, refusal.text, refusal.code, self.server.date))
            self.stream.linger()
