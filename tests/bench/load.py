"""A load generator for HTTP: many connections in one epoll loop, in a process of its own.

Usage: ``python load.py HOST PORT CONNECTIONS SECONDS PAUSE < request``; prints one JSON object:
``rate`` (requests a second), ``p50_ms``, ``p99_ms``; SIGTERM ends it early. The request is sent again and
again, on each connection when its answer is there and PAUSE seconds (0: none) are over.
"""

from __future__ import annotations

import json
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import processes

if TYPE_CHECKING:
    from servers import Server


@dataclass(frozen=True, slots=True)
class Load:
    """What a run measured: requests a second, and latencies in milliseconds."""

    rate: float
    p50_ms: float
    p99_ms: float


class Loading:
    """A load that goes on in another process; as a context, it ends with its block."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            if self._process.poll() is None:
                self._process.kill()

    def stop(self) -> Load:
        """Ends it now, and returns what it measured. Blocks for a moment."""
        self._process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self) -> Load:
        """Waits for its end, and returns what it measured."""
        output, _ = self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"the load generator failed: {self._process.returncode}")
        return Load(**json.loads(output))


def begin(server: Server, path: str, connections: int, seconds: float, pause: float = 0.0) -> Loading:
    """Loads a server from another process, so that the generator has an interpreter to itself.

    Args:
        server: is asked.
        path: of the file that is asked for; every answer must be as long as the first one.
        connections: how many at once.
        seconds: for how long at most.
        pause: seconds that each connection rests after an answer.
    """
    command = [sys.executable, __file__, *map(str, (*server.address, connections, seconds, pause))]
    process = processes.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(server.request(path))
    process.stdin.close()
    process.stdin = None
    return Loading(process)


def _answer_size(address: tuple[str, int], request: bytes) -> int:
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, _ = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        match = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        assert match, head
        return len(head) + 4 + int(match[1])


def _run(
    address: tuple[str, int], request: bytes, connections: int, seconds: float, pause: float
) -> dict[str, float]:
    size = _answer_size(address, request)
    poller = select.epoll()
    clients: dict[int, socket.socket] = {}
    began: dict[int, float] = {}
    missing: dict[int, int] = {}
    latencies: list[float] = []
    resting: deque[tuple[float, int]] = deque()
    clock = time.perf_counter
    for _ in range(connections):
        client = socket.create_connection(address, timeout=10)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        clients[client.fileno()] = client
        poller.register(client.fileno(), select.EPOLLIN)

    def ask(number: int) -> None:
        began[number], missing[number] = clock(), size
        clients[number].sendall(request)

    over = False

    def stop(*_: object) -> None:
        nonlocal over
        over = True

    signal.signal(signal.SIGTERM, stop)
    start = now = clock()
    for number in clients:
        ask(number)
    buffer = bytearray(262144)
    end = start + seconds
    while (now := clock()) < end and not over:
        while resting and resting[0][0] <= now:
            ask(resting.popleft()[1])
        timeout = min(1.0, max(0.0, resting[0][0] - now)) if resting else 1.0
        for number, _ in poller.poll(timeout):
            got = clients[number].recv_into(buffer)
            assert got, "the server closed a connection"
            missing[number] -= got
            if missing[number] == 0:
                now = clock()
                latencies.append(now - began.pop(number))
                if pause:
                    resting.append((now + pause, number))
                else:
                    ask(number)
    elapsed = now - start
    # Who is still waiting counts too: a starving connection must not vanish from the figures.
    latencies.extend(now - since for since in began.values())
    latencies.sort()
    return {
        "rate": len(latencies) / elapsed,
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[int(len(latencies) * 0.99)] * 1000,
    }


if __name__ == "__main__":
    host, port, *numbers = sys.argv[1:]
    connections, seconds, pause = int(numbers[0]), float(numbers[1]), float(numbers[2])
    print(json.dumps(_run((host, int(port)), sys.stdin.buffer.read(), connections, seconds, pause)))
