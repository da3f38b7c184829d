"""One event to many: svc's streams beside a loop around gevent, and beside NATS."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measurement import Bench
from servers import Server, nats, running_svc, sse_loop
from streaming import resident, worker_of

_CLIENTS = Path(__file__).parent / "served" / "fan_out_clients.py"
_FRAME = (
    b"id: 000000000042.000001\nevent: entries_created\n"
    b'data: {"event_id":"000000000042.000001","event_type":"entries_created","timestamp":1771212600000,'
    b'"payload":{"entries":[{"path":"/streams/1001"}]}}\n\n'
)
"""What one of svc is like."""

Send = Callable[[int], None]


def fan_out(bench: Bench) -> None:
    """Small events to 1,000 streams, sent one after another: deliveries a second, and memory of a client."""
    count, events = bench.choose(1_000, 100), bench.choose(200, 20)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    speeds: dict[str, list[float]] = {"svc": [], "loop": [], "nats": []}
    sizes: dict[str, list[float]] = {"svc": [], "loop": [], "nats": []}
    for number in range(bench.rounds(3)):
        directory = bench.directory / str(number)
        directory.mkdir()
        for name, measure in (("svc", _svc), ("loop", _loop), ("nats", _nats)):
            speed, size = measure(directory, count, events)
            speeds[name].append(speed)
            sizes[name].append(size)
    report = bench.report
    for name, words in (("loop", "a gevent loop under gunicorn"), ("nats", "NATS, which stores nothing")):
        work = f"events to {count:,} clients"
        report.compare(work, speeds["svc"], "deliveries/s", words, speeds[name])
        work = f"memory of a client, of {count:,}"
        report.compare(work, sizes["svc"], "KiB", words, sizes[name], at_most=True)


def _svc(directory: Path, count: int, events: int) -> tuple[float, float]:
    environment = {**os.environ, "SVC_BACKGROUND": "false"}
    with running_svc(directory / "streams.svcdb", "disabled", environment) as (server, _):
        head = "GET /system/events?events=server_ready,entries_created HTTP/1.1\r\nHost: bench\r\n\r\n"
        with _puts(server, "/files/streams/", b"x") as send:
            markers = ("server_ready\n", "event: entries_created\n")
            return _measure(server, worker_of(server), head, markers, count, events, send)


def _loop(directory: Path, count: int, events: int) -> tuple[float, float]:
    with sse_loop(directory) as server:
        head = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n"
        with _puts(server, "/", _FRAME) as send:
            markers = (": events\n", "event: entries_created\n")
            return _measure(server, worker_of(server), head, markers, count, events, send)


def _nats(directory: Path, count: int, events: int) -> tuple[float, float]:
    with nats(directory) as server:
        head = 'CONNECT {"verbose":false,"pedantic":false}\r\nSUB events 1\r\nPING\r\n'
        with socket.create_connection(server.address) as publisher:
            publisher.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\n')
            answers = publisher.makefile("rb")

            def send(_number: int) -> None:
                publisher.sendall(b"PUB events %d\r\n%b\r\nPING\r\n" % (len(_FRAME), _FRAME))
                while answers.readline() != b"PONG\r\n":
                    pass

            return _measure(server, server.pid, head, ("PONG\r\n", "MSG events "), count, events, send)


@contextlib.contextmanager
def _puts(server: Server, prefix: str, body: bytes) -> Iterator[Send]:
    connection = http.client.HTTPConnection(*server.address)

    def send(number: int) -> None:
        connection.request("PUT", f"{prefix}{number}", body)
        answer = connection.getresponse()
        answer.read()
        assert answer.status < 300, answer.status

    yield send
    connection.close()


def _measure(
    server: Server, process: int, head: str, markers: tuple[str, str], count: int, events: int, send: Send
) -> tuple[float, float]:
    """Deliveries a second, and KiB of memory for a client."""
    memory = resident(process)
    clients = subprocess.Popen(
        [sys.executable, _CLIENTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert clients.stdin is not None
    assert clients.stdout is not None
    ready, marker = markers
    order = {"port": server.port, "count": count, "head": head, "ready": ready, "marker": marker}
    try:
        clients.stdin.write(json.dumps({**order, "wanted": events}) + "\n")
        clients.stdin.flush()
        assert clients.stdout.readline() == "ready\n"
        size = (resident(process) - memory) / count
        began = time.monotonic()
        for number in range(events):
            send(number)
        word, at = clients.stdout.readline().split()
        assert word == "done"
        return count * events / (float(at) - began), size
    finally:
        clients.kill()
        clients.communicate()
