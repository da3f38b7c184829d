"""Sinks: each destination has its own place and pace, and what one of them does costs no other anything."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import pytest
from svc_events.api import (
    EVENT_TYPES,
    DeliveryFailed,
    Destination,
    EventFeed,
    EventSink,
    FeedEvent,
    Onlooker,
    Place,
    deliver_again,
    destination_states,
)
from svc_events.sinks import courier, job
from svc_events.sinks.job import MOST_DESTINATIONS, SinkRunner
from svc_events.sinks.records import SinkRecord, read_sink_record
from svc_events.sinks.states import SinkHealth, SinkStates, states_file
from svc_events.testing.sinks import running_sinks, wait_for

from svc.errors import InsufficientStorage
from svc.plugin import Database, Extension, HealthStatus
from svc_cli import extensions_of


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return ("events",)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(courier, "LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(job, "_TICK_S", 0.02)


class Context:
    """What a sink's methods are handed, as far as these tests look at it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.configuration = None
        self.logger = logging.getLogger("svc.plugin.tests")


class Lists(EventSink):
    """Delivers to lists, by the id of the destination."""

    def __init__(self, name: str = "lists", *destinations: Destination) -> None:
        self.name = name  # type: ignore[misc]  # a class of its own for each would be longer
        self.wanted = list(destinations or (Destination(id="one"),))
        self.taken: dict[str, list[FeedEvent]] = {}
        self.before: Callable[[str], object] = lambda _id: None
        self.seer: Onlooker | None = Onlooker(None)
        self.fault: Exception | None = None

    def destinations(self, context: Any) -> list[Destination]:
        if self.fault is not None:
            raise self.fault
        return self.wanted

    def deliver(self, destination: Destination, events: Sequence[FeedEvent], context: Any) -> None:
        self.before(destination.id)
        self.taken.setdefault(destination.id, []).extend(events)

    def onlooker(self, destination: Destination, context: Any) -> Onlooker | None:
        return self.seer

    def paths(self, destination_id: str = "one") -> list[str]:
        return [
            entry["path"]
            for found in self.taken.get(destination_id, ())
            for entry in found.event.payload.get("entries", ())
        ]


def running(database: Database, *sinks: EventSink) -> AbstractContextManager[SinkRunner]:
    context: Any = Context(database)
    return running_sinks(database, {sink.name: Extension(sink, context) for sink in sinks})


def put(database: Database, *paths: str) -> None:
    for path in paths:
        with database.transaction() as changes:
            changes.put(tuple(path.strip("/").split("/")), b"x")


def known(database: Database, sink: str = "lists", count: int = 1) -> None:
    wait_for(lambda: len(destination_states(database, sink)) == count, "the destinations are known")


def test_one_that_hangs_holds_up_no_other(database: Database) -> None:
    go_on = threading.Event()
    sink = Lists("lists", Destination(id="hangs"), Destination(id="works"))
    other = Lists("other")
    sink.before = lambda name: go_on.wait(60) if name == "hangs" else None
    with running(database, sink, other):
        known(database, count=2)
        known(database, "other")
        put(database, "/a", "/b")
        wait_for(lambda: sink.paths("works") == other.paths() == ["/a", "/b"], "the others have all")
        wait_for(lambda: destination_states(database, "lists")["hangs"].busy_since, "it is told")
        assert sink.paths("hangs") == []
        go_on.set()
        wait_for(lambda: sink.paths("hangs") == ["/a", "/b"], "it goes on")


def test_a_sink_that_raises_is_told_and_tried_again(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    sink, other = Lists(), Lists("other")
    faults = iter([ValueError("secret"), DeliveryFailed("The receiver is ill."), DeliveryFailed("Still.")])

    def fail(_name: str) -> None:
        fault = next(faults, None)
        if fault is not None:
            errors.append((fault, states().get("one")))
            raise fault

    def states() -> dict[str, Any]:
        return destination_states(database, "lists")

    errors: list[Any] = []
    sink.before = fail
    with running(database, sink, other):
        known(database)
        put(database, "/a")
        wait_for(lambda: sink.paths() == other.paths() == ["/a"], "both have it")
        wait_for(lambda: states()["one"].failures == 0, "it is well again")
    assert len(errors) == 3
    assert "The event sink lists failed." in caplog.text


def test_its_failures_are_seen_by_all_processes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "FIRST_PAUSE_S", 30.0)
    monkeypatch.setattr(courier, "LONGEST_PAUSE_S", 30.0)
    sink = Lists()

    def ill(_name: str) -> None:
        raise DeliveryFailed("The receiver is ill.", retry_after=3600)

    sink.before = ill
    with running(database, sink):
        known(database)
        put(database, "/a")
        wait_for(lambda: destination_states(database, "lists")["one"].failures == 1, "it is told")
        state = destination_states(database, "lists")["one"]
        assert state.error == "The receiver is ill."
        assert state.commits_behind >= 1
        assert state.retry_at is not None
        assert state.retry_at > time.time() * 1000 + 3_000_000, "as the receiver asked"
        sink.before = lambda _name: None
        deliver_again(database, "lists", "one", actor=None)
        wait_for(lambda: sink.paths() == ["/a"], "it was tried at once")


def test_one_that_takes_a_part_gets_the_rest(database: Database) -> None:
    sink = Lists()
    tries: list[int] = []

    def deliver(destination: Destination, events: Sequence[FeedEvent], context: Any) -> None:
        tries.append(len(events))
        sink.taken.setdefault("one", []).append(events[0])
        if len(events) > 1:
            raise DeliveryFailed("One at a time.", delivered=1)

    sink.deliver = deliver  # type: ignore[method-assign]
    put(database, "/before")
    with running(database, sink):
        known(database)
        with database.transaction() as changes:
            changes.put(("a",), b"x")
        put(database, *(f"/{number}" for number in range(5)))
        wait_for(lambda: len(sink.paths()) >= 6, "all has arrived")
    assert sink.paths() == ["/a", *(f"/{number}" for number in range(5))]


def test_only_what_is_asked_for_and_may_be_seen_is_delivered(database: Database) -> None:
    sink = Lists(
        "lists",
        Destination(id="all"),
        Destination(id="deleted", names=frozenset({"entries_deleted"})),
        Destination(id="below", path_prefix="/d/"),
    )
    sink.seer = Onlooker(lambda path: path[-1] != "hidden", "ann")
    with running(database, sink):
        known(database, count=3)
        put(database, "/d/a", "/b", "/d/hidden")
        with database.transaction() as changes:
            changes.delete(("b",))
        put(database, "/end", "/d/end")
        for name in ("all", "below"):
            wait_for(lambda name=name: "/d/end" in sink.paths(name), "all has arrived")
        wait_for(lambda: sink.paths("deleted") == ["/b"], "the deletion has arrived")
    assert sink.paths("all") == ["/d/a", "/b", "/b", "/end", "/d/end"]
    assert sink.paths("below") == ["/d/a", "/d/end"]


def test_what_nobody_may_see_now_waits(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "_HELD_BACK_S", 0.02)
    sink = Lists()
    sink.seer = None
    with running(database, sink):
        known(database)
        put(database, "/a")
        time.sleep(0.2)
        assert sink.paths() == []
        sink.seer = Onlooker(None)
        wait_for(lambda: sink.paths() == ["/a"], "it has arrived")


def test_what_is_gone_is_forgotten(database: Database) -> None:
    sink = Lists("lists", Destination(id="stays"), Destination(id="goes"))
    with running(database, sink):
        known(database, count=2)
        wait_for(lambda: read_sink_record(database.system(), "lists", "goes")[1], "it is noted")
        sink.wanted = sink.wanted[:1]
        wait_for(lambda: not read_sink_record(database.system(), "lists", "goes")[1], "it is forgotten")
        known(database, count=1)
        put(database, "/meanwhile")
        sink.wanted = [Destination(id="stays"), Destination(id="goes")]
        known(database, count=2)
        put(database, "/a")
        wait_for(lambda: sink.paths("goes") == ["/a"], "it begins anew")
    assert sink.paths("stays") == ["/meanwhile", "/a"]


def test_one_that_cannot_say_where_to_goes_on_as_before(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Lists()
    with running(database, sink):
        known(database)
        sink.fault = OSError("no file")
        wait_for(lambda: "can't say where" in caplog.text, "it is told")
        put(database, "/a")
        wait_for(lambda: sink.paths() == ["/a"], "it has arrived")
        time.sleep(0.2)
    assert caplog.text.count("can't say where") == 1


def test_a_full_disk_stops_no_delivery(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Lists()
    with running(database, sink) as runner:
        known(database)
        wait_for(lambda: read_sink_record(database.system(), "lists", "one")[1], "it is noted")
        before = read_sink_record(database.system(), "lists", "one")[1]
        transaction = database.transaction
        full = threading.Event()

        def begin(**facts: Any) -> Any:
            if facts.get("message") == "places of event sinks":
                full.set()
                raise InsufficientStorage("The disk is full.")
            return transaction(**facts)

        monkeypatch.setattr(database, "transaction", begin)
        put(database, "/a", "/b")
        wait_for(lambda: sink.paths() == ["/a", "/b"], "both have arrived")
        assert full.wait(10)
        assert read_sink_record(database.system(), "lists", "one")[1] == before
        monkeypatch.setattr(database, "transaction", transaction)
        runner.save()
        wait_for(lambda: read_sink_record(database.system(), "lists", "one")[1] != before, "it is noted")


def test_events_that_concern_nobody_cost_no_commit_each(database: Database) -> None:
    sink = Lists("lists", Destination(id="one", names=frozenset({"entries_deleted"})))
    with running(database, sink):
        known(database)
        wait_for(lambda: read_sink_record(database.system(), "lists", "one")[1], "it is noted")
        before = database.head().sequence
        put(database, *(f"/{number}" for number in range(20)))
        wait_for(
            lambda: destination_states(database, "lists")["one"].place == str(Place(before + 20)),
            "it has looked at all",
        )
        time.sleep(0.3)
        assert database.head().sequence == before + 20


def test_there_are_no_more_than_so_many(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    sink = Lists("lists", *(Destination(id=str(number)) for number in range(MOST_DESTINATIONS + 5)))
    with running(database, sink):
        known(database, count=MOST_DESTINATIONS)
    assert f"more than {MOST_DESTINATIONS}" in caplog.text


def test_one_that_was_asked_for_elsewhere_meanwhile_goes_there(database: Database) -> None:
    """What is in a call when somebody asks counts for nothing: the place that was asked for does."""
    sink, begun, go_on = Lists(), threading.Event(), threading.Event()

    def wait(_name: str) -> None:
        begun.set()
        go_on.wait(60)

    with running(database, sink):
        known(database)
        start = Place(database.head().sequence)
        put(database, "/a")
        wait_for(lambda: sink.paths() == ["/a"], "it has arrived")
        sink.before = wait
        put(database, "/b")
        assert begun.wait(60)
        deliver_again(database, "lists", "one", start, actor=None)
        wait_for(lambda: destination_states(database, "lists")["one"].place == str(start), "it is heeded")
        sink.before = lambda _name: None
        go_on.set()
        wait_for(lambda: sink.paths()[-2:] == ["/a", "/b"] and len(sink.paths()) >= 4, "all came again")


def test_its_health_is_told(database: Database) -> None:
    context: Any = Context(database)
    assert SinkHealth().check(context).status is HealthStatus.HEALTHY
    sink = Lists()
    with running(database, sink):
        known(database)
        (state,) = destination_states(database, "lists").values()
    ago = int(time.time() * 1000) - 11 * 60_000
    bad = msgspec.structs.replace(state, failing_since=ago, error="The receiver is ill.")
    states_file(database.state_directory).beat(SinkStates((bad,)))
    report = SinkHealth().check(context)
    assert report.status is HealthStatus.DEGRADED
    assert report.details["destinations"]["lists/one"]["error"] == "The receiver is ill."
    assert "ill" not in report.message
    slow = msgspec.structs.replace(state, commits_behind=100_001)
    states_file(database.state_directory).beat(SinkStates((slow,)))
    report = SinkHealth().check(context)
    assert report.details["destinations"]["lists/one"]["error"] == "It is far behind."


def test_a_record_of_another_form_is_none(database: Database) -> None:
    with database.transaction() as changes:
        changes.put_system(("events", "sinks", "lists", "one"), b"no JSON")
    sink = Lists()
    with running(database, sink):
        known(database)
        put(database, "/a")
        wait_for(lambda: sink.paths() == ["/a"], "it has arrived")
        wait_for(lambda: read_sink_record(database.system(), "lists", "one")[1], "it is noted")
        _, record = read_sink_record(database.system(), "lists", "one")
        assert isinstance(record, SinkRecord)


def test_settings_that_change_deliver_nothing_twice(database: Database) -> None:
    """The next courier waits for the call of the one before, and goes on where that came to."""
    sink, begun, go_on = Lists(), threading.Event(), threading.Event()

    def wait(_name: str) -> None:
        begun.set()
        go_on.wait(60)

    context: Any = Context(database)
    types = extensions_of(database, "events", EVENT_TYPES)
    feed = EventFeed(database, lambda: types)
    used = {"lists": Extension(sink, context)}
    runner = SinkRunner(database, feed, lambda: used)
    runner.tick()
    wait_for(lambda: runner.is_delivering, "it has its destination")
    sink.before = wait
    put(database, "/a")
    assert begun.wait(60)
    used["lists"] = Extension(sink, context)
    runner.tick()
    wait_for(lambda: runner.is_delivering, "the next one has it")
    put(database, "/b")
    sink.before = lambda _name: None
    go_on.set()
    wait_for(lambda: sink.paths() == ["/a", "/b"], "both have arrived once")
    runner.stop()
    feed.close()


def test_a_success_ends_the_count_of_failures(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within a batch: else the pause would double although events are taken."""
    monkeypatch.setattr(courier, "LONGEST_PAUSE_S", 60.0)
    sink, tries = Lists(), iter(range(1_000))
    sink.maximum_batch = 1  # type: ignore[misc]

    def every_third(_name: str) -> None:
        if next(tries) % 3 == 2:
            raise DeliveryFailed("Not now.")

    with running(database, sink):
        known(database)
    sink.before = every_third
    put(database, *(f"/{number}" for number in range(40)))
    began = time.monotonic()
    with running(database, sink):
        wait_for(lambda: len(sink.paths()) == 40, "all has arrived")
    assert time.monotonic() - began < 20


def test_nobody_who_delivers_is_told(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from svc_events.sinks import states

    context: Any = Context(database)
    sink = Lists()
    with running(database, sink):
        known(database)
        wait_for(lambda: read_sink_record(database.system(), "lists", "one")[1], "it is noted")
    monkeypatch.setattr(states, "_SILENT_MS", 0)
    time.sleep(0.01)
    assert SinkHealth().check(context).status is HealthStatus.HEALTHY, "it had delivered all when it ended"
    put(database, "/a")
    time.sleep(0.01)
    assert SinkHealth().check(context).status is HealthStatus.DEGRADED
    assert destination_states(database, "lists") == {}
