"""What comes again and again while somebody listens: made once in a process for all its streams."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from svc.plugin import run_blocking
from svc_events.api import Event, Pulse

if TYPE_CHECKING:
    from svc.plugin import Extension
    from svc_events.places import Place
    from svc_events.selecting import EventFilter, Onlooker

__all__ = ["DuePulses", "Pulses"]

_LEAST_MS = 1_000

logger = logging.getLogger("svc.plugin.events")


class Pulses:
    """The pulses of a database that are in use.

    Args:
        known: gives them by name.
    """

    def __init__(self, known: Callable[[], Mapping[str, Extension[Pulse]]]) -> None:
        self._known = known
        self._lock = threading.Lock()
        self._last: dict[str, tuple[int, msgspec.Raw | None]] = {}

    def names(self) -> frozenset[str]:
        """The names of those that there are now."""
        return frozenset(self._known())

    def get(self, name: str) -> Extension[Pulse] | None:
        """Returns one, or None."""
        return self._known().get(name)

    def payload(self, pulse: Extension[Pulse], due_ms: int) -> msgspec.Raw | None:
        """Returns what a pulse says that is due, as JSON; None where it can't say it. May block."""
        name = pulse.value.name
        with self._lock:
            known = self._last.get(name)
            # What was made for a time to come was made before the clock was set back.
            if known is None or known[0] < due_ms or known[0] > _now_ms():
                known = self._last[name] = due_ms, run_blocking(_made, pulse, due_ms)
            return known[1]


class DuePulses:
    """When the next pulses are due for one stream.

    Args:
        pulses: those of the database.
        wanted: which events the stream has.
    """

    def __init__(self, pulses: Pulses, wanted: EventFilter) -> None:
        self._pulses = pulses
        names = () if wanted.own else pulses.names()
        self._due: dict[str, int] = {}
        for name in sorted(filter(wanted.wants, names)):
            self._plan(name)

    def patience(self) -> float:
        """Seconds until the next is due; infinite where none is."""
        return (min(self._due.values(), default=float("inf")) - _now_ms()) / 1000

    def take(self, onlooker: Onlooker, place: Place) -> list[Event]:
        """Returns those that are due, and that somebody may see, with the place of the stream. May block."""
        found: list[Event] = []
        now = _now_ms()
        for name, due_ms in list(self._due.items()):
            if due_ms > now:
                continue
            self._plan(name)
            pulse = self._pulses.get(name)
            if pulse is None or not _may_see(pulse.value, onlooker):
                continue
            payload = self._pulses.payload(pulse, due_ms)
            if payload is not None:
                made = cast("dict[str, Any]", payload)  # It is encoded already, once for all streams.
                found.append(Event(event_id=str(place), event_type=name, timestamp=now, payload=made))
        return found

    def _plan(self, name: str) -> None:
        pulse = self._pulses.get(name)
        if pulse is None:
            self._due.pop(name, None)
            return
        interval = max(_LEAST_MS, pulse.value.interval_ms(pulse.context.configuration))
        # At the same moments on every server with a right clock.
        self._due[name] = (_now_ms() // interval + 1) * interval


def _made(pulse: Extension[Pulse], due_ms: int) -> msgspec.Raw | None:
    try:
        return msgspec.Raw(msgspec.json.encode(pulse.value.payload(pulse.context, due_ms)))
    except Exception as error:
        logger.error("The pulse %s failed.", pulse.value.name, exc_info=error)
        return None


def _may_see(pulse: Pulse, onlooker: Onlooker) -> bool:
    if onlooker.sees_all or pulse.seen_by == "everyone":
        return True
    return pulse.seen_by == "users" and onlooker.user_id is not None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
