"""A client's byte stream with TLS."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from typing import Any

from svc_worker.refusals import ClientDisconnected
from svc_worker.streams import NEVER, Stream, StreamExpired
from svc_worker.turns import pause

__all__ = ["TlsStream"]


class TlsStream(Stream):
    """A stream with TLS, by gevent's TLS socket. Make it from an accepted socket by ``accept``."""

    __slots__ = ()

    @classmethod
    def accept(
        cls, connection: Any, context: ssl.SSLContext, write_timeout_s: float, *, ragged: bool
    ) -> TlsStream:
        """Returns the stream of a connection whose handshake is still to be made; it takes gevent's socket.

        ``write_timeout_s`` is the longest wait for the client to take bytes. ``ragged``: an end without TLS's
        own goodbye is an end like any other.
        """
        wrapped = context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=ragged
        )
        return cls(wrapped, write_timeout_s)

    def handshake(self, deadline: float) -> None:
        """Makes the handshake; OSError where it failed (ssl.SSLError is one) or the client was too slow."""
        self.deadline = deadline
        self.socket.do_handshake()
        self.deadline = NEVER
        if self.expired:
            raise StreamExpired

    def receive(self, size: int, deadline: float) -> bytes:
        """Waits and receives; see the base class."""
        buffer = bytearray(size)
        count = self.receive_into(memoryview(buffer), deadline)
        return bytes(memoryview(buffer)[:count])

    def receive_into(self, view: memoryview, deadline: float) -> int:
        """Waits and receives; see the base class."""
        self.deadline = deadline
        if self.socket.pending():
            pause()
        else:
            self._wait(self._read_event)
        count = 0
        try:
            # Ours is the deadline; a time-out that others set on the socket would need a timer.
            count = self.socket.recv_into(view)
            while 0 < count < len(view) and self.socket.pending():
                got = self.socket.recv_into(view[count:])
                if not got:
                    break
                count += got
        except TimeoutError:
            self.expired = True
        except (OSError, ValueError):
            pass
        self.deadline = NEVER
        if self.expired:
            raise StreamExpired
        return count

    def send(self, data: bytes) -> None:
        """Sends; see the base class."""
        view = memoryview(data)
        self.is_sending = True
        try:
            while view:
                self.deadline = time.monotonic() + self.write_timeout_s
                sent = self.socket.send(view[:65536])
                view = view[sent:]
                self.moved += sent
                self._pause_if_due(sent)
                self.is_sending = True
        except (OSError, ValueError) as error:
            raise ClientDisconnected from error
        finally:
            self.is_sending = False
            self.deadline = NEVER
        if self.expired:
            raise ClientDisconnected("The client takes no bytes.")

    def send_parts(self, parts: Sequence[bytes]) -> None:
        """Sends; see the base class."""
        if sum(len(memoryview(part)) for part in parts) <= 65536:
            self.send(b"".join(parts))
            return
        for part in parts:
            self.send(memoryview(part))  # type: ignore[arg-type]

    def await_bytes(self, deadline: float) -> None:
        """Waits; see the base class."""
        if not self.socket.pending():
            super().await_bytes(deadline)

    def _is_gone_after_end(self, is_answered: bool, is_chunked: bool) -> bool:
        """With TLS nobody ends one direction alone."""
        return True

    def linger(self) -> None:
        """Says TLS's goodbye first; then as the base class."""
        self._say_goodbye()
        super().linger()

    def close(self) -> None:
        """Says TLS's goodbye, waits for none, and closes."""
        if not self.is_closed:
            self._say_goodbye()
        super().close()

    def _say_goodbye(self) -> None:
        try:
            self.socket.settimeout(0.0)
            self.socket.unwrap()
        except (OSError, ValueError):
            pass
