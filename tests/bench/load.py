"""A load generator for HTTP: many connections in one epoll loop, in a process of its own.

Usage: ``python load.py HOST PORT CONNECTIONS SECONDS < request``; prints one JSON object:
``rate`` (requests a second), ``p50_ms``, ``p99_ms``. The request is sent again and again, on each
connection when its answer is there.
"""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What a run measured: requests a second, and latencies in milliseconds."""

    rate: float
    p50_ms: float
    p99_ms: float


def measure(address: tuple[str, int], request: bytes, connections: int, seconds: float) -> Load:
    """Loads a server from another process, so that the generator has an interpreter to itself. Blocks."""
    command = [sys.executable, __file__, *map(str, (*address, connections, seconds))]
    run = subprocess.run(command, input=request, capture_output=True, check=True)
    return Load(**json.loads(run.stdout))


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


def _run(address: tuple[str, int], request: bytes, connections: int, seconds: float) -> dict[str, float]:
    size = _answer_size(address, request)
    poller = select.epoll()
    clients: dict[int, socket.socket] = {}
    began: dict[int, float] = {}
    missing: dict[int, int] = {}
    for _ in range(connections):
        client = socket.create_connection(address, timeout=10)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        clients[client.fileno()] = client
        poller.register(client.fileno(), select.EPOLLIN)
    latencies: list[float] = []
    clock = time.perf_counter
    start = clock()
    for number, client in clients.items():
        began[number], missing[number] = clock(), size
        client.sendall(request)
    buffer = bytearray(262144)
    end = start + seconds
    while (now := clock()) < end:
        for number, _ in poller.poll(1.0):
            client = clients[number]
            got = client.recv_into(buffer)
            assert got, "the server closed a connection"
            missing[number] -= got
            if missing[number] == 0:
                now = clock()
                latencies.append(now - began[number])
                began[number], missing[number] = now, size
                client.send(request)
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
    host, port, connections, seconds = sys.argv[1:]
    print(json.dumps(_run((host, int(port)), sys.stdin.buffer.read(), int(connections), float(seconds))))
