"""``svc start`` with each of its worker classes."""

from __future__ import annotations

import pytest
from wire import Client


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
    with Client((server.host, server.port)) as client:
        client.send(b"GET /system/health HTTP/1.1\r\n\r\n")
        answer = client.answer()
        assert answer is not None
        assert answer.json["error"] == "A request of HTTP/1.1 needs a Host."
