"""Delivers events to one destination, one batch after another, in a thread of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from svc.errors import SvcError
from svc.plugin import Counter
from svc_events.api import GAP, DeliveryFailed, Destination, DestinationState, EventSink
from svc_events.places import Place, parse_place
from svc_events.selecting import EventFilter

if TYPE_CHECKING:
    from svc.plugin import Extension
    from svc_events.feed import EventFeed, FeedEvent
    from svc_events.sinks.records import SinkRecord

__all__ = ["FIRST_PAUSE_S", "LONGEST_PAUSE_S", "Courier"]

DELIVERED_EVENTS = Counter("svc_sink_delivered_events", "Events that sinks have delivered.", ("sink",))
FAILED_DELIVERIES = Counter("svc_sink_failed_deliveries", "Deliveries of sinks that failed.", ("sink",))

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 4 * 3600.0
_MOST_RETRY_AFTER_S = 24 * 3600.0
_WAIT_S = 1.0
_HELD_BACK_S = 5.0


class Courier:
    """Delivers to a destination until it is stopped.

    Other threads read its attributes, and change it by its methods.

    Args:
        feed: the events.
        extension: the sink, with the plugin that it belongs to.
        destination: where to.
        place: where it begins.
        record: what is stored of it; None: nothing yet.
        before: the courier that had this destination before and may not have ended yet.

    Attributes:
        place: behind what was delivered, or left out.
        asked: see ``SinkRecord``.
        delivered: how many events it has delivered.
        stored: what is stored of it, and what ``delivered`` was then; its owner sets it.
    """

    def __init__(
        self,
        feed: EventFeed,
        extension: Extension[EventSink],
        destination: Destination,
        place: Place,
        record: SinkRecord | None = None,
        before: Courier | None = None,
    ) -> None:
        self.place = place
        self.asked = 0 if record is None else record.asked
        self.delivered = 0
        self.stored: tuple[SinkRecord | None, int] = (record, 0)
        self._feed = feed
        self._extension = extension
        self._destination = destination
        self._failures = 0
        self._failing_since: int | None = None
        self._error: str | None = None
        self._retry_at: float | None = None
        self._busy_since: int | None = None
        self._is_stopping = False
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._before = before
        self._thread = threading.Thread(
            target=self._run, name=f"svc-sink-{extension.value.name}", daemon=True
        )
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread still runs, as in a call that hangs."""
        return self._thread.is_alive()

    @property
    def destination(self) -> Destination:
        """Where it delivers to."""
        return self._destination

    def stop(self) -> None:
        """Lets it end behind the call that it is in; does not wait."""
        self._is_stopping = True
        self._wake.set()

    def join(self, seconds: float | None = None) -> None:
        """Waits for its end."""
        self._thread.join(seconds)

    def follow(self, destination: Destination) -> None:
        """Goes on with what a destination is now; at once where that differs."""
        if destination != self._destination:
            self._destination = destination
            self._go_on()

    def go_on(self, place: Place, asked: int) -> None:
        """Goes on at a place at once, as somebody has asked."""
        with self._lock:
            self.place, self.asked = place, asked
        self._go_on()

    def state(self) -> DestinationState:
        """How it is."""
        retry_at = self._retry_at
        return DestinationState(
            sink=self._extension.value.name,
            id=self._destination.id,
            place=str(self.place),
            commits_behind=max(0, self._feed.end().sequence - self.place.sequence),
            delivered=self.delivered,
            failures=self._failures,
            failing_since=self._failing_since,
            error=self._error,
            retry_at=None if retry_at is None else int(retry_at * 1000),
            busy_since=self._busy_since,
        )

    def _go_on(self) -> None:
        self._retry_at = None
        self._wake.set()

    def _run(self) -> None:
        if self._before is not None:
            # The order is kept: its last call ends first, and what that has delivered is not delivered again.
            self._before.join()
            if self._before.asked == self.asked and self._before.place > self.place:
                self.place = self._before.place
            self._before = None
        with self._feed.watch.joined(lambda: self._is_stopping):
            while not self._is_stopping:
                self._wake.clear()
                pause = 0.0 if self._retry_at is None else self._retry_at - time.time()
                if pause > 0:
                    self._wake.wait(min(pause, 60.0))
                    continue
                try:
                    if not self._step():
                        self._feed.watch.wait(self.place.sequence, _WAIT_S)
                except Exception as error:  # noqa: BLE001 - a sink's author's: it costs no other's events
                    self._fail(error)

    def _step(self) -> bool:
        """Delivers the next batch; False where there is none."""
        begun = self.place
        batch = self._feed.after(begun)
        if batch is None:
            return False
        destination, sink, context = self._destination, self._extension.value, self._extension.context
        wanted = EventFilter(names=destination.names, path_prefix=destination.path_prefix)
        number = 0
        while number < len(batch.events):
            # A batch may take long: what was changed or taken away meanwhile counts for the rest of it.
            if self._is_stopping or self._destination is not destination:
                return True
            onlooker = sink.onlooker(destination, context)
            if onlooker is None:
                self._hold_back()
                return True
            part: list[FeedEvent] = []
            while number < len(batch.events) and len(part) < sink.maximum_batch:
                found = batch.events[number]
                is_gap = found.event.event_type == GAP
                selected = found if is_gap else wanted.select(found, onlooker)
                if selected is not None:
                    part.append(selected)
                number += 1
            if part:
                behind = parse_place(part[-1].event.event_id)
                if not self._deliver(destination, part, begun, behind):
                    return True
                begun = behind
        self._move(begun, batch.place)
        return True

    def _hold_back(self) -> None:
        now = time.time()
        self._failing_since = self._failing_since or int(now * 1000)
        self._error = "held back: nobody whose eyes it has may see events now"
        self._retry_at = now + _HELD_BACK_S

    def _deliver(
        self, destination: Destination, part: Sequence[FeedEvent], begun: Place, behind: Place
    ) -> bool:
        """Delivers some events; False where somebody has asked to go on elsewhere meanwhile."""
        self._busy_since = time.time_ns() // 1_000_000
        try:
            self._extension.value.deliver(destination, part, self._extension.context)
        except DeliveryFailed as failure:
            taken = min(failure.delivered, len(part) - 1)
            if taken > 0:
                self._succeed(taken)
                self._move(begun, parse_place(part[taken - 1].event.event_id))
            raise
        finally:
            self._busy_since = None
        self._succeed(len(part))
        return self._move(begun, behind)

    def _succeed(self, count: int) -> None:
        self.delivered += count
        DELIVERED_EVENTS.add(count, self._extension.value.name)
        self._failures, self._failing_since, self._error, self._retry_at = 0, None, None, None

    def _move(self, begun: Place, place: Place) -> bool:
        with self._lock:
            if self.place != begun:
                return False
            self.place = place
            return True

    def _fail(self, error: Exception) -> None:
        now = time.time()
        self._failures += 1
        FAILED_DELIVERIES.add(1, self._extension.value.name)
        self._failing_since = self._failing_since or int(now * 1000)
        self._error = str(error)[:500] or type(error).__name__
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 20))
        pause *= random.uniform(0.5, 1.0)
        if isinstance(error, DeliveryFailed):
            pause = max(pause, min(error.retry_after or 0.0, _MOST_RETRY_AFTER_S))
        elif not isinstance(error, SvcError):
            self._error = type(error).__name__
            logger = self._extension.context.logger
            logger.error("The event sink %s failed.", self._extension.value.name, exc_info=error)
        self._retry_at = now + pause
