"""The client's side of the tests: raw sockets, and answers as they came."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
from dataclasses import dataclass, field


@dataclass(slots=True)
class Answer:
    """One answer; header names are lower case, repeated fields are lists."""

    status: int
    headers: dict[str, list[str]]
    body: bytes = b""
    complete: bool = True
    head: bytes = field(default=b"", repr=False)

    def get(self, name: str) -> str | None:
        values = self.headers.get(name)
        assert values is None or len(values) == 1, (name, values)
        return values[0] if values else None

    @property
    def json(self):
        return json.loads(self.body)


class Reader:
    """Takes answers out of a stream of bytes."""

    def __init__(self, receive) -> None:
        self._receive = receive
        self.buffer = b""
        self.ended = False

    def _more(self) -> bool:
        if self.ended:
            return False
        try:
            data = self._receive()
        except (ConnectionError, ssl.SSLError):
            data = b""
        self.ended = not data
        self.buffer += data
        return bool(data)

    def answer(self, *, to_head: bool = False) -> Answer | None:
        """The next answer, or None when the stream ended before it."""
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                return None
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.\d (\d{3})(?: [^\r\n]*)?", first)
        assert match, first
        headers: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert re.fullmatch(r"[A-Za-z0-9-]+", name), line
            headers.setdefault(name.lower(), []).append(value)
        answer = Answer(int(match[1]), headers, head=head)
        if answer.status < 200 or answer.status in (204, 304) or to_head:
            return answer
        length, coding = answer.get("content-length"), answer.get("transfer-encoding")
        assert length is None or coding is None, head
        if coding is not None:
            assert coding == "chunked"
            answer.body, answer.complete = self._chunks()
        elif length is not None:
            answer.body, answer.complete = self._exactly(int(length))
        else:
            while self._more():
                pass
            answer.body, self.buffer = self.buffer, b""
        return answer

    def _exactly(self, size: int) -> tuple[bytes, bool]:
        while len(self.buffer) < size:
            if not self._more():
                break
        found, self.buffer = self.buffer[:size], self.buffer[size:]
        return found, len(found) == size

    def _chunks(self) -> tuple[bytes, bool]:
        parts = []
        while True:
            while b"\r\n" not in self.buffer:
                if not self._more():
                    return b"".join(parts), False
            line, _, self.buffer = self.buffer.partition(b"\r\n")
            size = int(line, 16)
            part, complete = self._exactly(size + 2)
            parts.append(part[:size])
            if not complete:
                return b"".join(parts), False
            assert part[size:] == b"\r\n"
            if size == 0:
                return b"".join(parts), True

    def is_at_end(self) -> bool:
        """Waits for more; whether there is none."""
        return not self.buffer and not self._more()


class Client(Reader):
    """One connection."""

    def __init__(self, address, timeout: float = 8.0, context: ssl.SSLContext | None = None) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket)
        super().__init__(lambda: self.socket.recv(65536))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes) -> None:
        """A server that has answered and hung up already is no failure."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def ask(self, target: str = "/", method: str = "GET", *fields: str, body: bytes = b"") -> Answer:
        lines = [f"{method} {target} HTTP/1.1", "Host: x", *fields]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        answer = self.answer(to_head=method == "HEAD")
        assert answer is not None, f"no answer to {method} {target}"
        return answer
