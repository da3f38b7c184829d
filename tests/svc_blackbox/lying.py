"""A server that lies: it answers what a test says, or what another server answers, changed."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


@dataclass
class Answer:
    """An answer that is still to be sent, and the request that it is for.

    Attributes:
        headers: without those of the connection; the words of their names begin with capitals.
        length: what ``Content-Length`` says; None: nothing does, and the body ends with the connection.
    """

    method: str
    path: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: int | None = 0


class LyingServer:
    """A context that answers on loopback.

    Args:
        behind: URL of the server whose answers are changed; None: of none, then they are empty.
        lie: changes an answer.
    """

    def __init__(self, lie: Callable[[Answer], None], behind: str | None = None) -> None:
        self.lie = lie
        self._behind = behind
        self._listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._listener.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *arguments: object) -> None:
                pass

            def do_GET(self) -> None:
                answer = outer._answer(self.command, self.path, dict(self.headers), self._content())
                self.send_response(answer.status, "OK")
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.length is None:
                    self.send_header("Connection", "close")
                else:
                    self.send_header("Content-Length", str(answer.length))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)
                    if answer.length != len(answer.body):
                        self.close_connection = True

            do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815

            def _content(self) -> bytes:
                if self.headers.get("Transfer-Encoding") is None:
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                content = b""
                while size := int(self.rfile.readline(), 16):
                    content += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return content

        return Handler

    def _answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Answer:
        answer = Answer(method, path, headers={"Content-Type": "application/json"})
        if self._behind is not None:
            self._ask(answer, headers, content)
        truth, said = answer.body, answer.length
        self.lie(answer)
        if answer.length == said and answer.body != truth:
            answer.length = len(answer.body)
        return answer

    def _ask(self, answer: Answer, headers: dict[str, str], content: bytes) -> None:
        parts = urlsplit(self._behind or "")
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        own = ("connection", "content-length", "transfer-encoding", "host")
        passed: dict[str, Any] = {name: value for name, value in headers.items() if name.lower() not in own}
        connection.request(answer.method, answer.path, content or None, passed)
        response = connection.getresponse()
        answer.status, answer.body = response.status, response.read()
        answer.headers = {
            name.title(): value for name, value in response.getheaders() if name.lower() not in own
        }
        answer.length = int(response.headers.get("Content-Length") or len(answer.body))
        connection.close()
