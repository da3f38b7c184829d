"""Bodies of requests: ``wsgi.input``, read from the client only when the application reads.

A body is an io object (``read``, ``read1``, ``readinto``, ``readline``, iteration), and for large uploads
gives ``pieces()``: views of buffers that the socket fills directly. While a body waits for its client it
holds what has come, and no buffer for what may come.
"""

from __future__ import annotations

import abc
import re
import time
from collections.abc import Iterator
from typing import Protocol

from svc_worker.refusals import BodyBroken, BodyTimeout, Refusal
from svc_worker.settings import HttpSettings
from svc_worker.streams import Stream, StreamExpired

__all__ = ["PIECE_BYTES", "BufferPool", "ChunkedBody", "LengthBody", "RequestBody"]

PIECE_BYTES = 262144
"""Size of the buffers that uploads are received into."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_SMALL = 16384
_CHUNK_LINE_BYTES = 4096
_OVERHEAD_BYTES = 16384
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")


class BufferPool:
    """Buffers of ``PIECE_BYTES`` that bodies of one worker share, one after the other."""

    __slots__ = ("_free",)

    KEPT = 16

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self) -> bytearray:
        """Returns a buffer with any content."""
        return self._free.pop() if self._free else bytearray(PIECE_BYTES)

    def give(self, buffer: bytearray) -> None:
        """Takes a buffer back."""
        if len(self._free) < self.KEPT:
            self._free.append(buffer)


class BodyOwner(Protocol):
    """The connection, as its bodies see it."""

    stream: Stream
    settings: HttpSettings
    buffers: BufferPool
    head_sent: bool
    keep_alive: bool


class RequestBody(abc.ABC):
    """The body of one request.

    Attributes:
        awaits_continue: whether the client still waits to be told to send it.
        is_finished: whether its end was reached.
        flaw: why it can't be read on: it broke off, or is framed wrongly; the connection ends then.
        received: bytes read so far.
    """

    __slots__ = ("_at", "_kept", "_owner", "_row_left", "awaits_continue", "flaw", "is_finished", "received")

    _is_single_row: bool
    """Whether all of its bytes follow each other, with no sizes of chunks between them."""

    def __init__(self, owner: BodyOwner, expects_continue: bool) -> None:
        self._owner = owner
        self._kept = b""
        self._at = 0
        self._row_left = 0
        self.awaits_continue = expects_continue
        self.is_finished = False
        self.flaw: Refusal | None = None
        self.received = 0

    @property
    @abc.abstractmethod
    def left(self) -> int | None:
        """Bytes still to come; None when only the end will tell."""

    @property
    def has_bytes(self) -> bool:
        """Whether a ``read1`` has something to give without a wait."""
        return bool(self._kept) or (self._is_single_row and bool(self._owner.stream.buffered))

    def close_connection(self) -> None:
        """Ends the connection after this request, and lets the answer say so."""
        self._owner.keep_alive = False

    def read(self, size: int | None = -1) -> bytes:
        """Returns ``size`` bytes, fewer only at the end; all that is left when it is negative or None.

        Blocks this greenlet; others run.

        Raises:
            BodyBroken: the body ends early, or its chunks are malformed (a ValueError).
            BodyTimeout: the client stopped sending (a TimeoutError).
        """
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(PIECE_BYTES), b""))
        if size <= _SMALL:
            return self._read_small(size)
        if size <= PIECE_BYTES:
            return self._read_piece(size)
        pieces = []
        while size > 0 and (piece := self._read_piece(min(size, PIECE_BYTES))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def read1(self, size: int = -1) -> bytes:
        """Returns what the next receive gives, up to ``size`` bytes, none at the end; raises as ``read``."""
        if size == 0:
            return b""
        limit = PIECE_BYTES if size < 0 else size
        return self._take_kept(limit) or self._receive(limit)

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Fills the buffer with what is there, straight from the socket; 0 at the end. Raises as ``read``."""
        view = memoryview(buffer).cast("B")
        kept = self._take_kept(len(view))
        if kept:
            view[: len(kept)] = kept
            return len(kept)
        return self._receive_into(view) if len(view) else 0

    def pieces(self) -> Iterator[memoryview]:
        """Yields the rest of the body as views, each good until the next step.

        Other greenlets run before each. Raises as ``read``.
        """
        buffers = self._owner.buffers
        while self._await():
            buffer = buffers.take()
            view = memoryview(buffer)
            try:
                count = self.readinto(view)
                if count:
                    yield view[:count]
            finally:
                view.release()
                buffers.give(buffer)

    def readline(self, size: int | None = -1) -> bytes:
        """Returns the bytes up to the next newline, that included; raises as ``read``."""
        limit = -1 if size is None else size
        parts: list[bytes] = []
        while limit != 0:
            if self._at == len(self._kept) and not self._refill():
                break
            end = self._kept.find(b"\n", self._at) + 1 or len(self._kept)
            if limit > 0:
                end = min(end, self._at + limit)
            part = self._kept[self._at : end]
            self._at = end
            parts.append(part)
            limit = limit - len(part) if limit > 0 else limit
            if part.endswith(b"\n"):
                break
        return b"".join(parts)

    def readlines(self, hint: int | None = -1) -> list[bytes]:
        """Returns the lines that are left, or those that ``hint`` bytes reach into; raises as ``read``."""
        lines, total = [], 0
        while line := self.readline():
            lines.append(line)
            total += len(line)
            if hint is not None and 0 < hint <= total:
                break
        return lines

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def drain(self) -> bool:
        """Drops what the application left unread, within bounds; returns whether the end was reached."""
        if self.is_finished:
            return True
        settings = self._owner.settings
        if self.flaw or self.awaits_continue or (self.left or 0) > settings.drain_bytes:
            return False
        end = time.monotonic() + settings.drain_s
        left = settings.drain_bytes
        try:
            while left >= 0:
                piece = self._receive(65536, end)
                if not piece:
                    return True
                left -= len(piece)
        except (Refusal, OSError):
            pass
        return False

    def forget_frames(self) -> None:
        """Ends the reference cycle of a body and its flaw, whose traceback holds the whole request."""
        if self.flaw is not None:
            self.flaw.__traceback__ = self.flaw.__context__ = None

    def _read_small(self, size: int) -> bytes:
        piece = self._take_kept(size)
        while len(piece) < size and self._refill():
            piece += self._take_kept(size - len(piece))
        return piece

    def _read_piece(self, size: int) -> bytes:
        """Returns ``size`` bytes (at most ``PIECE_BYTES``), fewer only at the end."""
        piece = self._take_kept(size) or self._receive(size)
        if len(piece) == size:
            return piece
        gathered = bytearray(piece)
        while len(gathered) < size and (more := self._receive(size - len(gathered))):
            gathered += more
        return bytes(gathered)

    def _take_kept(self, size: int) -> bytes:
        piece = self._kept[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def _refill(self) -> bool:
        self._kept = self._receive(_SMALL)
        self._at = 0
        return bool(self._kept)

    @abc.abstractmethod
    def _next(self, deadline: float | None) -> int:
        """Goes to the next bytes of data; returns how many follow before the next size, 0 at the end."""

    def _await(self) -> bool:
        """Waits until bytes of the body can be taken without a wait; False at its end."""
        if self._at < len(self._kept):
            return True
        if not self._next(None):
            return False
        stream = self._owner.stream
        if not stream.buffered:
            try:
                stream.await_bytes(self._deadline())
            except StreamExpired:
                raise self._fail(BodyTimeout()) from None
        return True

    def _receive(self, limit: int, deadline: float | None = None) -> bytes:
        there = self._next(deadline)
        if not there:
            return b""
        limit = min(limit, there)
        stream = self._owner.stream
        data = stream.buffered
        if data:
            stream.buffered = data[limit:]
            data = data[:limit]
        else:
            data = self._from_socket(limit, deadline)
        self._count(len(data))
        return data

    def _receive_into(self, view: memoryview) -> int:
        """The same, into a view; 0 at the end."""
        stream = self._owner.stream
        there = self._next(None)
        if not there:
            return 0
        if stream.buffered:
            data = self._receive(len(view))
            view[: len(data)] = data
            return len(data)
        try:
            count = stream.receive_into(view[:there], self._deadline())
        except StreamExpired:
            raise self._fail(BodyTimeout()) from None
        if not count:
            raise self._fail(BodyBroken(400, "The body ended early."))
        self._count(count)
        return count

    def _count(self, count: int) -> None:
        """Counts bytes of the body that were taken. The sweep reads ``moved`` to see how fast a client is."""
        self.received += count
        self._owner.stream.moved += count
        self._row_left -= count
        if not self._row_left:
            self.is_finished = self._is_single_row

    def _begin(self) -> None:
        """Before each receive: asks for the body where the client waits for that."""
        if self.flaw:
            raise BodyBroken(400, "The body broke off.")
        if self.awaits_continue:
            self.awaits_continue = False
            owner = self._owner
            if not owner.stream.buffered and not owner.head_sent:
                owner.stream.send(_CONTINUE)

    def _deadline(self) -> float:
        # A time-out that the application set on gunicorn.socket comes before ours.
        seconds: float | None = self._owner.stream.socket.timeout
        return time.monotonic() + (self._owner.settings.body_timeout_s if seconds is None else seconds)

    def _from_socket(self, limit: int, deadline: float | None) -> bytes:
        try:
            data = self._owner.stream.receive(limit, self._deadline() if deadline is None else deadline)
        except StreamExpired:
            raise self._fail(BodyTimeout()) from None
        if not data:
            raise self._fail(BodyBroken(400, "The body ended early."))
        return data

    def _fail(self, reason: Refusal) -> Refusal:
        self.flaw = reason
        self._owner.keep_alive = False
        return reason


class LengthBody(RequestBody):
    """A body of a declared length; one of 0, for requests that have none, may serve all of a connection."""

    __slots__ = ()

    _is_single_row = True

    def __init__(self, owner: BodyOwner, length: int, expects_continue: bool) -> None:
        super().__init__(owner, expects_continue)
        self._row_left = length
        self.is_finished = length == 0

    @property
    def left(self) -> int:
        """Bytes still to come."""
        return self._row_left

    def _next(self, deadline: float | None) -> int:
        if self._row_left and (self.flaw or self.awaits_continue):
            self._begin()
        return self._row_left


class ChunkedBody(RequestBody):
    """A body in chunks (RFC 9112, 7.1). Extensions and trailers are checked and dropped."""

    __slots__ = ("_overhead", "_started")

    _is_single_row = False

    def __init__(self, owner: BodyOwner, expects_continue: bool) -> None:
        super().__init__(owner, expects_continue)
        self._overhead = 0
        self._started = False

    @property
    def left(self) -> int | None:
        """Not known before the end."""
        return 0 if self.is_finished else None

    def _next(self, deadline: float | None) -> int:
        if self.is_finished:
            return 0
        self._begin()
        if self._row_left:
            return self._row_left
        if self._started and self._line(deadline):
            raise self._fail(BodyBroken(400, "A chunk of the body is not terminated."))
        line = self._line(deadline)
        match = _CHUNK_LINE.fullmatch(line)
        if match is None:
            raise self._fail(BodyBroken(400, "The size of a chunk is not valid."))
        self._started = True
        self._overhead += len(line)
        if self._overhead > _OVERHEAD_BYTES + self.received:
            raise self._fail(BodyBroken(400, "The chunks of the body carry too little."))
        self._row_left = int(match[1], 16)
        limit = self._owner.settings.max_body
        if limit is not None and self.received + self._row_left > limit:
            message = f"The body may have at most {limit} bytes."
            raise self._fail(BodyBroken(413, message, "PAYLOAD_TOO_LARGE"))
        if self._row_left == 0:
            self._skip_trailers(deadline)
            self.is_finished = True
        return self._row_left

    def _skip_trailers(self, deadline: float | None) -> None:
        settings = self._owner.settings
        for _ in range(settings.fields + 1):
            line = self._line(deadline, settings.field_size)
            if not line:
                return
            if _TRAILER.fullmatch(line) is None:
                raise self._fail(BodyBroken(400, "A trailer field is not valid."))
        raise self._fail(BodyBroken(431, "The trailer fields are too many."))

    def _line(self, deadline: float | None, limit: int = _CHUNK_LINE_BYTES) -> bytes:
        """Returns the next line without its end, which must be CR LF."""
        stream = self._owner.stream
        searched = 0
        while True:
            data = stream.buffered
            end = data.find(b"\n", searched)
            if end > limit or (end < 0 and len(data) > limit):
                raise self._fail(BodyBroken(400, "A line between chunks is too long."))
            if end >= 0:
                line = data[: end - 1] if end else b""
                if data[end - 1 : end] != b"\r" or b"\r" in line:
                    raise self._fail(BodyBroken(400, "A line between chunks is not ended by CR LF."))
                stream.buffered = data[end + 1 :]
                return line
            searched = len(data)
            stream.buffered = data + self._from_socket(_SMALL, deadline)
