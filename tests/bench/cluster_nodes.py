"""Nodes of a cluster on this machine, and lines between them that count what they carry."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import processes
from servers import Server, program, running_svc

__all__ = [
    "Exchange",
    "Line",
    "ask",
    "copied_node",
    "found",
    "head",
    "kill",
    "line_to",
    "node",
    "program",
    "wait_for",
]

_LONGEST_S = 3_000.0


@dataclass
class Exchange:
    """Questions and answers from one hello to the next: how many, and bytes with all that HTTP adds."""

    questions: list[str]
    sent: int = 0
    received: int = 0


class Line:
    """A way to a node that notes each question on it.

    Attributes:
        address: where it begins.
        exchanges: what was asked, in its order; of one connection at a time.
        received: all bytes that have come back.
    """

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.exchanges: list[Exchange] = []
        self.received = 0
        self._port = port
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Takes no more connections."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._port)) as server,
        ):
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    piece = ready.recv(1 << 16)
                    if not piece:
                        return
                    if ready is client:
                        self._note(piece)
                        server.sendall(piece)
                    else:
                        self.received += len(piece)
                        if self.exchanges:
                            self.exchanges[-1].received += len(piece)
                        client.sendall(piece)

    def _note(self, piece: bytes) -> None:
        if piece.startswith(b"POST /sync/"):
            question = piece[11:].split(b" ", 1)[0].decode()
            if question == "hello" or not self.exchanges:
                self.exchanges.append(Exchange([]))
            self.exchanges[-1].questions.append(question)
        if self.exchanges:
            self.exchanges[-1].sent += len(piece)


@contextlib.contextmanager
def line_to(server: Server) -> Iterator[Line]:
    """A line to a node."""
    line = Line(server.port)
    yield line
    line.close()


@contextlib.contextmanager
def node(directory: Path, *options: str) -> Iterator[Server]:
    """A node with a directory of its own, which may hold its file already."""
    directory.mkdir(exist_ok=True)
    every = ("--plugin-option", "sync.interval_seconds=1")
    with running_svc(directory / "x.svcdb", "disabled", options=(*every, *options)) as (server, _):
        yield server


def ask(server: Server, method: str, path: str, body: Any = None) -> Any:
    """Sends JSON, and returns that of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_LONGEST_S)
    try:
        payload = None if body is None else json.dumps(body)
        connection.request(method, path, payload, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {content[:500]!r}")
    return json.loads(content)


def head(server: Server) -> str:
    """The root hash of a node."""
    found: str = ask(server, "GET", "/sync/status")["head"]
    return found


def wait_for(holds: Callable[[], bool], pause: float = 0.02) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + _LONGEST_S
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("it does not come to be so")
        time.sleep(pause)


def found(directory: Path) -> int:
    """Makes the node in a directory one of a cluster; returns the id of the other, which is away and empty.

    A copy of a file is a node of its own only where it knows of another member.
    """
    with node(directory) as server, node(directory.with_name("away")) as away:
        ask(away, "POST", "/sync/enter", {"address": server.url("")})
        node_id: int = ask(away, "GET", "/sync/status")["node_id"]
    return node_id


@contextlib.contextmanager
def copied_node(of: Path, server: Server, away: int, directory: Path, address: str) -> Iterator[Server]:
    """A node that begins with a copy of another one's file, and joins through that: no file travels.

    Args:
        of: the directory of the other node.
        server: that node.
        away: the id that ``found`` returned; that node is removed now.
        directory: of the new node.
        address: where it finds the other one.
    """
    directory.mkdir()
    shutil.copyfile(of / "x.svcdb", directory / "x.svcdb")
    with node(directory) as copy:
        ask(copy, "POST", "/sync/rejoin", {"address": address})
        ask(server, "DELETE", f"/sync/peers/{away}")
        wait_for(lambda: head(copy) == head(server))
        yield copy


def kill(server: Server) -> None:
    """Kills all processes of a server at once."""
    for pid in (server.pid, *processes.children(server.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
