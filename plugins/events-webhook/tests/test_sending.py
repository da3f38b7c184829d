"""Whatever a receiver does costs a bounded time and little memory, and is told in words."""

from __future__ import annotations

import http.server
import socket
import ssl
import subprocess
import threading
import time
from typing import Any

import pytest
from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.sending import Sender

from .conftest import Receiver, reply  # noqa: TID252

SETTINGS = WebhookConfiguration(allow_private=True, allow_any_port=True, timeout_seconds=0.5)


def send(receiver: Receiver, **fields: str) -> Any:
    sender = Sender(receiver.url, SETTINGS)
    try:
        return sender.send(b'{"a": 1}', {"X-Test": "yes", **fields})
    finally:
        sender.close()


def test_a_request_arrives_as_it_was_sent(receiver: Receiver) -> None:
    receiver.answer = lambda handler: reply(handler, 200, b"thanks")
    answer = send(receiver)
    assert (answer.status, answer.error, answer.body) == (200, None, b"thanks")
    (request,) = receiver.requests
    assert request.path == "/hook?a=b"
    assert request.body == b'{"a": 1}'
    assert request.headers["host"] == receiver.url.split("/")[2]
    assert request.headers["x-test"] == "yes"


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 410, 500, 503])
def test_all_but_success_is_a_failure(receiver: Receiver, status: int) -> None:
    receiver.answer = lambda handler: reply(handler, status, b"why", Location="http://127.0.0.1:1/")
    answer = send(receiver)
    assert answer.status == status
    assert str(status) in answer.error
    assert answer.body == b"why"
    assert len(receiver.requests) == 1, "a redirect was followed"


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [("120", 120, 120), ("0", 0, 0), ("Fri, 31 Dec 2100 23:59:59 GMT", 10**8, 10**11), ("soon", None, None)],
)
def test_a_pause_that_is_asked_for_is_heard(
    receiver: Receiver, given: str, least: float | None, most: float
) -> None:
    receiver.answer = lambda handler: reply(handler, 429, Retry_After=given)
    pause = send(receiver).retry_after
    assert pause is None if least is None else least <= pause <= most


def hang(handler: Any) -> None:
    time.sleep(5)


def drip_head(handler: Any) -> None:
    for _ in range(100):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: b\r\n"[:1])
        time.sleep(0.1)


def drip_body(handler: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        handler.wfile.write(b"x")
        time.sleep(0.1)


@pytest.mark.parametrize("answer", [hang, drip_head])
def test_one_that_takes_too_long_is_left(receiver: Receiver, answer: Any) -> None:
    receiver.answer = answer
    began = time.monotonic()
    error = send(receiver).error
    assert time.monotonic() - began < 3
    assert error == "no answer within 0.5 seconds"


def test_interim_answers_without_end_are_an_error(receiver: Receiver) -> None:
    """The library reads them in a loop, in which nobody else of an event loop has a turn."""

    def flood(handler: Any) -> None:
        for _ in range(200_000):
            handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    receiver.answer = flood
    began = time.monotonic()
    answer = send(receiver)
    assert answer.error is not None
    assert time.monotonic() - began < 1
    receiver.answer = lambda handler: (
        handler.send_response_only(100),
        handler.end_headers(),
        reply(handler, 204),
    )
    assert send(receiver).status == 204


def test_what_counts_is_the_head_of_an_answer(receiver: Receiver) -> None:
    """A body that comes slowly or not wholly takes no longer, and changes nothing."""
    receiver.answer = drip_body
    began = time.monotonic()
    assert send(receiver).error is None
    assert time.monotonic() - began < 3


def test_an_answer_without_end_is_not_read(receiver: Receiver) -> None:
    sent = 0

    def answer(handler: Any) -> None:
        nonlocal sent
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (10 << 30))
        piece = b"x" * 65_536
        while sent < 10 << 30:
            handler.wfile.write(piece)
            sent += len(piece)

    receiver.answer = answer
    answered = send(receiver)
    assert answered.error is None
    assert answered.body == b"x" * 1024
    assert sent < 64 << 20


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"rubbish\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 1000,
        b"HTTP/1.1 200 OK\r\nX-A: " + b"x" * 70_000,
    ],
    ids=["nothing", "no HTTP", "no status", "many fields", "a long field"],
)
def test_what_is_no_answer_is_a_failure(raw: bytes) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            peer.recv(65_536)
            peer.sendall(raw)
            peer.close()

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    answer = Sender(url, SETTINGS).send(b"{}", {})
    listening.close()
    assert answer.error is not None
    assert "\n" not in answer.error


def test_a_connection_is_kept_and_one_that_was_ended_is_made_again(receiver: Receiver) -> None:
    peers: list[Any] = []

    def answer(handler: Any) -> None:
        peers.append(handler.client_address)
        reply(handler, 204)
        if len(peers) == 2:
            handler.close_connection = True

    receiver.answer = answer
    sender = Sender(receiver.url, SETTINGS)
    for _ in range(3):
        assert sender.send(b"{}", {}).error is None
        time.sleep(0.05)
    sender.close()
    assert peers[0] == peers[1] != peers[2]
    assert len(receiver.requests) == 3


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    answer = Sender(f"http://127.0.0.1:{port}/", SETTINGS).send(b"{}", {})
    assert answer.error is not None
    assert "refused" in answer.error


def test_a_certificate_is_checked(tmp_path: Any) -> None:
    authority, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", key, "-out", authority),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, key)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            reply(self, 204)

        def log_message(self, *_words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    port = server.server_address[1]
    trusting = WebhookConfiguration(
        allow_private=True, allow_any_port=True, timeout_seconds=10, ca_file=str(authority)
    )
    try:
        assert Sender(f"https://localhost:{port}/", trusting).send(b"{}", {}).error is None
        for settings, host in ((SETTINGS, "localhost"), (trusting, "127.0.0.1")):
            answer = Sender(f"https://{host}:{port}/", settings).send(b"{}", {})
            assert answer.error == "the certificate or the handshake failed", (settings, host)
    finally:
        server.shutdown()
        server.server_close()
