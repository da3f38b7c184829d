"""Writes come faster than the disk takes them: those over the bound get 503 and a time, others their turn.

The disk is held back from outside: the test holds the lock that every commit of every process needs.
"""

from __future__ import annotations

import base64
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from svc.log import Log
from svc_blackbox.client import Client, Response, assert_error, files
from svc_blackbox.server import Server

FILES = 16
SIZE = 60_000
"""So many files of this size wait in memory for their commit; larger batches are in the log by then."""

BATCHES = 80
"""About 70 of them fill the 64 MiB that may wait in one process."""


@contextmanager
def no_commits(database: Path) -> Iterator[None]:
    """Inside the block no process of the database can commit."""
    with Log.open(database) as log, log.commit_lock():
        yield


def batch(number: int) -> dict[str, list[dict[str, str]]]:
    contents = (base64.b64encode(os.urandom(SIZE)).decode() for _ in range(FILES))
    return {
        "operations": [
            {"op": "put", "path": f"/batch{number}/{place}", "content_base64": content}
            for place, content in enumerate(contents)
        ]
    }


class Writers:
    """Batches that are sent at once, one a connection, and what was answered to each."""

    def __init__(self, url: str) -> None:
        self.answers: dict[int, Response] = {}
        self._url = url
        self._threads: list[threading.Thread] = []

    def send(self, number: int) -> None:
        thread = threading.Thread(target=self._send, args=(number,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a writer was never answered"

    def _send(self, number: int) -> None:
        with Client(self._url, timeout=60) as client:
            self.answers[number] = client.post("/files/batch", batch(number))

    def refused(self) -> list[int]:
        return sorted(number for number, answer in self.answers.items() if answer.status != 200)

    def wait_for_refusals(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.refused()) < count:
            assert time.monotonic() < deadline, {n: a.status for n, a in self.answers.items()}
            time.sleep(0.02)


def test_over_the_bound_writes_get_503_with_a_time_and_those_before_them_are_done(
    new_server: Callable[..., Server],
) -> None:
    server = new_server("full", "--workers", "1", "--background", "false")
    client = server.client()
    client.store("/before", b"there")
    writers = Writers(server.url)
    with no_commits(server.database):
        for number in range(BATCHES):
            writers.send(number)
        writers.wait_for_refusals(5)
        # Reads need nobody's turn.
        assert client.read("/before") == b"there"
        assert client.get(files("/batch0/0")).status == 404
        health = client.get("/system/health").json()
        # A busy machine takes so long to refuse five that the lock is told of.
        wrong = {one["code"] for one in health.get("findings", ())}
        assert health["status"] == "healthy" or wrong == {"database.locked"}, health
        assert {one["status"] for one in health["checks"].values()} == {"healthy"}, health
    writers.join()
    refused = writers.refused()
    assert 5 <= len(refused) < BATCHES // 4
    for number in refused:
        error = assert_error(writers.answers[number], 503, "SERVICE_UNAVAILABLE")
        assert error["error"] == "Too many writes are waiting for the disk."
        assert 1 <= int(writers.answers[number]["Retry-After"]) <= 30
    for number in range(BATCHES):
        status = client.head(files(f"/batch{number}/{FILES - 1}")).status
        assert status == (404 if number in refused else 200), number
    again = client.post("/files/batch", batch(refused[0]))
    assert again.status == 200, again.body


def test_who_sends_slowly_holds_no_turn_of_dear_requests(new_server: Callable[..., Server]) -> None:
    """To an open server all are one client, of which eight dear requests are at work at a time."""
    server = new_server("slow", "--workers", "1", "--background", "false")
    client = server.client()
    host, port = server.url.removeprefix("http://").split(":")
    head = (
        "POST {} HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nContent-Type: {}\r\n"
        "Content-Length: 5000\r\n\r\n"
    )
    with ExitStack() as senders:
        for number in range(24):
            form = ("/portal/sign-in", "application/x-www-form-urlencoded")
            url, content_type = form if number % 2 else ("/blobs/check", "application/json")
            sender = senders.enter_context(socket.create_connection((host, int(port))))
            sender.sendall(head.format(url, content_type).encode() + b"{")
        assert client.post("/blobs/check", {"hashes": []}).status == 200
        assert client.get("/versions/log").status == 200
