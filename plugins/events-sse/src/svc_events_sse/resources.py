"""``/system/events``, ``/events/stream`` and ``/events/me``: streams of events."""

from __future__ import annotations

import falcon
from svc_events.api import GAP, EventFilter, Place, feed_of, parse_event_names, parse_place

from svc.plugin import (
    SvcRequest,
    accepts_query_token,
    query_flag,
    query_text,
    requires_identity,
    send_stream,
    set_fields,
)
from svc_events_sse.configuration import SseConfiguration
from svc_events_sse.frames import HEARTBEAT, SERVER_READY
from svc_events_sse.streams import StreamOrder, event_stream

__all__ = ["EventsResource", "OwnEventsResource"]

_OF_STREAMS = (SERVER_READY, HEARTBEAT, GAP)
_FIELDS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventsResource:
    """Everything that the caller may see."""

    @accepts_query_token
    @requires_identity
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Streams the events, from now on or from behind ``Last-Event-ID``."""
        _stream(req, resp, own=False)


class OwnEventsResource:
    """What is addressed to the caller."""

    @accepts_query_token
    @requires_identity
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Streams the events whose recipient the caller is."""
        _stream(req, resp, own=True)


def _stream(req: SvcRequest, resp: falcon.Response, *, own: bool) -> None:
    context = req.context
    feed = feed_of(context.database)
    settings = context.configuration or SseConfiguration()
    order = StreamOrder(
        wanted=EventFilter(
            names=parse_event_names(query_text(req, "events"), feed.names().union(_OF_STREAMS)),
            path_prefix=query_text(req, "path_prefix") or None,
            own=own,
        ),
        place=_place(req),
        follow=query_text(req, "follow") is None or query_flag(req, "follow"),
        maximum_streams=settings.maximum_streams,
        replay_commits=settings.replay_commits,
    )
    set_fields(resp, _FIELDS)
    send_stream(resp, event_stream(req, feed, order), None, content_type="text/event-stream; charset=utf-8")


def _place(req: SvcRequest) -> Place | None:
    """Where the client goes on: a browser keeps the address and sends the field when it comes back."""
    given = req.get_header("Last-Event-ID") or query_text(req, "last_event_id")
    return parse_place(given.strip()) if given else None
