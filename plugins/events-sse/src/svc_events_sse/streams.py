"""A stream: a cursor over the events of the database, which goes on for as long as its client listens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec
from svc_events.api import DuePulses, EventBatch, EventFeed, EventFilter, Onlooker, Place

from svc.errors import ServiceUnavailable, SvcError
from svc.plugin import Level, pause, renew_caller
from svc_events_sse.frames import PING, SERVER_READY, encoded, frame, server_ready
from svc_events_sse.shared_pieces import Piece, SharedPieces

if TYPE_CHECKING:
    from svc.plugin import Database, SvcRequest

__all__ = ["StreamOrder", "event_stream"]

PING_SECONDS = 30.0
_LOOK_SECONDS = 2.0
"""So often at least a stream looks whether its client is still there and still may listen."""

_PIECE_BYTES = 32_768
"""So much is sent at once, about; a client that takes nothing holds no more."""

OPEN_STREAMS = Level("svc_event_streams", "Event streams that clients have open.")

_open: WeakKeyDictionary[Database, int] = WeakKeyDictionary()
_shared: WeakKeyDictionary[Database, SharedPieces] = WeakKeyDictionary()


class StreamOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks for.

    Attributes:
        wanted: which events.
        place: the place behind which it begins; None: behind what was committed when the client came.
        follow: whether it goes on when everything that there was has been sent.
        maximum_streams: most streams of this process.
        replay_commits: most commits that are made up for.
    """

    wanted: EventFilter
    place: Place | None
    follow: bool
    maximum_streams: int
    replay_commits: int


def event_stream(req: SvcRequest, feed: EventFeed, order: StreamOrder) -> Iterator[bytes]:
    """Yields the frames for one client, until it leaves, may not listen any more, or the process stops.

    Raises:
        ServiceUnavailable: too many streams are open; before the first frame.
    """
    lifetime = req.context.lifetime
    with (
        _counted(req.context.database, order.maximum_streams),
        feed.watch.joined(lambda: lifetime.is_stopping),
    ):
        yield from _Stream(req, feed, order).frames()


class _Stream:
    def __init__(self, req: SvcRequest, feed: EventFeed, order: StreamOrder) -> None:
        self._req = req
        self._feed = feed
        self._order = order
        self._wanted = order.wanted
        self._shared = _shared.setdefault(feed.database, SharedPieces())
        self._end = feed.end()
        self._place = self._end if order.place is None else order.place
        self._next_ping = time.monotonic() + PING_SECONDS
        self._pulses = DuePulses(feed.pulses, order.wanted) if order.follow else None

    def frames(self) -> Iterator[bytes]:
        feed, lifetime = self._feed, self._req.context.lifetime
        # The first piece brings the head of the answer.
        yield self._opening()
        try:
            while not lifetime.is_stopping:
                batch = feed.after(self._place)
                if batch is None:
                    if not self._order.follow:
                        return
                    feed.watch.wait(self._place.sequence, self._patience())
                    # Ends here when the client has left.
                    pause()
                # After the events were read: what was taken away with them, or before, counts.
                renew_caller(self._req)
                if batch is not None:
                    for piece in self._pieces(batch):
                        yield piece
                        pause()
                    pause()
                if due := self._due():
                    yield due
        except SvcError:
            # The credentials have ended, or a plugin is not in use any more: whoever comes back is told.
            return

    def _opening(self) -> bytes:
        earliest = self._end.sequence - self._order.replay_commits
        first = b": events\n\n"
        if self._wanted.wants(SERVER_READY) and not self._wanted.own:
            first = server_ready(self._feed, self._place)
        if self._place.sequence < earliest:
            begin, self._place = self._place, Place(earliest)
            first += frame(self._feed.gap(begin, self._place, "behind"))
        return first

    def _pieces(self, batch: EventBatch) -> Iterator[bytes]:
        """The frames of a batch, made when the client has taken those before."""
        number = 0
        while number < len(batch.events):
            if number:
                # That may have taken long.
                renew_caller(self._req)
            piece, number = self._piece(batch, number, Onlooker.of(self._req.context))
            if number == len(batch.events):
                self._place = batch.place
            if piece:
                yield piece
        self._place = batch.place

    def _piece(self, batch: EventBatch, number: int, onlooker: Onlooker) -> Piece:
        """The next frames, from an event of the batch on: as they were made for another who sees the same."""
        if onlooker.key is None:
            return self._made(batch, number, onlooker)
        key = (self._wanted, onlooker.key, number)
        piece = self._shared.find(batch, key)
        if piece is None:
            piece = self._made(batch, number, onlooker)
            self._shared.keep(batch, key, piece)
        return piece

    def _made(self, batch: EventBatch, number: int, onlooker: Onlooker) -> Piece:
        frames: list[bytes] = []
        size = 0
        while number < len(batch.events) and size < _PIECE_BYTES:
            found = batch.events[number]
            number += 1
            # What is missing is told, whatever else was asked for.
            shown = self._wanted.select(found, onlooker)
            if shown is not None:
                frames.append(frame(shown))
                size += len(frames[-1])
        return b"".join(frames), number

    def _patience(self) -> float:
        seconds = min(_LOOK_SECONDS, self._next_ping - time.monotonic())
        if self._pulses is not None:
            seconds = min(seconds, self._pulses.patience())
        return max(seconds, 0.0)

    def _due(self) -> bytes:
        due = b""
        if self._pulses is not None and self._pulses.patience() <= 0:
            events = self._pulses.take(Onlooker.of(self._req.context), self._place)
            due += b"".join(map(encoded, events))
        if time.monotonic() >= self._next_ping:
            due += PING
            self._next_ping = time.monotonic() + PING_SECONDS
        return due


@contextmanager
def _counted(database: Database, most: int) -> Iterator[None]:
    """Counts a stream for as long as the context lasts."""
    count = _open.get(database, 0)
    if count >= most:
        raise ServiceUnavailable(
            f"This worker has {count:,} event streams open, as many as it may have; try again later.",
            limit=most,
            retry_after=5,
        )
    _open[database] = count + 1
    OPEN_STREAMS.add(1)
    try:
        yield
    finally:
        _open[database] -= 1
        OPEN_STREAMS.add(-1)
        if not _open[database]:
            _shared.pop(database, None)
