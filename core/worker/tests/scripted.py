"""A connection without a socket: its bytes arrive in given pieces."""

from __future__ import annotations

import gevent

from svc_worker.bodies import BufferPool
from svc_worker.settings import HttpSettings
from svc_worker.streams import Stream

SETTINGS = HttpSettings(
    request_line=1000,
    fields=10,
    field_size=1000,
    underscores="drop",
    keepalive_s=1,
    header_timeout_s=1,
    body_timeout_s=1,
    write_timeout_s=1,
    minimum_rate=0,
    rate_period_s=1,
    max_body=None,
    drain_bytes=1000,
    drain_s=1,
    trusted_peers=frozenset(),
    trusted_networks=(),
    scheme_fields=(),
)


class ScriptedStream(Stream):
    """A stream whose bytes arrive in given pieces."""

    class _Socket:
        timeout = None

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]
        self.buffered = b""
        self.socket = self._Socket()
        self.sent = b""
        self.moved = 0

    def await_bytes(self, deadline: float) -> None:
        gevent.sleep(0)

    def _is_gone_after_end(self, is_answered: bool, is_chunked: bool) -> bool:
        return False

    def receive(self, size: int, deadline: float) -> bytes:
        gevent.sleep(0)
        if not self._pieces:
            return b""
        piece = self._pieces[0][:size]
        self._pieces[0] = self._pieces[0][size:]
        if not self._pieces[0]:
            del self._pieces[0]
        return piece

    def receive_into(self, view: memoryview, deadline: float) -> int:
        data = self.receive(len(view), deadline)
        view[: len(data)] = data
        return len(data)

    def send(self, data: bytes) -> None:
        self.sent += data


class Owner:
    """What a connection is to its bodies."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.stream = ScriptedStream(pieces)
        self.settings = SETTINGS
        self.buffers = BufferPool()
        self.head_sent = False
        self.keep_alive = True
