"""The contract of event sinks, as tests: whatever happens, all arrives, in order.

An author wires a ``Receiver`` to a real one: it calls ``receiver.take`` with the id and the type of each
event, and acknowledges those of which that says True.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import pytest

from svc.plugin import Database
from svc_cli import extensions_of
from svc_events.api import EVENT_SINKS, EVENT_TYPES, GAP, EventFeed, EventSink, Place, deliver_again
from svc_events.sinks import courier, job
from svc_events.sinks.job import SinkRunner, Sinks
from svc_testing import ExtensionContract, used_by

__all__ = ["EventSinkContract", "Receiver", "running_sinks"]

_PATIENCE_S = 60.0


class Receiver:
    """What has arrived, and whether it is taken.

    Attributes:
        taken: the id and the type of each event, in the order of arrival.
        refuses: is asked for each event; true refuses it.
    """

    def __init__(self) -> None:
        self.taken: list[tuple[str, str]] = []
        self.refuses: Callable[[], bool] = lambda: False

    def take(self, event_id: str, event_type: str) -> bool:
        """Says whether an event is taken; one that is not must not be acknowledged."""
        if self.refuses():
            return False
        self.taken.append((event_id, event_type))
        return True

    @property
    def ids(self) -> list[str]:
        """The ids of what has arrived, each once, in the order of their first arrival."""
        return list(dict.fromkeys(event_id for event_id, _ in self.taken))


@contextmanager
def running_sinks(
    database: Database, sinks: Sinks | None = None, *, killed: bool = False
) -> Iterator[SinkRunner]:
    """Delivers as the background process does, for as long as the context lasts.

    Args:
        database: the open database.
        sinks: by name; None: those of the plugins that are enabled.
        killed: ends it as a kill would: what was delivered last is not noted.
    """
    used = extensions_of(database, "events", EVENT_SINKS) if sinks is None else sinks
    types = extensions_of(database, "events", EVENT_TYPES)
    feed = EventFeed(database, lambda: types)
    runner = SinkRunner(database, feed, lambda: used)
    end = threading.Event()

    def run() -> None:
        while not end.wait(0.02):
            runner.tick()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield runner
    finally:
        end.set()
        thread.join()
        (runner.abandon if killed else runner.stop)()
        feed.close()


def wait_for(condition: Callable[[], Any], what: str, seconds: float = _PATIENCE_S) -> None:
    """Waits until something holds, and fails when it does not for so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"In {seconds:g} seconds it did not come to this: {what}"
        time.sleep(0.01)


class EventSinkContract(ExtensionContract):
    """Tests of an event sink. A subclass sets ``plugin_id``, gives ``extension``, and says who receives.

    Attributes:
        beside: other plugins that the sink needs.
        destination: the id of its destination.
    """

    family = EVENT_SINKS
    beside: ClassVar[Sequence[str]] = ()
    destination: ClassVar[str] = "one"

    def receiving(self, receiver: Receiver, database: Database) -> AbstractContextManager[None]:
        """Within the context the sink has one destination, whose events go to the receiver."""
        pytest.fail(f"{type(self).__name__} must say who receives.")

    @pytest.fixture
    def svc_plugins(self) -> Sequence[str]:
        """What the database of the tests has."""
        return used_by("events", self.plugin_id, *self.beside)

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(courier, "FIRST_PAUSE_S", 0.01)
        monkeypatch.setattr(courier, "LONGEST_PAUSE_S", 0.02)
        monkeypatch.setattr(job, "_TICK_S", 0.02)

    @pytest.fixture
    def receiver(self, database: Database) -> Iterator[Receiver]:
        """A receiver to which the sink delivers."""
        receiver = Receiver()
        with self.receiving(receiver, database):
            yield receiver

    def test_all_arrives_once_and_in_order(self, database: Database, receiver: Receiver) -> None:
        """While nothing goes wrong."""
        with self._delivering(database):
            expected = self._happen(database, 20)
            wait_for(lambda: len(receiver.taken) >= len(expected), "all has arrived")
        assert [event_id for event_id, _ in receiver.taken] == expected

    def test_what_is_refused_comes_again(self, database: Database, receiver: Receiver) -> None:
        """A receiver that takes every second event only gets all, in order."""
        turns = iter(range(1_000_000))
        receiver.refuses = lambda: next(turns) % 2 == 0
        with self._delivering(database):
            expected = self._happen(database, 20)
            wait_for(lambda: len(receiver.ids) >= len(expected), "all has arrived")
        assert receiver.ids == expected

    def test_after_a_kill_nothing_is_missing(self, database: Database, receiver: Receiver) -> None:
        """What was delivered and not noted comes again; the order stays."""
        expected = []
        with self._delivering(database, killed=True):
            expected += self._happen(database, 10)
            wait_for(lambda: len(receiver.ids) >= 3, "some have arrived")
        expected += self._happen(database, 10)
        with self._delivering(database):
            wait_for(lambda: len(receiver.ids) >= len(expected), "all has arrived")
        assert receiver.ids == expected

    def test_after_an_orderly_end_nothing_comes_twice(self, database: Database, receiver: Receiver) -> None:
        """What happens while nothing runs is delivered later."""
        with self._delivering(database):
            expected = self._happen(database, 5)
            wait_for(lambda: len(receiver.taken) >= len(expected), "all has arrived")
        expected += self._happen(database, 5)
        with self._delivering(database):
            wait_for(lambda: len(receiver.taken) >= len(expected), "all has arrived")
        assert [event_id for event_id, _ in receiver.taken] == expected

    def test_a_log_that_went_back_is_told(
        self, database: Database, receiver: Receiver, extension: EventSink
    ) -> None:
        """As after a return to an older copy of the file: a ``gap``, and then what happens."""
        with self._delivering(database):
            ahead = Place(database.head().sequence + 1_000)
            deliver_again(database, extension.name, self.destination, ahead, actor=None)
            wait_for(lambda: receiver.taken, "the gap has arrived")
            expected = self._happen(database, 3)
            wait_for(lambda: len(receiver.taken) > len(expected), "all has arrived")
        (_, kind), *others = receiver.taken
        assert kind == GAP
        assert [event_id for event_id, _ in others] == expected

    @contextmanager
    def _delivering(self, database: Database, *, killed: bool = False) -> Iterator[None]:
        with running_sinks(database, killed=killed) as runner:
            wait_for(lambda: runner.is_delivering, "the sink has its destination")
            yield

    def _happen(self, database: Database, count: int) -> list[str]:
        """Stores files, and returns the ids of the events of that."""
        begun = database.head().sequence
        for number in range(count):
            with database.transaction() as changes:
                changes.put((f"{begun}-{number}.txt",), b"%d" % number)
        types = extensions_of(database, "events", EVENT_TYPES)
        feed, place, found = EventFeed(database, lambda: types), Place(begun), []
        while (batch := feed.after(place)) is not None:
            found += [one.event.event_id for one in batch.events]
            place = batch.place
        return found
