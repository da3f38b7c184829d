"""What a node takes of others over HTTP has bounds: bytes of a question, and time of an answer."""

from __future__ import annotations

import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from svc_sync.api import MAXIMUM_QUESTION
from svc_sync_http.configuration import SyncHttpConfiguration
from svc_sync_http.connection import HttpConnection

from svc.errors import ServiceUnavailable

from .conftest import Cluster  # noqa: TID252


def test_a_question_of_many_bytes_is_refused(cluster: Cluster) -> None:
    a = cluster.start("a")
    fields = {"Content-Type": "application/cbor"}
    for question in ("hello", "registers", "tree", "objects", "pull"):
        for size in (MAXIMUM_QUESTION + 1, 7 << 20):
            answer = a.request("POST", f"/sync/{question}", body=b"\x80" * size, headers=fields)
            assert answer.status == 413, (question, answer)
        small = a.request("POST", f"/sync/{question}", body=b"\x80" * (1 << 20), headers=fields)
        assert small.status in (400, 413), (question, small)


@pytest.mark.parametrize("what", ["head", "body"])
def test_an_answer_that_drips_is_ended(what: str) -> None:
    """Each byte comes long before the time limit of a single one is over."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        is_dripping = threading.Event()

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65_536)
                end = b"\r\n\r\n" if what == "body" else b""
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nX: " + end)
                try:
                    while True:
                        peer.sendall(b"x")
                        is_dripping.set()
                        time.sleep(0.02)
                except OSError:
                    pass

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        url = urlsplit(f"http://127.0.0.1:{listener.getsockname()[1]}")
        connection = HttpConnection(url, SyncHttpConfiguration())
        failures: list[Exception] = []

        def ask() -> None:
            try:
                connection.post("/sync/hello", b"", "application/cbor", None)
            except ServiceUnavailable as error:
                failures.append(error)

        asking = threading.Thread(target=ask, daemon=True)
        connection.abort()
        asking.start()
        assert is_dripping.wait(60)
        connection.abort()
        asking.join(60)
        assert not asking.is_alive()
        assert len(failures) == 1
        connection.close()
        server.join(60)
