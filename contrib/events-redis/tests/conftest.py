"""A real Redis, and a wire to it that can be cut."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import redis

from svc_testing import free_port


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server of its own."""
    directory, port = tmp_path_factory.mktemp("redis"), free_port()
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)],
        stdout=subprocess.DEVNULL,
    )
    with redis.Redis(port=port) as client:
        for _ in range(200):
            with suppress(redis.ConnectionError):
                if client.ping():
                    break
            time.sleep(0.05)
        yield port
    server.terminate()
    server.wait(10)


@contextmanager
def wire(port: int, is_cut: Callable[[], bool], passed: Callable[[], None]) -> Iterator[int]:
    """Passes what clients and Redis say, and is asked at each transaction whether to end the connection.

    Args:
        port: of Redis.
        is_cut: is asked before a transaction.
        passed: is called when the answer to one is there, before the client has it.
    """
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server, suppress(OSError):
            while said := client.recv(1 << 20):
                is_transaction = b"XADD" in said
                while is_transaction and not said.endswith(b"EXEC\r\n"):
                    said += client.recv(1 << 20)
                if is_transaction and is_cut():
                    return
                server.sendall(said)
                answer = server.recv(1 << 20)
                if is_transaction:
                    time.sleep(0.01)
                    passed()
                client.sendall(answer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()
