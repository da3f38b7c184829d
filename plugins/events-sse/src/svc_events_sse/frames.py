"""Events as they go out: frames of an event stream (HTML Living Standard, section 9.2)."""

from __future__ import annotations

import functools
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
from svc_events.api import Event, EventFeed, FeedEvent, Place

__all__ = ["HEARTBEAT", "NODE_ID", "PING", "SERVER_READY", "frame", "heartbeat", "now_ms", "server_ready"]

SERVER_READY = "server_ready"
HEARTBEAT = "heartbeat"
PING = b": ping\n\n"
NODE_ID = 0
"""This server is no node of a cluster."""


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
    now = now_ms()
    payload = {
        "status": "ready",
        "version": _version(),
        "startup_time": feed.started_ms,
        "uptime_ms": max(0, now - feed.started_ms),
    }
    return _made(SERVER_READY, place, now, payload)


def heartbeat(place: Place, intent_ms: int) -> bytes:
    """Returns the frame of a pulse; its id says how far the stream has read."""
    now = now_ms()
    payload = {"intent_time": intent_ms, "construct_time": now, "node_id": NODE_ID}
    return _made(HEARTBEAT, place, now, payload)


def now_ms() -> int:
    """The present time, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def _made(name: str, place: Place, at_ms: int, payload: dict[str, Any]) -> bytes:
    event = Event(event_id=str(place), event_type=name, timestamp=at_ms, payload=payload)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event.event_id.encode(),
        name.encode(),
        msgspec.json.encode(event),
    )


@functools.cache
def _version() -> str:
    try:
        return version("svc-core")
    except PackageNotFoundError:
        return "unknown"
