"""Streams that are open in this process, and a receiver of webhooks on a real port."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from wsgiref.util import setup_testing_defaults

from events_model.model import Told, told_by

__all__ = ["Receiver", "Stream", "receiving"]

OF_STREAMS = ("server_ready", "heartbeat")
Delivered = list[tuple[str, Told]]


class Stream:
    """One answer of the application, read when the test wants more of it.

    Attributes:
        status: of the answer.
        last: the id of the last message.
        is_over: whether it has ended.
    """

    def __init__(self, app: Any, path: str, query: str, token: str, last: str) -> None:
        environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": query, "RAW_URI": path}
        environ |= {"HTTP_AUTHORIZATION": f"Bearer {token}", "HTTP_LAST_EVENT_ID": last}
        setup_testing_defaults(environ)
        begun: list[str] = []
        self._answer = app(environ, lambda status, headers, exc_info=None: begun.append(status))
        self._pieces: Iterator[bytes] = iter(self._answer)
        self.status = int(begun[0][:3])
        self.last = last
        self.is_over = False

    def until(self, place: str) -> Delivered:
        """What comes until it has read up to a place, as its pulse says, or ends."""
        found: Delivered = []
        while self.last < place and not self.is_over:
            found += self._more()
        return found

    def rest(self) -> Delivered:
        """What comes until it ends."""
        found: Delivered = []
        while not self.is_over:
            found += self._more()
        return found

    def close(self) -> None:
        if hasattr(self._answer, "close"):
            self._answer.close()

    def _more(self) -> Delivered:
        piece = next(self._pieces, None)
        if piece is None:
            self.is_over = True
            return []
        lines = [line[6:] for line in piece.split(b"\n") if line.startswith(b"data: ")]
        envelopes = [json.loads(line) for line in lines]
        for envelope in envelopes:
            assert envelope["event_id"] >= self.last
            self.last = envelope["event_id"]
        return [(one["event_id"], told_by(one)) for one in envelopes if one["event_type"] not in OF_STREAMS]


class Receiver:
    """Takes what webhooks send.

    Attributes:
        port: where it listens.
        taken: what it has taken, by the path that it was sent to.
        refusals: how many requests it refuses from now on.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.taken: dict[str, Delivered] = {}
        self.refusals = 0

    def take(self, path: str, body: bytes) -> bool:
        if self.refusals > 0:
            self.refusals -= 1
            return False
        envelope = json.loads(body)
        self.taken.setdefault(path, []).append((envelope["event_id"], told_by(envelope)))
        return True


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver, for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204 if receiver.take(self.path, body) else 503)
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *_words: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    server = Server(("127.0.0.1", 0), Handler)
    receiver = Receiver(server.server_address[1])
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
