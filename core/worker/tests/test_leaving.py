"""Clients who leave while the application works for them, and those who only end what they send."""

from __future__ import annotations

import socket
import ssl
import struct
import time

import pytest
from gunicorn_process import Gunicorn
from wire import Client

WORK_S = 30
SOON_S = 5
"""The worker needs less than a second; a busy machine gets some more."""


def wait_for_lines(server: Gunicorn, line: str, count: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while server.log.splitlines().count(line) < count:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def leave(client: Client, how: str) -> None:
    if how == "reset":
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.mark.parametrize(
    ("target", "version", "how"),
    [
        ("/compute", "1.0", "close"),
        ("/compute", "1.1", "close"),
        ("/compute", "1.0", "reset"),
        ("/compute", "1.1", "reset"),
        ("/compute-between", "1.1", "close"),
        ("/compute-between", "1.1", "reset"),
        # In the middle of a body without chunks there is nothing that could be sent: see the next test.
        ("/compute-between", "1.0", "reset"),
        ("/compute-declared", "1.1", "reset"),
    ],
)
def test_work_stops_soon_after_its_client_left(server, target, how, version) -> None:
    before, errors = server.log.splitlines().count("stopped"), server.log.count("Traceback")
    client = Client(server.address)
    client.send(f"GET {target}?{WORK_S} HTTP/{version}\r\nHost: x\r\n\r\n".encode())
    if target != "/compute":
        while b"before" not in client.buffer:
            assert client._more()
    else:
        time.sleep(0.4)
    leave(client, how)
    assert wait_for_lines(server, "stopped", before + 1, SOON_S), server.log
    assert server.log.count("Traceback") == errors


def test_in_a_declared_body_the_next_piece_tells(server) -> None:
    """Between the pieces of a body with a length there is nothing that could be sent."""
    before = server.log.splitlines().count("worked on")
    with Client(server.address) as client:
        client.send(b"GET /compute-declared?1 HTTP/1.1\r\nHost: x\r\n\r\n")
        while b"before" not in client.buffer:
            assert client._more()
    assert wait_for_lines(server, "worked on", before + 1, 5)
    with Client(server.address) as client:
        assert client.ask("/").status == 200


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("target", "body"),
    [("/compute", b"computed"), ("/compute-between", b"beforeafter"), ("/compute-declared", b"beforeafter")],
)
def test_who_only_has_nothing_more_to_send_gets_the_answer(server, target, body, version) -> None:
    with Client(server.address) as client:
        client.send(f"GET {target}?1 HTTP/{version}\r\nHost: x\r\n\r\n".encode())
        client.socket.shutdown(socket.SHUT_WR)
        answer = client.answer()
        assert answer is not None
        assert (answer.status, answer.body, answer.complete) == (200, body, True)
        assert answer.head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert client.is_at_end()


def test_pipelined_answers_before_and_behind_are_whole(server) -> None:
    with Client(server.address) as client:
        client.send(
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /compute?0.8 HTTP/1.1\r\nHost: x\r\n\r\n"
            b"GET /compute-between?0.8 HTTP/1.1\r\nHost: x\r\n\r\nGET /unread HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        client.socket.shutdown(socket.SHUT_WR)
        answers = [client.answer() for _ in range(4)]
        assert [answer and answer.status for answer in answers] == [200] * 4
        assert [answer.body for answer in answers[1:]] == [b"computed", b"beforeafter", b"unread"]


def test_a_failure_behind_the_first_bytes_is_one_answer(server) -> None:
    """The head of an error is sent in the same two parts as any other."""
    with Client(server.address) as client:
        client.send(b"GET /compute-badly?0.8 HTTP/1.1\r\nHost: x\r\n\r\n")
        client.socket.shutdown(socket.SHUT_WR)
        answer = client.answer()
        assert answer is not None
        assert (answer.status, answer.json["code"]) == (500, "INTERNAL_ERROR")
        assert client.is_at_end()


def test_with_a_unix_socket_both_are_told_apart(launch, tmp_path) -> None:
    server = launch(bind=f"unix:{tmp_path}/s")
    with Client(server.address) as client:
        client.send(b"GET /compute?1 HTTP/1.1\r\nHost: x\r\n\r\n")
        client.socket.shutdown(socket.SHUT_WR)
        answer = client.answer()
        assert answer is not None
        assert answer.body == b"computed"
    with Client(server.address) as client:
        client.send(f"GET /compute?{WORK_S} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(0.4)
    assert wait_for_lines(server, "stopped", 1, SOON_S), server.log


def test_with_tls_the_end_of_what_is_sent_is_the_end(launch, certificate) -> None:
    server = launch("--certfile", certificate[0], "--keyfile", certificate[1])
    context = ssl.create_default_context(cafile=certificate[0])
    context.check_hostname = False
    with Client(server.address, context=context) as client:
        client.send(f"GET /compute?{WORK_S} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(0.4)
    assert wait_for_lines(server, "stopped", 1, SOON_S), server.log


def test_a_stop_does_not_take_the_work_of_those_who_wait_for_it(launch) -> None:
    """At a stop the server itself ends the reading side of idle connections; what they sent is served."""
    server = launch("--keep-alive", "60")
    with Client(server.address) as client:
        client.send(b"GET /compute?1 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        server.process.terminate()
        answer = client.answer()
        assert answer is not None
        assert answer.body == b"computed"
