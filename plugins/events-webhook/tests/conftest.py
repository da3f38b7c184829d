"""A receiver of webhooks on a real port, and databases whose settings let webhooks go there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

LOCAL = {"allow_private": True, "allow_any_port": True}
"""Settings that let webhooks go to a receiver of these tests."""


@dataclass
class Request:
    """What arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A server that takes requests, and answers what a test says.

    Attributes:
        url: where it listens.
        requests: what it has taken, in order.
        answer: is called with the handler for each request, and answers it.
    """

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    answer: Callable[[Any], None] = lambda handler: reply(handler, 204)

    @property
    def ids(self) -> list[str]:
        """The ids of what has arrived."""
        return [request.headers["webhook-id"] for request in self.requests]


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """Answers a request."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    if status != 204:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if status != 204:
        handler.wfile.write(body)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver, as long as the context lasts."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.taken = Request(self.path, headers, body)
            receiver.requests.append(self.taken)
            receiver.answer(self)

        def log_message(self, *_words: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_words: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?a=b"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made
