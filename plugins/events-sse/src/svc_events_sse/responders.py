"""The responders that stream events."""

from __future__ import annotations

import falcon
from svc_events.api import GAP, EventFilter, Place, feed_of, parse_event_names, parse_place
from svc_events.models import EventQuery

from svc.plugin import (
    SvcRequest,
    accepts_query_token,
    read_parameters,
    send_stream,
    set_fields,
)
from svc_events_sse.configuration import SseConfiguration
from svc_events_sse.frames import SERVER_READY
from svc_events_sse.streams import StreamOrder, event_stream

__all__ = ["stream_events", "stream_own_events"]

_OF_STREAMS = (SERVER_READY, GAP)
_FIELDS = {"cache-control": "no-store", "x-accel-buffering": "no"}


@accepts_query_token
def stream_events(req: SvcRequest, resp: falcon.Response) -> None:
    """Streams the events that the caller may see, from now on or from behind ``Last-Event-ID``."""
    _stream(req, resp, own=False)


@accepts_query_token
def stream_own_events(req: SvcRequest, resp: falcon.Response) -> None:
    """Streams the events whose recipient the caller is."""
    _stream(req, resp, own=True)


def _stream(req: SvcRequest, resp: falcon.Response, *, own: bool) -> None:
    context, query = req.context, read_parameters(req, EventQuery)
    feed = feed_of(context.database)
    settings = context.configuration or SseConfiguration()
    order = StreamOrder(
        wanted=EventFilter(
            names=parse_event_names(query.events, feed.names().union(_OF_STREAMS)),
            path_prefix=query.path_prefix or None,
            own=own,
        ),
        place=_place(req, query),
        follow=query.follow,
        maximum_streams=settings.maximum_streams,
        replay_commits=settings.replay_commits,
    )
    set_fields(resp, _FIELDS)
    send_stream(resp, event_stream(req, feed, order), None, content_type="text/event-stream; charset=utf-8")


def _place(req: SvcRequest, query: EventQuery) -> Place | None:
    """Where the client goes on: a browser keeps the address and sends the field when it comes back."""
    given = req.get_header("Last-Event-ID") or query.last_event_id
    return parse_place(given.strip()) if given else None
