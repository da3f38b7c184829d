"""``svc start`` with each of its worker classes."""

from __future__ import annotations

import socket

import pytest


@pytest.mark.parametrize("worker_class", ["http1", "gevent", "gthread"])
def test_every_worker_class_serves_and_stops(start, worker_class: str) -> None:
    server = start("--worker-class", worker_class)
    assert server.get("/system/health")[0] == 200
    status, body = server.get("/nowhere")
    assert status == 404
    assert b'"code"' in body
    assert server.stop() == 0


def test_without_the_option_it_is_our_own(start) -> None:
    server = start()
    with socket.create_connection((server.host, server.port), timeout=20) as client:
        client.sendall(b"GET /system/health HTTP/1.1\r\n\r\n")
        answer = client.makefile("rb").read()
    assert b'"A request of HTTP/1.1 needs a Host."' in answer
