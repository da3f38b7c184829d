"""Thousands of clients of event streams in one process, which come back where they were.

Reads one line of JSON: ``port``, ``clients`` (for each the number of its kind), and ``kinds`` (``path``,
``token``, ``last``, ``until``). Prints a line when all listen, and one when each has had a message with its
text ``until``: for each kind what the first of its clients has had, and where others had something else.
"""

from __future__ import annotations

import hashlib
import json
import resource
import select
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

RECEIVED = 262_144
RETRY_S = 0.2
OF_STREAMS = (b"\nevent: server_ready\n", b"\nevent: heartbeat\n")


class Stream:
    """One client.

    Attributes:
        digest: of all the events that it has had.
        count: of these events.
        entries: of all of them.
        last: the id of the last message.
        kept: the events, where they are kept.
        is_listening: whether the server has begun to answer.
        is_done: whether it has had the last event.
        begun: how often it has begun to listen.
    """

    def __init__(self, kind: int, settings: dict[str, Any], kept: list[bytes] | None) -> None:
        self.kind = kind
        self.digest = hashlib.blake2b(digest_size=16)
        self.count = self.entries = 0
        self.last: str = settings["last"]
        self.kept = kept
        self.is_listening = self.is_done = False
        self.begun = 0
        self._settings = settings
        self._until: bytes = settings["until"].encode()
        self._rest = b""
        self.socket: socket.socket | None = None

    def connect(self, port: int) -> None:
        self._rest, self.is_listening = b"", False
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        # HTTP/1.0: an answer without chunks.
        head = f"GET {self._settings['path']} HTTP/1.0\r\nHost: clients\r\nLast-Event-ID: {self.last}\r\n"
        self.socket.sendall(f"{head}Authorization: Bearer {self._settings['token']}\r\n\r\n".encode())
        self.socket.setblocking(False)

    def read(self) -> bool:
        """Takes what has come; False at the end."""
        assert self.socket is not None
        try:
            data = self.socket.recv(RECEIVED)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self.socket.close()
            self.socket = None
            return False
        if self._rest:
            data = self._rest + data
        if not self.is_listening:
            head, separator, data = data.partition(b"\r\n\r\n")
            if not separator:
                self._rest = head
                return True
            if not head.startswith((b"HTTP/1.0 200", b"HTTP/1.1 200")):
                self._rest = b""
                return True
            self.is_listening = True
            self.begun += 1
        whole, separator, self._rest = data.rpartition(b"\n\n")
        if separator:
            self._take(whole)
        return True

    def _take(self, block: bytes) -> None:
        if b"\n: " in block or block.startswith(b": ") or any(name in block for name in OF_STREAMS):
            frames = [one for one in block.split(b"\n\n") if not one.startswith(b": ")]
            if not frames:
                return
            self._note(frames[-1])
            frames = [one for one in frames if not any(name in one for name in OF_STREAMS)]
            if not frames:
                return
            block = b"\n\n".join(frames)
        self._note(block)
        self.digest.update(block + b"\n\n")
        self.count += block.count(b"\n\n") + 1
        self.entries += block.count(b'{"path":')
        self.is_done = self.is_done or self._until in block
        if self.kept is not None:
            self.kept.append(block)

    def _note(self, block: bytes) -> None:
        begin = block.rindex(b"id: ", 0, block.rindex(b"\nevent: "))
        self.last = block[begin + 4 : block.index(b"\n", begin)].decode()


class Clients:
    """All of them, in one loop."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._port = order["port"]
        kinds = order["kinds"]
        firsts: set[int] = set()
        self.streams = []
        for kind in order["clients"]:
            self.streams.append(Stream(kind, kinds[kind], None if kind in firsts else []))
            firsts.add(kind)
        self._poll = select.epoll()
        self._by_descriptor: dict[int, Stream] = {}
        self._away = list(self.streams)
        self._due = 0.0

    def run(self) -> Iterator[str]:
        """Reads; yields ``listening`` once, and ``done`` at the end."""
        has_told = False
        while True:
            if self._away and time.monotonic() >= self._due:
                self._connect()
            for descriptor, _ in self._poll.poll(0.1, 1024):
                stream = self._by_descriptor[descriptor]
                if not stream.read():
                    del self._by_descriptor[descriptor]
                    self._away.append(stream)
                    self._due = time.monotonic() + RETRY_S
            if not has_told and all(stream.is_listening for stream in self.streams):
                has_told = True
                yield "listening"
            if all(stream.is_done for stream in self.streams):
                yield "done"
                return

    def _connect(self) -> None:
        while self._away:
            stream = self._away[-1]
            try:
                stream.connect(self._port)
            except OSError:
                self._due = time.monotonic() + RETRY_S
                return
            self._away.pop()
            assert stream.socket is not None
            self._by_descriptor[stream.socket.fileno()] = stream
            self._poll.register(stream.socket, select.EPOLLIN)

    def report(self) -> dict[str, Any]:
        """What each kind has had, and which clients had something else."""
        firsts = {stream.kind: stream for stream in self.streams if stream.kept is not None}
        others = [
            (stream.kind, stream.count, firsts[stream.kind].count)
            for stream in self.streams
            if stream.digest.digest() != firsts[stream.kind].digest.digest()
        ]
        kept = {kind: b"\n\n".join(stream.kept or []).decode() for kind, stream in firsts.items()}
        return {
            "kept": kept,
            "others": others,
            "count": sum(stream.count for stream in self.streams),
            "entries": sum(stream.entries for stream in self.streams),
            "begun": [min(s.begun for s in self.streams), max(s.begun for s in self.streams)],
        }


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    clients = Clients(json.loads(sys.stdin.readline()))
    for word in clients.run():
        print(json.dumps({"word": word, **(clients.report() if word == "done" else {})}), flush=True)


if __name__ == "__main__":
    main()
