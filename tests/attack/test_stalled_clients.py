"""Clients who take their time: uploads that stop or drip, answers that nobody reads, no descriptors left.

All connections go to 127.0.0.1, are bounded in number, and end with the test.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest

from attack.processes import Usage, cpu_seconds, usage, workers
from attack.scale import SCALE, scaled
from svc_blackbox.client import files
from svc_blackbox.raw import RawConnection
from svc_blackbox.server import Server

UPLOADS = 500
READERS = 170
"""Twelve times as many are the 6,000 and 2,000 of the long run."""

UPLOAD_BYTES = 40_000
"""Most memory of a worker for an upload that waits."""

HEALTH_S = 5.0
LARGE = bytes(range(256)) * 12_288
Start: TypeAlias = Callable[..., tuple[Server, int]]
SLOW = {"SVC_HTTP_RATE_PERIOD": "2", "SVC_HTTP_WRITE_TIMEOUT": "2"}


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Lets this process have as many sockets as a test needs."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def connections(url: str, count: int, data: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent the data each, with ``%d`` a number, and do nothing more."""
    parts = urlsplit(url)
    opened: list[socket.socket] = []
    with contextlib.ExitStack() as stack:
        for number in range(count):
            client = stack.enter_context(socket.create_connection((parts.hostname, parts.port), 30))
            client.sendall(data.replace(b"%d", b"%d" % number))
            opened.append(client)
        yield opened


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server, with options and variables of the environment; gives it and its one worker."""
    with contextlib.ExitStack() as stack:

        def begin(*more: str, **environment: str) -> tuple[Server, int]:
            options = ("--workers", "1", "--background", "false", *more)
            server = Server(tmp_path / "stalled.svcdb", *options, environment=environment)
            stack.callback(server.close)
            server.start().client().store("/large", LARGE)
            (worker,) = workers(server)
            return server, worker

        yield begin


def use(server: Server) -> None:
    """Lets a worker do what workers do, so that its size is that of one in use."""
    client = server.client()
    for number in range(1500):
        assert client.get(files(f"/nothing/{number}")).status == 404
        if number % 10 == 0:
            client.store(f"/used/{number}", b"x" * 3000)
    assert len(client.read("/large")) == len(LARGE)


def size(worker: int) -> Usage:
    taken = usage(worker)
    assert taken is not None
    return taken


def health_s(server: Server) -> float:
    """How long the answer to a new client takes."""
    began = time.monotonic()
    with RawConnection(server.url, 60) as connection:
        connection.send(b"GET /system/health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = connection.response()
    assert answer is not None
    assert answer.status == 200
    return time.monotonic() - began


def assert_small_again(worker: int, before: Usage) -> None:
    """Waits until a worker is within a fifth of its size before."""
    limit = (before.anonymous + before.mapped) * 1.2
    deadline = time.monotonic() + 20
    while (now := size(worker)).anonymous + now.mapped > limit:
        assert time.monotonic() < deadline, (before, now)
        time.sleep(0.2)


def upload(name: str, declared: int, sent: int) -> bytes:
    return (
        f"PUT {files(f'/up/{name}')} HTTP/1.1\r\nHost: x\r\nContent-Length: {declared}\r\n\r\n".encode()
        + b"x" * sent
    )


def stall(server: Server, worker: int, count: int, sent: int) -> None:
    """Lets so many uploads begin, send so many bytes, and wait until they are told to go."""
    before = size(worker)
    with connections(server.url, count, upload("%d", 1_000_000, sent)) as clients:
        assert health_s(server) < HEALTH_S
        deadline = time.monotonic() + 60
        # One that was open before, for a moment, may be closed by now.
        while size(worker).files < before.files + count - 5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        each = (size(worker).anonymous - before.anonymous) / count
        # A small one takes what a request takes; a larger one what it has sent besides.
        assert each < UPLOAD_BYTES + 1.5 * sent, each
        assert health_s(server) < HEALTH_S
        for client in clients:
            client.settimeout(60)
            assert client.recv(12) == b"HTTP/1.1 408"


@pytest.mark.parametrize(("sent", "share"), [(20, 1.0), (70_000, 0.5)])
def test_uploads_that_stop_cost_little_and_are_let_go(start: Start, sent: int, share: float) -> None:
    server, worker = start(SVC_HTTP_RATE_PERIOD="6" if SCALE < 4 else "30", SVC_BODY_TIMEOUT="600")
    use(server)
    count = round(scaled(UPLOADS) * share)
    before = size(worker)
    for _ in range(1 if SCALE < 4 else 2):
        # In a long run a second storm adds nothing to what the first one left.
        stall(server, worker, count, sent)
        assert_small_again(worker, before)
    assert server.client().get(files("/up")).status == 404
    assert "Traceback" not in server.log_text()


def test_an_upload_that_drips_is_cut_off_and_a_slow_one_is_not(start: Start) -> None:
    server, _ = start("--min-rate", "300", **SLOW)
    with (
        RawConnection(server.url) as dripping,
        RawConnection(server.url) as chunked,
        RawConnection(server.url) as slow,
    ):
        dripping.send(upload("dripping", 10_000, 10))
        chunked.send(
            f"PUT {files('/up/chunked')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        slow.send(upload("slow", 5_000, 0))
        for _ in range(50):
            dripping.send(b"x")
            chunked.send(b"1\r\nx\r\n")
            slow.send(b"x" * 100)
            time.sleep(0.1)
        for connection in (dripping, chunked):
            answer = connection.response()
            assert answer is not None
            assert answer.status == 408
        stored = slow.response()
        assert stored is not None
        assert stored.status == 201
    assert server.client().names("/up") == ["slow"]


def test_who_reads_slowly_is_served_and_who_stops_reading_is_not(
    start: Start,
) -> None:
    server, _ = start(**SLOW)
    request = f"GET {files('/large')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    parts = urlsplit(server.url)
    received = {"slow": 0, "stopped": 0}
    with socket.socket() as slow, socket.socket() as stopped:
        for client in (slow, stopped):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            client.settimeout(30)
            client.connect((parts.hostname, parts.port))
            client.sendall(request)
        for _ in range(50):
            received["slow"] += len(slow.recv(3000))
            time.sleep(0.1)
        # Twice the time-out has passed, and the system had room for more of the answer only now and then.
        for name, client in (("slow", slow), ("stopped", stopped)):
            with contextlib.suppress(ConnectionResetError):
                while piece := client.recv(1 << 20):
                    received[name] += len(piece)
    assert received["slow"] > len(LARGE)
    assert received["stopped"] < len(LARGE)


def test_clients_who_pipeline_and_never_read_leave_a_share_to_others(
    start: Start,
) -> None:
    server, worker = start()
    use(server)
    before = size(worker)
    request = f"GET {files('/large')} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 4
    waits = []
    count = scaled(READERS)
    with connections(server.url, count, request):
        waits += [health_s(server) for _ in range(10)]
        assert (size(worker).anonymous - before.anonymous) / count < len(LARGE) / 10
    assert max(waits) < HEALTH_S, waits
    assert_small_again(worker, before)
    assert "Traceback" not in server.log_text()


def test_a_worker_without_descriptors_says_so_once_and_goes_on(
    start: Start,
) -> None:
    server, worker = start()
    client = server.client()
    client.store("/before", b"there")
    _, hard = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    assert resource.prlimit(worker, resource.RLIMIT_NOFILE)[0] == hard, "the limit was not raised"
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (size(worker).files + 20, hard))
    lines, cpu = len(server.log_text().splitlines()), cpu_seconds(worker)
    seconds = scaled(3, most=25)
    with connections(server.url, 100, b"GET /system/health HTTP/1.1\r\n"):
        time.sleep(seconds)
        assert client.read("/before") == b"there"
        client.store("/meanwhile", b"x" * 200_000)
    # In a long run those who got in have their 15 seconds for the head, and are told.
    late = "The head of the request took too long"
    logged = [line for line in server.log_text().splitlines()[lines:] if late not in line]
    assert len(logged) == 1, logged
    assert "No connection can be accepted" in logged[0]
    assert cpu_seconds(worker) - cpu < 0.3 * seconds
    # The hundred have left, and are taken before: twenty at a time, each time a second after a failure. What
    # a busy machine takes for any answer comes on top.
    waited = health_s(server)
    assert waited < 100 / 20 + HEALTH_S + 10 * health_s(server)
    assert len(client.read("/meanwhile")) == 200_000
