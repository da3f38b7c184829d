"""One client's byte stream, with deadlines that need no timers.

A stream notes until when it may wait, and how much has moved. One greenlet of the worker looks through all
streams four times a second (``sweep``), and wakes those that have waited too long by shutting their sockets
down for reading.
"""

from __future__ import annotations

import abc
import contextlib
import fcntl
import math
import os
import select
import socket
import sys
import termios
import time
from collections.abc import Iterable, Sequence
from typing import Any

import gevent
from gevent.monkey import get_original

from svc_worker.refusals import ClientDisconnected
from svc_worker.turns import pause, turns_are_wanted

__all__ = [
    "FAIRNESS_BYTES",
    "LARGE_PIECE",
    "NEVER",
    "UNSENT_BYTES",
    "PlainStream",
    "Stream",
    "StreamExpired",
    "with_news",
]

FAIRNESS_BYTES = 262144
"""After sending so many bytes without a wait, a connection lets others have their turn."""

LARGE_PIECE = 16384
"""Pieces of an answer from this size on are asked for when the system has room for them."""

UNSENT_BYTES = 262144
"""Most bytes of an answer that may wait in the system unsent."""

SENDFILE_BYTES = 524288
LINGER_SECONDS = 2.0
LINGER_LONGEST_SECONDS = 8.0
LINGER_BYTES = 67108864
"""What a client that reads only when it has sent everything may go on to send behind an answer."""

NEVER = math.inf
"""The deadline where none is set."""
_ANSWER_START = b"HTTP/1.1 "
_GONE = select.POLLHUP | select.POLLERR
_poll = get_original("select", "poll")


class StreamExpired(TimeoutError):
    """The client let the time pass that it had."""


class Stream(abc.ABC):
    """What is common to plain and encrypted streams of gevent's sockets.

    Attributes:
        buffered: bytes that were received and not used yet.
        deadline: until when the present wait may last, by ``time.monotonic()``.
        expired: whether it lasted too long.
        is_closed: whether this side has closed it.
        is_sending: whether it waits in the middle of sending something.
        moved: bytes of bodies and answers that went either way.
        write_timeout_s: longest wait for the client to take bytes.
    """

    __slots__ = (
        "_ahead",
        "_is_hung_up",
        "_raw",
        "_read_event",
        "_room",
        "_unfair_bytes",
        "_wait",
        "_write_event",
        "buffered",
        "deadline",
        "expired",
        "is_closed",
        "is_sending",
        "moved",
        "socket",
        "write_timeout_s",
    )

    can_send_files = False

    def __init__(self, connection: Any, write_timeout_s: float) -> None:
        self.socket = connection
        self.write_timeout_s = write_timeout_s
        self.buffered = b""
        self.deadline = NEVER
        self.expired = False
        self.is_closed = False
        self.is_sending = False
        self.moved = 0
        self._ahead = 0
        self._room: Any = None
        self._is_hung_up = False
        self._unfair_bytes = 0
        self._raw = connection._sock
        self._read_event = connection._read_event
        self._write_event = connection._write_event
        self._wait = gevent.get_hub().wait

    @abc.abstractmethod
    def receive(self, size: int, deadline: float) -> bytes:
        """Waits until bytes are there, and returns up to ``size`` of them; ``b""`` at the end.

        Others run meanwhile, even when the bytes are there already. Raises StreamExpired after the deadline.
        """

    @abc.abstractmethod
    def receive_into(self, view: memoryview, deadline: float) -> int:
        """As ``receive``, into a buffer; takes what is there up to the buffer's size. Returns the number."""

    def await_bytes(self, deadline: float) -> None:
        """Waits until a receive has bytes to give, or the end; others run meanwhile."""
        self.deadline = deadline
        self._wait(self._read_event)
        self.deadline = NEVER
        if self.expired:
            raise StreamExpired

    @abc.abstractmethod
    def send(self, data: bytes) -> None:
        """Sends everything; ClientDisconnected where the client is gone, or takes nothing for too long."""

    def send_parts(self, parts: Sequence[bytes]) -> None:
        """Sends the parts one after the other, without joining large ones. Raises as ``send``."""
        self.send(b"".join(parts))

    def send_file(self, descriptor: int, offset: int, count: int) -> int:
        """Sends a part of a file from the kernel; returns how much there was of it. Raises as ``send``."""
        raise ClientDisconnected("This stream can't send files.")

    def await_room(self) -> None:
        """Waits until the system takes more to send. Raises as ``send``."""
        poll = self._room
        if poll is None:
            poll = self._room = _poll()
            poll.register(self._raw, select.POLLOUT)
        if not poll.poll(0):
            self._wait_for_room()

    def _wait_for_room(self) -> None:
        self.deadline = time.monotonic() + self.write_timeout_s
        self.is_sending = True
        self._wait(self._write_event)
        self.is_sending = False
        if not turns_are_wanted():
            self._unfair_bytes = 0  # The others had their turn.
        self.deadline = NEVER
        if self.expired:
            raise ClientDisconnected("The client takes no bytes.")

    def taken(self) -> int:
        """Returns the bytes that the client has sent, or has acknowledged."""
        try:
            waiting = fcntl.ioctl(self._raw, termios.TIOCOUTQ, b"\0\0\0\0")
        except (OSError, ValueError):
            return self.moved
        return self.moved - int.from_bytes(waiting, sys.byteorder)

    def expire(self) -> None:
        """Ends the wait that lasts too long. Called by the sweep."""
        self.expired = True
        self.deadline = NEVER
        self.hang_up(both=self.is_sending)

    @property
    def descriptor(self) -> int:
        """Of the socket; -1 when it is closed."""
        return int(self._raw.fileno())

    def client_is_gone(self, *, is_answered: bool, is_chunked: bool) -> bool:
        """Whether the client is known to be gone. For the sweep, while nothing is received or sent.

        A client that has closed its connection and one that has only ended what it sends look the same, until
        something is sent to them: the system of the first answers with a reset. Before the head, that is the
        first bytes of any answer; between two chunks, a leading zero of the next size.
        """
        poll = _poll()
        try:
            poll.register(self._raw, select.POLLRDHUP)
        except (OSError, ValueError):
            return True
        events = poll.poll(0)
        if not events:
            return False
        if events[0][1] & _GONE:
            return True
        if self._is_hung_up:
            return False  # By this side.
        return self._is_gone_after_end(is_answered, is_chunked)

    @abc.abstractmethod
    def _is_gone_after_end(self, is_answered: bool, is_chunked: bool) -> bool:
        """What ``client_is_gone`` says of a client that has ended what it sends."""

    def hang_up(self, *, both: bool = False) -> None:
        """Makes a waiting receive return what there is, or the end; with ``both``, a waiting send fail."""
        self._is_hung_up = True
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
        """Says that no more will be sent, and reads on for as long as something comes, within bounds.

        Closing with unread bytes would reset the connection, and the client might lose the answer.
        """
        try:
            self._raw.shutdown(socket.SHUT_WR)
        except OSError:
            return
        longest = time.monotonic() + LINGER_LONGEST_SECONDS
        left = LINGER_BYTES
        while left > 0 and not self.expired:
            self.deadline = min(longest, time.monotonic() + LINGER_SECONDS)
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

    def _pause_if_due(self, count: int) -> None:
        self._unfair_bytes += count
        if self._unfair_bytes >= FAIRNESS_BYTES:
            self._unfair_bytes = 0
            self.is_sending = True
            pause()
            self.is_sending = False


class PlainStream(Stream):
    """A stream without TLS: system calls on the bare socket."""

    __slots__ = ("_has_probed",)

    can_send_files = True

    def __init__(self, connection: Any, write_timeout_s: float) -> None:
        super().__init__(connection, write_timeout_s)
        self._has_probed = False

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
        self.deadline = NEVER
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
        self.deadline = NEVER
        if self.expired:
            raise StreamExpired
        return count

    def send(self, data: bytes) -> None:
        """Sends; see the base class."""
        if self._ahead:
            data = self._without_ahead(data)
        try:
            sent = self._raw.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ClientDisconnected from error
        self.moved += sent
        if sent < len(data):
            self._send_rest(memoryview(data)[sent:])
        elif sent >= LARGE_PIECE:
            self._pause_if_due(sent)

    def send_parts(self, parts: Sequence[bytes]) -> None:
        """Sends; see the base class."""
        views = [memoryview(part) for part in parts]
        if self._ahead:
            views[0] = memoryview(self._without_ahead(parts[0]))
        total = sum(len(view) for view in views)
        try:
            sent = self._raw.sendmsg(views)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ClientDisconnected from error
        self.moved += sent
        if sent == total:
            self._pause_if_due(sent)
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
            self.moved += sent
            self._pause_if_due(sent)
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
            self.moved += sent
            view = view[sent:]

    def _without_ahead(self, data: bytes) -> bytes:
        data, self._ahead = data[self._ahead :], 0
        return data

    def _is_gone_after_end(self, is_answered: bool, is_chunked: bool) -> bool:
        """Sends a byte or a few; see the base class."""
        if self._has_probed or self._ahead or (is_answered and not is_chunked):
            return False
        probe = b"0" if is_answered else _ANSWER_START
        self._has_probed = True
        try:
            sent = self._raw.send(probe)
        except BlockingIOError:
            self._has_probed = False
            return False
        except OSError:
            return True
        if not is_answered:
            self._ahead = sent
        return False


def with_news(descriptors: Iterable[int]) -> list[int]:
    """Returns those sockets whose other side has ended what it sends, or that failed; one system call."""
    poll = _poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLRDHUP)
    return [descriptor for descriptor, _ in poll.poll(0)]
