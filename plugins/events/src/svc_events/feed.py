"""The events of one database in order: made once in a process, whoever reads them, and kept for a while.

Whoever reads holds a place in the log and asks for what comes behind it. Nothing is kept for a reader: one
that is slow asks later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import CorruptRecord, NotFound, ServiceUnavailable
from svc.plugin import Path, parse_path, run_blocking
from svc_events.api import GAP, Event, EventData, EventType, SeenBy
from svc_events.commits import FeedCommit
from svc_events.places import LAST_NUMBER, Place
from svc_events.pulses import Pulses
from svc_events.selecting import paths_of
from svc_events.watch import CommitWatch

if TYPE_CHECKING:
    from svc.plugin import Commit, Database, Extension

__all__ = ["EventBatch", "EventFeed", "FeedEvent"]

_BLOCK = 64
"""Most commits of a batch. None goes over a multiple, so that readers of different places come together."""
_MOST_WEIGHT = 1_000
"""Entries of the events of a batch, about; each event counts as one more."""
_KEPT_WEIGHT = 32_000
"""Of the batches that are kept for others."""
_MOST_OPEN = 16
"""Commits of many entries that are read on in the middle, by as many readers at different places."""
_MOST_OPEN_COMMITS = 2
"""Different ones among them: the record of one may be large."""

_Part = tuple[int, FeedCommit | None, Iterator["FeedEvent"]]
"""The number of a commit, the commit where it can be read, and its events, or those that are left."""

_encode = msgspec.json.encode
logger = logging.getLogger("svc.plugin.events")


class FeedEvent:
    """An event with what is needed to deliver it. Shared by all that read: nobody changes it.

    Attributes:
        event: the envelope.
        json: the same as JSON, in one line.
        seen_by: who may see it.
        paths: the paths in its payload, where who may see it depends on them.
    """

    __slots__ = ("event", "json", "paths", "seen_by")

    def __init__(self, event: Event, seen_by: SeenBy, paths: Sequence[Path]) -> None:
        self.event = event
        self.seen_by = seen_by
        self.paths = paths
        self.json = _encode(event)

    def with_entries(self, entries: list[dict[str, Any]], paths: Sequence[Path]) -> FeedEvent:
        """Returns the same event with a part of its entries."""
        payload = {**self.event.payload, "entries": entries}
        return FeedEvent(msgspec.structs.replace(self.event, payload=payload), self.seen_by, paths)


class EventBatch(msgspec.Struct, frozen=True):
    """The next events behind a place.

    Attributes:
        events: the events, in order; there may be none.
        place: behind the last of them, and behind what gave none: where to go on.
    """

    events: Sequence[FeedEvent]
    place: Place


class EventFeed:
    """Reads the events of a database; used by any thread or greenlet.

    Args:
        database: the open database.
        types: gives the event types that are in use, by name; the same object for as long as nothing changes.
        pulses: those that are in use; None: none.

    Attributes:
        pulses: what comes again and again.
    """

    def __init__(
        self,
        database: Database,
        types: Callable[[], Mapping[str, Extension[EventType]]],
        pulses: Pulses | None = None,
    ) -> None:
        self.database = database
        self.pulses = pulses or Pulses(dict)
        self.started_ms = time.time_ns() // 1_000_000
        self._types_in_use = types
        self._lock = threading.Lock()
        self._kept: OrderedDict[Place, EventBatch] = OrderedDict()
        self._kept_weight = 0
        self._known: Mapping[str, Extension[EventType]] | None = None
        self._types: list[tuple[EventType, Any]] = []
        # Where batches ended in the middle of a commit: how it goes on.
        self._open: OrderedDict[Place, tuple[FeedCommit, Iterator[FeedEvent]]] = OrderedDict()
        self._reported: set[str] = set()
        self.watch = CommitWatch(database, self.forget)

    def names(self) -> frozenset[str]:
        """The names of the events that there are now."""
        return frozenset(self._types_in_use()).union(self.pulses.names())

    def end(self) -> Place:
        """The place behind everything that has been committed so far."""
        return Place(self.database.head().sequence)

    def after(self, place: Place) -> EventBatch | None:
        """Returns the next events behind a place; None where everything has been read. Blocks.

        Where commits cannot be read, or the place is behind the end of the log, as after a return to an older
        copy of the file, the batch holds a ``gap``.

        Raises:
            ServiceUnavailable: the plugin is not in use any more.
        """
        if self.watch.is_closed:
            raise ServiceUnavailable("The plugin 'events' is not in use for this database any more.")
        end = self.end()
        if place.sequence > end.sequence:
            return EventBatch([gap(place, end, "ahead", self.database.head().time_ms)], end)
        if place >= end:
            return None
        self._follow_types()
        batch = self._kept.get(place)
        if batch is None:
            # One makes them, and the others wait for it.
            with self._lock:
                batch = self._kept.get(place)
                if batch is None:
                    batch = self._part_of_block(place, end) or run_blocking(self._make, place)
                    self._keep(place, batch)
        return batch

    def gap(self, begin: Place, end: Place, reason: str) -> FeedEvent:
        """Returns the event that says that those between two places are left out."""
        return gap(begin, end, reason, self.database.head().time_ms)

    def forget(self) -> None:
        """Forgets what is kept for those who read the same; they are made again when they are needed."""
        with self._lock:
            self._clear()

    def close(self) -> None:
        """Ends the waits of those who read."""
        self.watch.close()

    def _part_of_block(self, place: Place, end: Place) -> EventBatch | None:
        """Returns the next events out of those of a whole block of commits, which is read once for all.

        Thousands who come back after a restart are at as many places. None: the block has not ended yet, the
        place is its beginning, or it has more than a batch holds.
        """
        read = place.sequence if place.number == LAST_NUMBER else place.sequence - 1
        begin = Place(read // _BLOCK * _BLOCK)
        if place.sequence < 1 or place == begin or end.sequence < begin.sequence + _BLOCK:
            return None
        block = self._kept.get(begin)
        if block is None:
            block = run_blocking(self._make, begin)
            self._keep(begin, block)
        if block.place <= place:
            return None
        here = str(place)
        return EventBatch([found for found in block.events if found.event.event_id > here], block.place)

    def _keep(self, place: Place, batch: EventBatch) -> None:
        self._kept[place] = batch
        self._kept_weight += _weight(batch)
        while self._kept_weight > _KEPT_WEIGHT:
            self._kept_weight -= _weight(self._kept.popitem(last=False)[1])

    def _clear(self) -> None:
        self._kept.clear()
        self._kept_weight = 0
        self._open.clear()

    def _follow_types(self) -> None:
        known = self._types_in_use()
        if known is self._known:
            return
        with self._lock:
            self._clear()
            by_name = {found.value.names[0]: found for found in known.values()}
            self._types = [
                (by_name[name].value, by_name[name].context.configuration) for name in sorted(by_name)
            ]
            self._known = known

    def _make(self, place: Place) -> EventBatch:
        found: list[FeedEvent] = []
        weight = 0
        for sequence, commit, events in islice(self._commits(place), _BLOCK):
            for event in events:
                found.append(event)
                weight += 1 + len(event.paths)
                if weight >= _MOST_WEIGHT:
                    here = Place(sequence, int(event.event.event_id.rpartition(".")[2]))
                    if commit is not None:
                        self._leave_open(here, commit, events)
                    return EventBatch(found, here)
            place = Place(sequence)
            if sequence % _BLOCK == 0:
                break
        return EventBatch(found, place)

    def _leave_open(self, place: Place, commit: FeedCommit, events: Iterator[FeedEvent]) -> None:
        """Keeps how a commit goes on: to begin anew for each batch would cost the square of its entries."""
        held = self._open
        held[place] = commit, events
        while len(held) > _MOST_OPEN or len({one.sequence for one in held}) > _MOST_OPEN_COMMITS:
            held.popitem(last=False)

    def _commits(self, place: Place) -> Iterator[_Part]:
        """Yields the commits behind a place, each with its number and its events, from the place on."""
        sequence, number = place
        if sequence > 0 and number < LAST_NUMBER:
            opened = self._open.pop(place, None)
            if opened is not None:
                yield sequence, *opened
            else:
                yield from self._rest(sequence, number)
        # As it is now: no place may be behind it, though the index may know of commits that it does not.
        head = self.database.head()
        while sequence < head.sequence:
            try:
                for commit in self.database.commits(sequence):
                    if commit.sequence > head.sequence:
                        break
                    if commit.sequence > sequence + 1:
                        yield self._missing(sequence + 1, commit.sequence - 1, commit.time_ms)
                    sequence = commit.sequence
                    feed_commit = FeedCommit(self.database, commit)
                    yield sequence, feed_commit, self._events(feed_commit)
                if sequence < head.sequence:
                    yield self._missing(sequence + 1, head.sequence, head.time_ms)
                    sequence = head.sequence
            except (CorruptRecord, NotFound):
                sequence += 1
                yield self._missing(sequence, sequence, head.time_ms)

    def _rest(self, sequence: int, number: int) -> Iterator[_Part]:
        try:
            commit = self._opened_commit(sequence) or FeedCommit(
                self.database, self.database.commit(sequence)
            )
        except (CorruptRecord, NotFound):
            here = Place(sequence, number)
            yield sequence, None, iter([self.gap(here, Place(sequence), "unreadable")])
            return
        yield sequence, commit, self._events(commit, number)

    def _opened_commit(self, sequence: int) -> FeedCommit | None:
        """The commit as others hold it, who are in the middle of it: its record is held once."""
        return next((one for place, (one, _) in self._open.items() if place.sequence == sequence), None)

    @staticmethod
    def _missing(first: int, last: int, time_ms: int) -> _Part:
        return last, None, iter([gap(Place(first - 1), Place(last), "unreadable", time_ms)])

    def _events(self, feed_commit: FeedCommit, behind: int = 0) -> Iterator[FeedEvent]:
        """Makes the events of a commit, numbered from 1; those that cannot be given keep their numbers.

        In the place of those whose records a collection took stands a gap. Where a type raises, what it said
        until then counts.
        """
        commit = feed_commit.commit
        number = 0
        for kind, configuration in self._types:
            missing = 0
            try:
                for data in kind.events(feed_commit, configuration):
                    number += 1
                    gone, feed_commit.gone = feed_commit.gone, 0
                    if number <= behind or number >= LAST_NUMBER:
                        continue
                    if data is None:
                        missing += missing > 0 or gone > 0
                        continue
                    if missing:
                        yield _collected(kind, commit, number - 1, missing)
                        missing = 0
                    yield _event(data, kind.seen_by, Place(commit.sequence, number), commit.time_ms)
                if missing:
                    yield _collected(kind, commit, min(number, LAST_NUMBER - 1), missing)
            except Exception as error:  # noqa: BLE001 - of whoever wrote the type: it costs no other's events
                self._report(kind, error)

    def _report(self, kind: EventType, error: Exception) -> None:
        """Writes a failure into the log, once for each type."""
        name = kind.names[0]
        if name not in self._reported:
            self._reported.add(name)
            logger.error("The event type of %s failed.", ", ".join(kind.names), exc_info=error)


def _weight(batch: EventBatch) -> int:
    return 1 + sum(1 + len(found.paths) for found in batch.events)


def _event(data: EventData, seen_by: SeenBy, place: Place, time_ms: int) -> FeedEvent:
    event = Event(
        event_id=str(place),
        event_type=data.event_type,
        timestamp=time_ms,
        payload=data.payload,
        user_id=data.user_id,
        recipient_user_id=data.recipient_user_id,
    )
    paths = [parse_path(path) for path in paths_of(data.payload)] if seen_by in ("paths", "recipient") else ()
    return FeedEvent(event, seen_by, paths)


def _collected(kind: EventType, commit: Commit, last: int, count: int) -> FeedEvent:
    """Says of a type that some of its events, up to one with a number, can't be made any more."""
    begin, end = Place(commit.sequence, last - count), Place(commit.sequence, last)
    found = gap(begin, end, "collected", commit.time_ms, events=list(kind.names))
    return FeedEvent(found.event, kind.seen_by, ())


def gap(begin: Place, end: Place, reason: str, time_ms: int, **more: Any) -> FeedEvent:
    """Returns the event that says that others are missing, from behind ``begin`` up to ``end``.

    ``reason`` is ``unreadable``, ``ahead`` (the log ends before ``begin``), ``behind`` or ``collected``.
    """
    payload = {"from": str(begin), "to": str(end), "reason": reason, **more}
    event = Event(event_id=str(end), event_type=GAP, timestamp=time_ms, payload=payload)
    return FeedEvent(event, "everyone", ())
