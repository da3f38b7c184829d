"""The job of the background process that delivers events to sinks, and stores how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from svc.errors import SvcError
from svc.plugin import BackgroundJob, Database, Extension, Hash, JobContext
from svc_events.api import EVENT_SINKS, Destination, EventSink, feed_of
from svc_events.sinks.courier import Courier
from svc_events.sinks.records import (
    SINKS,
    SinkRecord,
    forget,
    read_sink_record,
    sink_records,
    write_sink_record,
)
from svc_events.sinks.states import SinkStates, states_file

if TYPE_CHECKING:
    from svc_events.feed import EventFeed

__all__ = ["MOST_DESTINATIONS", "SinkJob", "SinkRunner"]

MOST_DESTINATIONS = 256
"""Of one sink: each has a thread."""
_MOST_LEFT = 1_000
_TICK_S = 0.5
_SAVE_EVERY = 2
_KEPT_COMMITS = 1_000
"""A place that has moved further without a delivery is stored all the same."""
_STOP_S = 0.7

Sinks = Mapping[str, Extension[EventSink]]
Key = tuple[str, str]
"""The name of a sink, and the id of a destination."""

_left: WeakKeyDictionary[Database, dict[Key, Courier]] = WeakKeyDictionary()
"""Couriers that were told to stop and may be in a call still: the next one of their destination waits."""


class _SinkThread:
    """Asks one sink for its destinations, and has a courier for each."""

    def __init__(self, feed: EventFeed, extension: Extension[EventSink]) -> None:
        self.extension = extension
        self.couriers: dict[str, Courier] = {}
        self.gone: dict[str, SinkRecord] = {}
        self._feed = feed
        self._end = threading.Event()
        self._reported = ""
        self._has_looked = False
        name = f"svc-sink-{extension.value.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it and its couriers, each behind the call that it is in; does not wait."""
        self._end.set()
        for destination_id in list(self.couriers):
            self._dismiss(destination_id)

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - of whoever wrote the sink: it costs no other's events
                self._report("The event sink %s can't say where to deliver to.", error)
            self._end.wait(_TICK_S)

    def _look(self) -> None:
        wanted = {one.id: one for one in self.extension.value.destinations(self.extension.context)}
        for destination in list(wanted.values())[MOST_DESTINATIONS:]:
            self._report(f"The event sink %s has more than {MOST_DESTINATIONS} destinations.")
            del wanted[destination.id]
        if not self._has_looked:
            # What went while nobody delivered.
            known = sink_records(self._feed.database.system(), self.extension.value.name)
            self.gone |= {name: record for name, record in known.items() if name not in wanted}
            self._has_looked = True
        for destination_id in self.couriers.keys() - wanted.keys():
            record, _ = self._dismiss(destination_id).stored
            if record is not None:
                self.gone[destination_id] = record
        for destination in wanted.values():
            courier = self.couriers.get(destination.id)
            if courier is not None:
                if destination != courier.destination:
                    # It may be another of the same id, which begins elsewhere.
                    self.heed(destination.id, courier)
                courier.follow(destination)
            elif not self._end.is_set():
                self.gone.pop(destination.id, None)
                self.couriers = {**self.couriers, destination.id: self._begin(destination)}

    def _begin(self, destination: Destination) -> Courier:
        database, name = self._feed.database, self.extension.value.name
        _, record = read_sink_record(database.system(), name, destination.id)
        place = self._feed.end() if record is None else record.parsed
        before = _left.get(database, {}).pop((name, destination.id), None)
        return Courier(self._feed, self.extension, destination, place, record, before)

    def heed(self, destination_id: str, courier: Courier) -> None:
        """Goes on at once, or elsewhere, where somebody has asked for it."""
        system, name = self._feed.database.system(), self.extension.value.name
        _, record = read_sink_record(system, name, destination_id)
        if record is not None and record.asked > courier.asked:
            courier.stored = (record, courier.delivered)
            courier.go_on(record.parsed, record.asked)

    def _dismiss(self, destination_id: str) -> Courier:
        courier = self.couriers[destination_id]
        self.couriers = {name: one for name, one in self.couriers.items() if name != destination_id}
        courier.stop()
        left = _left.setdefault(self._feed.database, {})
        if len(left) >= _MOST_LEFT:
            for key in [key for key, one in left.items() if not one.is_alive]:
                del left[key]
        left[self.extension.value.name, destination_id] = courier
        return courier

    def _report(self, message: str, error: Exception | None = None) -> None:
        """Writes what is wrong into the log, once for each cause."""
        cause = f"{message} {error!r}"
        if cause != self._reported:
            self._reported = cause
            self.extension.context.logger.error(message, self.extension.value.name, exc_info=error)


class SinkRunner:
    """Runs all sinks of a database. For one thread.

    Args:
        database: the open database.
        feed: its events.
        sinks: gives the sinks that are in use, by name.
    """

    def __init__(self, database: Database, feed: EventFeed, sinks: Callable[[], Sinks]) -> None:
        self._database = database
        self._feed = feed
        self._sinks = sinks
        self._threads: dict[str, _SinkThread] = {}
        self._file = states_file(database.state_directory)
        self._seen: Hash | None = None
        self._ticks = 0

    @property
    def is_delivering(self) -> bool:
        """Whether there is a destination."""
        return any(True for _ in self._couriers())

    def tick(self) -> None:
        """Follows which sinks are in use, stores how far their destinations are, and tells about it."""
        sinks = self._sinks()
        ended = [name for name, one in self._threads.items() if sinks.get(name) is not one.extension]
        if ended:
            self._store(list(self._couriers()), 0)
        for name in ended:
            self._threads.pop(name).stop()
        for name, extension in sinks.items():
            if name not in self._threads:
                self._threads[name] = _SinkThread(self._feed, extension)
        self._heed()
        self._ticks += 1
        if self._ticks % _SAVE_EVERY == 0:
            self.save()
        self._file.beat(SinkStates(tuple(courier.state() for _, courier in self._couriers())))

    def stop(self) -> None:
        """Ends all sinks, but for calls that go on, and stores how far they are. Blocks for a second."""
        couriers = list(self._couriers())
        for thread in self._threads.values():
            thread.stop()
        for _, courier in couriers:
            courier.join(_STOP_S / len(couriers))
        self._store(couriers, 0)
        self._file.remove()

    def abandon(self) -> None:
        """Ends all sinks and stores nothing; the next ones know as little as after a kill."""
        for thread in self._threads.values():
            thread.stop()
        _left.pop(self._database, None)

    def save(self) -> None:
        """Stores the places of those that have delivered since, in one commit; what can't be stored waits."""
        self._store(list(self._couriers()), _KEPT_COMMITS)

    def _couriers(self) -> Iterator[tuple[Key, Courier]]:
        for name, thread in self._threads.items():
            for destination_id, courier in thread.couriers.items():
                yield (name, destination_id), courier

    def _heed(self) -> None:
        """Goes on at once, or elsewhere, where somebody has asked for it."""
        system = self._database.system()
        entry = system.get(SINKS)
        seen = None if entry is None else entry.hash
        if seen == self._seen:
            return
        for (name, destination_id), courier in self._couriers():
            self._threads[name].heed(destination_id, courier)
        self._seen = seen

    def _store(self, couriers: list[tuple[Key, Courier]], kept: int) -> None:
        """Stores places that have moved: with a delivery, or by more than ``kept`` commits."""
        due: list[tuple[Key, Courier, SinkRecord, int]] = []
        for key, courier in couriers:
            delivered = courier.delivered
            record = SinkRecord(str(courier.place), courier.asked)
            stored, delivered_then = courier.stored
            is_old = stored is not None and (
                delivered == delivered_then and abs(record.parsed.sequence - stored.parsed.sequence) <= kept
            )
            if record != stored and not is_old:
                due.append((key, courier, record, delivered))
        system = self._database.system()
        gone = [
            (name, destination_id, record)
            for name, thread in self._threads.items()
            for destination_id, record in list(thread.gone.items())
        ]
        if not due and not gone:
            return
        try:
            with self._database.transaction(message="places of event sinks") as changes:
                for name, destination_id, record in gone:
                    forget(changes, name, destination_id, record, system)
                for key, _, record, _ in due:
                    entry, present = read_sink_record(system, *key)
                    if present is None or present.asked <= record.asked:
                        write_sink_record(changes, *key, record, entry)
        except SvcError:
            # Another was quicker, or the disk is full: it is stored later.
            return
        for name, destination_id, _ in gone:
            self._threads[name].gone.pop(destination_id, None)
        for _, courier, record, delivered in due:
            courier.stored = (record, delivered)


class SinkJob(BackgroundJob):
    """Delivers until it is told to end."""

    name = "sinks"
    interval_s = 1.0
    # One run lasts as long as the process. The health check sees a delivery that hangs.
    stuck_after_s = 5 * 365 * 86_400.0

    def run(self, context: JobContext) -> None:
        """Delivers. Blocks until the job shall end."""
        database = context.database
        runner = SinkRunner(database, feed_of(database), lambda: context.extensions(EVENT_SINKS))
        try:
            while not context.wait(_TICK_S):
                runner.tick()
        finally:
            runner.stop()
