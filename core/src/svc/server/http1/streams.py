"""One client's byte stream: waits that others may use the time of, and deadlines without timers.

A stream only notes until when it may wait; one greenlet of the worker looks through all of them now and
then, and wakes those that have waited too long by shutting their sockets down for reading.
"""

from __future__ import annotations

import abc
import contextlib
import math
import os
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any

import gevent

from svc.database.blocking import pause
from svc.server.http1.refusals import ClientDisconnected

__all__ = ["FAIRNESS_BYTES", "PlainStream", "Stream", "StreamExpired", "TlsStream"]

FAIRNESS_BYTES = 262144
"""After so many bytes that went out without a wait, other connections get their turn."""

SENDFILE_BYTES = 524288
LINGER_SECONDS = 2.0
LINGER_BYTES = 4194304

_NEVER = math.inf


class StreamExpired(TimeoutError):
    """The client let the time pass that it had."""


class Stream(abc.ABC):
    """What is common to plain and encrypted streams.

    Attributes:
        socket: gevent's socket.
        buffered: bytes that were received and not used yet.
        deadline: until when the present wait may last, by ``time.monotonic()``.
        expired: whether it lasted too long.
        is_closed: whether this side has closed it.
        write_timeout_s: longest wait for the client to take bytes.

    Args:
        connection: gevent's socket; this stream owns it.
        write_timeout_s: see above.
    """

    __slots__ = (
        "_raw",
        "_read_event",
        "_sending",
        "_unfair_bytes",
        "_wait",
        "_write_event",
        "buffered",
        "deadline",
        "expired",
        "is_closed",
        "socket",
        "write_timeout_s",
    )

    can_send_files = False

    def __init__(self, connection: Any, write_timeout_s: float) -> None:
        self.socket = connection
        self.write_timeout_s = write_timeout_s
        self.buffered = b""
        self.deadline = _NEVER
        self.expired = False
        self.is_closed = False
        self._sending = False
        self._unfair_bytes = 0
        self._raw = connection._sock
        self._read_event = connection._read_event
        self._write_event = connection._write_event
        self._wait = gevent.get_hub().wait

    @abc.abstractmethod
    def receive(self, size: int, deadline: float) -> bytes:
        """Waits until bytes are there, and returns up to ``size`` of them; ``b""`` at the end.

        Others run meanwhile, even when the bytes are there already.

        Raises:
            StreamExpired: the deadline has passed.
        """

    @abc.abstractmethod
    def receive_into(self, view: memoryview, deadline: float) -> int:
        """As ``receive``, into a buffer; takes what is there up to the buffer's size. Returns the number."""

    @abc.abstractmethod
    def send(self, data: bytes) -> None:
        """Sends everything.

        Raises:
            ClientDisconnected: the client is gone, or takes nothing for too long.
        """

    def send_parts(self, parts: Sequence[bytes]) -> None:
        """Sends the parts one after the other, without joining large ones. Raises as ``send``."""
        self.send(b"".join(parts))

    def send_file(self, descriptor: int, offset: int, count: int) -> int:
        """Sends a part of a file from the kernel; returns how much there was of it. Raises as ``send``."""
        raise ClientDisconnected("This stream can't send files.")

    def expire(self) -> None:
        """Ends the wait that lasts too long. Called by the sweep."""
        self.expired = True
        self.deadline = _NEVER
        self.hang_up(both=self._sending)

    def hang_up(self, *, both: bool = False) -> None:
        """Makes a waiting receive return what there is, or the end; with ``both``, a waiting send fail."""
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_RDWR if both else socket.SHUT_RD)

    def close(self) -> None:
        """Closes the connection."""
        self.is_closed = True
        with contextlib.suppress(OSError):
            self.socket.close()

    def reset(self) -> None:
        """Closes the connection in a way that no client takes for the end of an answer."""
        with contextlib.suppress(OSError):
            self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        Stream.close(self)

    def linger(self) -> None:
        """Says that no more will be sent, and reads on for a moment.

        Closing with unread bytes would reset the connection, and the client might lose the answer.
        """
        try:
            self._raw.shutdown(socket.SHUT_WR)
        except OSError:
            return
        deadline = time.monotonic() + LINGER_SECONDS
        left = LINGER_BYTES
        self.deadline = deadline
        while left > 0 and not self.expired:
            self._wait(self._read_event)
            try:
                piece = self._raw.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not piece:
                return
            left -= len(piece)

    def _breathe(self, count: int) -> None:
        self._unfair_bytes += count
        if self._unfair_bytes >= FAIRNESS_BYTES:
            self._unfair_bytes = 0
            pause()


class PlainStream(Stream):
    """A stream without TLS: system calls on the bare socket."""

    __slots__ = ()

    can_send_files = True

    def receive(self, size: int, deadline: float) -> bytes:
        """Waits and receives; see the base class."""
        self.deadline = deadline
        while True:
            self._wait(self._read_event)
            try:
                data: bytes = self._raw.recv(size)
                break
            except BlockingIOError:
                continue
            except OSError:
                data = b""
                break
        self.deadline = _NEVER
        if self.expired:
            raise StreamExpired
        return data

    def receive_into(self, view: memoryview, deadline: float) -> int:
        """Waits and receives; see the base class."""
        self.deadline = deadline
        receive = self._raw.recv_into
        count = 0
        while not count:
            self._wait(self._read_event)
            try:
                count = got = receive(view)
                while got and count < len(view):
                    got = receive(view[count:])
                    count += got
            except BlockingIOError:
                continue
            except OSError:
                pass
            break
        self.deadline = _NEVER
        if self.expired:
            raise StreamExpired
        return count

    def send(self, data: bytes) -> None:
        """Sends; see the base class."""
        try:
            sent = self._raw.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ClientDisconnected from error
        if sent < len(data):
            self._send_rest(memoryview(data)[sent:])
        elif sent >= 16384:
            self._breathe(sent)

    def send_parts(self, parts: Sequence[bytes]) -> None:
        """Sends; see the base class."""
        views = [memoryview(part) for part in parts]
        total = sum(len(view) for view in views)
        try:
            sent = self._raw.sendmsg(views)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ClientDisconnected from error
        if sent == total:
            self._breathe(sent)
            return
        for view in views:
            if sent >= len(view):
                sent -= len(view)
                continue
            self._send_rest(view[sent:])
            sent = 0

    def send_file(self, descriptor: int, offset: int, count: int) -> int:
        """Sends; see the base class."""
        total = 0
        target = self._raw.fileno()
        while total < count:
            try:
                sent = os.sendfile(target, descriptor, offset + total, min(count - total, SENDFILE_BYTES))
            except BlockingIOError:
                self._wait_for_room()
                continue
            except OSError as error:
                raise ClientDisconnected from error
            if sent == 0:
                break
            total += sent
            self._breathe(sent)
        return total

    def _send_rest(self, view: memoryview) -> None:
        while view:
            self._wait_for_room()
            try:
                sent = self._raw.send(view)
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClientDisconnected from error
            view = view[sent:]

    def _wait_for_room(self) -> None:
        self._unfair_bytes = 0
        self.deadline = time.monotonic() + self.write_timeout_s
        self._sending = True
        self._wait(self._write_event)
        self._sending = False
        self.deadline = _NEVER
        if self.expired:
            raise ClientDisconnected("The client takes no bytes.")


class TlsStream(Stream):
    """A stream with TLS, by gevent's TLS socket. Make it from an accepted socket by ``accept``."""

    __slots__ = ()

    @classmethod
    def accept(
        cls, connection: Any, context: ssl.SSLContext, write_timeout_s: float, *, ragged: bool
    ) -> TlsStream:
        """Returns the stream of a connection whose handshake is still to be made.

        Args:
            connection: gevent's socket, which passes to the stream.
            context: a server's context.
            write_timeout_s: longest wait for the client to take bytes.
            ragged: whether an end without TLS's own goodbye is an end like any other.
        """
        wrapped = context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=ragged
        )
        return cls(wrapped, write_timeout_s)

    def handshake(self, deadline: float) -> None:
        """Makes the handshake.

        Raises:
            OSError: it failed, or the client was too slow (ssl.SSLError is an OSError).
        """
        self.deadline = deadline
        self.socket.do_handshake()
        self.deadline = _NEVER
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
        self.deadline = _NEVER
        if self.expired:
            raise StreamExpired
        return count

    def send(self, data: bytes) -> None:
        """Sends; see the base class."""
        view = memoryview(data)
        self._sending = True
        try:
            while view:
                self.deadline = time.monotonic() + self.write_timeout_s
                sent = self.socket.send(view[:65536])
                view = view[sent:]
                self._breathe(sent)
        except (OSError, ValueError) as error:
            raise ClientDisconnected from error
        finally:
            self._sending = False
            self.deadline = _NEVER
        if self.expired:
            raise ClientDisconnected("The client takes no bytes.")

    def send_parts(self, parts: Sequence[bytes]) -> None:
        """Sends; see the base class."""
        if sum(len(memoryview(part)) for part in parts) <= 65536:
            self.send(b"".join(parts))
            return
        for part in parts:
            self.send(memoryview(part))  # type: ignore[arg-type]

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
