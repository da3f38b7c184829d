"""Raw sockets, for requests that no well-behaved client would send."""

from __future__ import annotations

import contextlib
import re
import socket
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from svc_blackbox.client import TIMEOUT_S


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A response as it came over the wire; header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class RawConnection:
    """One TCP connection to a server; every wait ends after the test suite's time limit."""

    def __init__(self, url: str, timeout: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=timeout)
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends bytes; a server that has answered and hung up already is no failure."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def finish_sending(self) -> None:
        """Tells the server that nothing more will come, and keeps reading."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def response(self, *, head: bool = False) -> RawResponse | None:
        """Reads the next response, informational ones included; None when the server closed instead."""
        header = self._until(b"\r\n\r\n")
        if header is None:
            return None
        lines = header.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.[01] (\d{3})(?: .*)?", lines[0])
        assert match, lines[0]
        status = int(match[1])
        headers = {}
        for line in lines[1:]:
            if line:
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
        if head or status < 200 or status in (204, 304):
            return RawResponse(status, headers, b"")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return RawResponse(status, headers, self._chunks())
        if "content-length" in headers:
            return RawResponse(status, headers, self._exactly(int(headers["content-length"])))
        return RawResponse(status, headers, self._rest())

    def closed_by_server(self) -> bool:
        """Waits until the server hangs up; anything that it still sends is dropped."""
        self._rest()
        return True

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""

    def _until(self, mark: bytes) -> bytes | None:
        while mark not in self._buffer:
            data = self._receive()
            if not data:
                return None
            self._buffer += data
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = self._receive()
            assert data, f"the server closed after {len(self._buffer)} of {size} bytes"
            self._buffer += data
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _chunks(self) -> bytes:
        body = b""
        while True:
            line = self._until(b"\r\n")
            assert line is not None, "the server closed inside a chunked body"
            size = int(line.split(b";")[0], 16)
            body += self._exactly(size)
            assert self._exactly(2) == b"\r\n"
            if size == 0:
                return body

    def _rest(self) -> bytes:
        while data := self._receive():
            self._buffer += data
        found, self._buffer = self._buffer, b""
        return found


def exchange(
    url: str, data: bytes, *, finish: bool = False, timeout: float = TIMEOUT_S
) -> RawResponse | None:
    """Sends bytes over a new connection and returns the first final response, or None when it closed."""
    with RawConnection(url, timeout) as connection:
        connection.send(data)
        if finish:
            connection.finish_sending()
        response = connection.response()
        while response is not None and response.status < 200:
            response = connection.response()
        return response
