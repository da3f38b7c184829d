"""Events as they go out: frames of an event stream (HTML Living Standard, section 9.2)."""

from __future__ import annotations

import time

import msgspec
from svc_events.api import Event, EventFeed, FeedEvent, Place

from svc.plugin import version_of_svc

__all__ = ["PING", "SERVER_READY", "encoded", "frame", "server_ready"]

SERVER_READY = "server_ready"
PING = b": ping\n\n"


def frame(found: FeedEvent) -> bytes:
    """Returns the frame of an event. JSON has no line breaks, so it is one line of data."""
    event = found.event
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event.event_id.encode(),
        event.event_type.encode(),
        found.json,
    )


def server_ready(feed: EventFeed, place: Place) -> bytes:
    """Returns the first frame of a stream; its id is the place where the stream begins."""
    now = time.time_ns() // 1_000_000
    payload = {
        "status": "ready",
        "version": version_of_svc(),
        "startup_time": feed.started_ms,
        "uptime_ms": max(0, now - feed.started_ms),
    }
    return encoded(Event(event_id=str(place), event_type=SERVER_READY, timestamp=now, payload=payload))


def encoded(event: Event) -> bytes:
    """Returns the frame of an event that is in no log, such as a pulse."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event.event_id.encode(),
        event.event_type.encode(),
        msgspec.json.encode(event),
    )
