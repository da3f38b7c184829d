"""Pulses: made once for all streams, when they are due, for those who may see them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from svc_events.api import BEGINNING, EventFilter, Onlooker, Pulse
from svc_events.pulses import DuePulses, Pulses


class Beat(Pulse):
    def __init__(self, name: str = "beat", seen_by: Any = "root") -> None:
        self.name = name  # type: ignore[misc]
        self.seen_by = seen_by  # type: ignore[misc]
        self.made: list[int] = []
        self.broken = False

    def interval_ms(self, configuration: Any) -> int:
        return 2_000

    def payload(self, context: Any, due_ms: int) -> dict[str, Any]:
        if self.broken:
            raise ValueError("broken")
        self.made.append(due_ms)
        return {"due": due_ms}


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ms = 1_000_500
        monkeypatch.setattr("svc_events.pulses._now_ms", lambda: self.ms)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def pulses_of(*beats: Beat) -> Pulses:
    known = {
        beat.name: SimpleNamespace(value=beat, context=SimpleNamespace(configuration=None)) for beat in beats
    }
    return Pulses(lambda: known)  # type: ignore[arg-type, return-value]


EVERYTHING = EventFilter()
ROOT = Onlooker(None)
ANN: Callable[[], Onlooker] = lambda: Onlooker(lambda path: True, "ann")  # noqa: E731
LINK = Onlooker(lambda path: True, None)


def test_all_streams_get_the_same_when_it_is_due(clock: Clock) -> None:
    beat = Beat()
    pulses = pulses_of(beat)
    streams = [DuePulses(pulses, EVERYTHING) for _ in range(3)]
    assert streams[0].patience() == 1.5
    assert streams[0].take(ROOT, BEGINNING) == []
    clock.ms = 1_002_001
    for stream in streams:
        (event,) = stream.take(ROOT, BEGINNING)
        assert msgspec.json.decode(msgspec.json.encode(event))["payload"] == {"due": 1_002_000}
        assert stream.take(ROOT, BEGINNING) == []
        assert stream.patience() == 1.999
    assert beat.made == [1_002_000]
    # Who slept through some gets one.
    clock.ms = 1_009_000
    assert len(streams[0].take(ROOT, BEGINNING)) == 1
    assert beat.made == [1_002_000, 1_004_000]


@pytest.mark.parametrize(
    ("seen_by", "seen"),
    [("root", (True, False, False)), ("users", (True, True, False)), ("everyone", (True, True, True))],
)
def test_who_may_see_them(clock: Clock, seen_by: str, seen: tuple[bool, ...]) -> None:
    pulses = pulses_of(Beat(seen_by=seen_by))
    for onlooker, sees in zip((ROOT, ANN(), LINK), seen, strict=True):
        clock.ms = 1_000_500
        stream = DuePulses(pulses, EVERYTHING)
        clock.ms = 1_002_000
        assert bool(stream.take(onlooker, BEGINNING)) is sees


def test_filters_and_own_streams(clock: Clock) -> None:
    pulses = pulses_of(Beat("a"), Beat("b"))
    for wanted, names in (
        (EVERYTHING, {"a", "b"}),
        (EventFilter(names=frozenset({"b", "entries_created"})), {"b"}),
        (EventFilter(own=True), set()),
    ):
        clock.ms = 1_000_500
        stream = DuePulses(pulses, wanted)
        clock.ms = 1_002_000
        assert {event.event_type for event in stream.take(ROOT, BEGINNING)} == names


def test_one_that_raises_ends_no_stream(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    broken, fine = Beat("broken"), Beat("fine")
    broken.broken = True
    stream = DuePulses(pulses_of(broken, fine), EVERYTHING)
    clock.ms = 1_002_000
    assert [event.event_type for event in stream.take(ROOT, BEGINNING)] == ["fine"]
    assert "The pulse broken failed." in caplog.text


def test_a_clock_that_is_set_back_repeats_nothing_old(clock: Clock) -> None:
    beat = Beat()
    pulses = pulses_of(beat)
    stream = DuePulses(pulses, EVERYTHING)
    clock.ms = 1_002_000
    stream.take(ROOT, BEGINNING)
    clock.ms = 900_000
    later = DuePulses(pulses, EVERYTHING)
    clock.ms = 902_000
    (event,) = later.take(ROOT, BEGINNING)
    assert msgspec.json.decode(msgspec.json.encode(event))["payload"] == {"due": 902_000}
    assert beat.made == [1_002_000, 902_000]
