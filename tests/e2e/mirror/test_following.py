"""A watching mirror hears of changes by the server's event stream; without one it asks now and then."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from svc_mirror.client.following import Follower

from svc_blackbox.server import Server
from svc_client import Client, Response

WITHIN_S = 60.0


class Spy(Client):
    """Keeps what is sent to begin streams, and the streams; none begins before it may."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.begun: list[str | None] = []
        self.streams: list[Response] = []
        self.may_stream = threading.Event()

    def request(self, method: str, url: str, **how: Any) -> Response:
        headers = how.get("headers") or {}
        if url == "/system/events":
            self.may_stream.wait(WITHIN_S)
            self.begun.append(headers.get("Last-Event-ID"))
        response = super().request(method, url, **how)
        if url == "/system/events":
            self.streams.append(response)
        return response


@pytest.fixture
def spy(shared_server: Server) -> Iterator[Spy]:
    with Spy(shared_server.url) as client:
        yield client


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_server_is_asked_when_it_tells_and_after_a_lost_stream(spy: Spy, area: str) -> None:
    follower = Follower(spy, area)
    try:
        assert follower.must_ask(), "nobody has told anything yet"
        spy.may_stream.set()
        until(lambda: bool(spy.streams) and follower.must_ask())
        assert not follower.must_ask()
        spy.files.put(f"{area}/x", b"1")
        until(follower.must_ask)
        assert not follower.must_ask()
        spy.files.put("/elsewhere/x", b"1")
        spy.files.put(f"{area}/y", b"1")
        until(follower.must_ask)
        spy.streams[0]._raw.connection.sock.shutdown(socket.SHUT_RDWR)
        until(lambda: len(spy.begun) > 1 and len(spy.streams) > 1)
        assert (spy.begun[0], bool(spy.begun[1])) == (None, True)
        until(lambda: not follower.must_ask())
        spy.files.put(f"{area}/z", b"1")
        until(follower.must_ask)
    finally:
        follower.close()


def test_a_server_without_streams_is_asked_each_time(new_server: Any) -> None:
    server = new_server("quiet", "--plugins", "auth.disabled,files,mirror")
    with Spy(server.url) as client:
        client.may_stream.set()
        follower = Follower(client, "/")
        try:
            until(lambda: bool(client.begun))
            assert all(follower.must_ask() for _ in range(3))
        finally:
            follower.close()
    assert client.streams == []
