"""The client against a server that misbehaves in all the usual ways."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest

from svc import errors
from svc_files.client.connection import Connections, ServerAddress, file_url, json_of


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[tuple[str, str, str | None]]] = []
    busy = 0

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.seen.append((self.command, self.path, self.headers.get("Authorization")))
        if self.path == "/drop-next":
            self._answer(200, b"{}")
            self.close_connection = True
        elif self.path == "/busy" and type(self).busy:
            type(self).busy -= 1
            self._answer(503, b'{"error": "Later.", "code": "SERVICE_UNAVAILABLE", "retry_after": 0}')
        elif self.path == "/missing":
            self._answer(404, b'{"error": "Nothing is at this path.", "code": "NOT_FOUND", "path": "/x"}')
        elif self.path == "/html":
            self._answer(500, b"<html>oops</html>")
        elif self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"too little")
            self.close_connection = True
        else:
            self._answer(200, b'{"ok": true}')

    def do_PUT(self) -> None:
        self.seen.append((self.command, self.path, None))
        self._answer(412, b'{"error": "Changed.", "code": "PRECONDITION_FAILED"}', Connection="close")
        self.close_connection = True


@pytest.fixture
def server() -> Iterator[str]:
    _Handler.seen = []
    _Handler.busy = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{listener.server_address[1]}"
        listener.shutdown()
        thread.join()


@pytest.fixture
def connections(server: str) -> Iterator[Connections]:
    opened = Connections(ServerAddress.parse(server + "/", token="secret-token"))
    yield opened
    opened.close()


def _get(connections: Connections, url: str) -> object:
    return json_of(connections, connections.request("GET", url))


def test_the_token_travels_in_the_header_and_never_in_a_representation(connections: Connections) -> None:
    _get(connections, "/x")
    assert _Handler.seen == [("GET", "/x", "Bearer secret-token")]
    assert "secret" not in repr(connections.address)


def test_a_connection_that_was_closed_meanwhile_is_made_anew(connections: Connections) -> None:
    _get(connections, "/drop-next")
    assert _get(connections, "/x") == {"ok": True}


def test_a_busy_server_is_asked_again(connections: Connections) -> None:
    _Handler.busy = 2
    assert _get(connections, "/busy") == {"ok": True}


def test_errors_come_back_as_the_classes_that_the_server_raised(connections: Connections) -> None:
    with pytest.raises(errors.NotFound) as raised:
        connections.request("GET", "/missing")
    assert raised.value.details == {"path": "/x"}
    assert _get(connections, "/x") == {"ok": True}


def test_a_failure_without_a_body_of_svc_is_told_by_its_status(connections: Connections) -> None:
    with pytest.raises(errors.InternalError, match="500"):
        connections.request("GET", "/html")


def test_a_body_that_ends_early_is_an_error(connections: Connections) -> None:
    with pytest.raises(errors.ServiceUnavailable, match="ended before"):
        _get(connections, "/short")


def test_an_answer_to_a_body_that_is_still_being_sent_is_heard(connections: Connections) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * 1024 * 1024

    with pytest.raises(errors.PreconditionFailed, match=r"Changed\."):
        connections.request("PUT", "/x", headers={"Content-Length": str(64 * 1024 * 1024)}, body=endless)


def test_nobody_there_is_told_with_the_url() -> None:
    nobody = Connections(ServerAddress.parse("http://127.0.0.1:1"))
    with pytest.raises(errors.ServiceUnavailable, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        nobody.request("GET", "/")
    nobody.close()


@pytest.mark.parametrize(
    "url", ["http://", "ftp://x", "http://u:p@h", "http://h:99999", "http://h/?q", "http://[::1"]
)
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(errors.UsageError):
        ServerAddress.parse(url)


def test_tokens_cannot_smuggle_headers() -> None:
    with pytest.raises(errors.UsageError):
        ServerAddress.parse("http://h", token="a\r\nX: y")


def test_every_segment_is_encoded_once() -> None:
    assert file_url("/files/", ("a b", "50%", "é?#")) == "/files/a%20b/50%25/%C3%A9%3F%23"
