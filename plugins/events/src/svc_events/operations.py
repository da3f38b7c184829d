"""The streams of events. They are declared here, where they are read, and served by the plugin events.sse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import Weight, operation, requires_identity
from svc_events.models import EventQuery

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["stream_events", "stream_own_events"]

_STREAM = ("", "text/event-stream")


@operation(
    "GET",
    "/system/events",
    requires_identity,
    older=("/events/stream",),
    weight=Weight.STREAMING,
    cache="no-store",
    media_types=_STREAM,
    responder="svc_events_sse.responders:stream_events",
)
def stream_events(call: Call, query: EventQuery = EventQuery()) -> bytes:
    """Streams the events that the caller may see, from now on or from behind Last-Event-ID."""


@operation(
    "GET",
    "/events/me",
    requires_identity,
    weight=Weight.STREAMING,
    cache="no-store",
    media_types=_STREAM,
    responder="svc_events_sse.responders:stream_own_events",
)
def stream_own_events(call: Call, query: EventQuery = EventQuery()) -> bytes:
    """Streams the events whose recipient the caller is."""
