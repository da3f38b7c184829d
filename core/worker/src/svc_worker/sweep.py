"""Looks at all connections of a worker a few times a second: who waits too long, is too slow, has left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_worker.memory import trim
from svc_worker.settings import HttpSettings
from svc_worker.streams import NEVER, Stream, with_news

if TYPE_CHECKING:
    from svc_worker.connections import Connection

__all__ = ["SWEEP_SECONDS", "Sweep"]

SWEEP_SECONDS = 0.25
TRIM_AFTER = 200
"""Memory is given back to the system after so many connections have ended."""

QUIET_SECONDS = 1.0
"""It is given back when none has ended for so long."""

TRIMS = 7
"""It is given back so often: at once, at the next sweep, and after twice as long each time, in 16 seconds.

What was in use has been replaced by then, and the place that it had is found free. Of what is replaced all
the time the interpreter keeps the last one for the next, so that it goes to and fro between two places: two
sweeps in a row find each of them free in turn.
"""

LATEST_SECONDS = 10.0
"""On a worker where connections end all the time, it is done after so long."""


class _Watch:
    """What is remembered of a stream that waits for its client.

    ``taken`` bytes had moved at the last look at its pace, since which it waited ``waited_s`` seconds;
    ``taken_before`` when the present wait, which has the ``deadline``, was first seen.
    """

    __slots__ = ("deadline", "taken", "taken_before", "waited_s")

    def __init__(self, stream: Stream) -> None:
        self.waited_s = 0.0
        self.taken = self.taken_before = stream.taken()
        self.deadline = stream.deadline


class Sweep:
    """Ends waits that are too long or too slow, and work for clients who have left.

    In each period that the worker waits for a client, in a head, a body or an answer, a number of bytes must
    move. Time in which the application works does not count. ``connections`` lacks streams whose handshake is
    under way. ``drop_caches`` lets the application forget what it keeps of former requests; called before
    memory is given back.
    """

    def __init__(
        self,
        streams: set[Stream],
        connections: set[Connection],
        settings: HttpSettings,
        drop_caches: Callable[[], None] | None = None,
    ) -> None:
        self._streams = streams
        self._connections = connections
        self._drop_caches = drop_caches
        self._period_s = settings.rate_period_s
        self._least_bytes = settings.minimum_rate * settings.rate_period_s
        self._watched: dict[Stream, _Watch] = {}
        self._last = time.monotonic()
        self._most = self._count = 0
        self._trim_at = NEVER
        self._trims = 0
        self._ended_at = self._began_to_end_at = self._last

    def run(self) -> None:
        """Looks once."""
        now = time.monotonic()
        # Time in which the worker itself was held up does not count against its clients.
        elapsed = min(now - self._last, 2 * SWEEP_SECONDS)
        self._last = now
        idle = {connection.stream for connection in self._connections if connection.is_idle}
        watched: dict[Stream, _Watch] = {}
        for stream in list(self._streams):
            if stream.deadline == NEVER:
                watch = self._watched.get(stream)
                if watch is not None:
                    watched[stream] = watch
            elif stream in idle:
                if stream.deadline < now:
                    stream.expire()
            else:
                watched[stream] = self._look_at(stream, now, elapsed)
        self._watched = watched
        working = {one.stream.descriptor: one for one in self._connections if one.works_unwatched}
        working.pop(-1, None)
        for descriptor in with_news(working):
            working[descriptor].stop_if_client_is_gone()
        self._give_memory_back(now)

    def _look_at(self, stream: Stream, now: float, elapsed: float) -> _Watch:
        watch = self._watched.get(stream)
        if watch is None:
            watch = _Watch(stream)
        elif stream.is_sending and watch.deadline != stream.deadline:
            watch.deadline, watch.taken_before = stream.deadline, stream.taken()
        watch.waited_s += elapsed
        if stream.deadline < now and not self._takes_something(stream, watch, now):
            stream.expire()
        elif self._least_bytes and watch.waited_s >= self._period_s:
            taken = stream.taken()
            if taken - watch.taken < self._least_bytes:
                stream.expire()
            watch.waited_s, watch.taken = 0.0, taken
        return watch

    @staticmethod
    def _takes_something(stream: Stream, watch: _Watch, now: float) -> bool:
        """Whether a client took bytes, though there is no room for more yet; its time then begins anew."""
        if not stream.is_sending or stream.taken() <= watch.taken_before:
            return False
        stream.deadline = now + stream.write_timeout_s
        return True

    def _give_memory_back(self, now: float) -> None:
        before, self._count = self._count, len(self._streams)
        if self._count < before:
            self._ended_at = now
        self._most = max(self._most, self._count)
        if self._most - self._count < TRIM_AFTER:
            self._began_to_end_at = now
        elif now - self._ended_at >= QUIET_SECONDS or now - self._began_to_end_at >= LATEST_SECONDS:
            self._most = self._count
            self._trim_at, self._trims = now, 0
            if self._drop_caches is not None:
                self._drop_caches()
        if now >= self._trim_at:
            wait_s = SWEEP_SECONDS * 2**self._trims
            self._trims += 1
            self._trim_at = now + wait_s if self._trims < TRIMS else NEVER
            trim()
