"""Reads the events of a server or of a database file, one after another.

``for event in events_of_server(client): ...`` goes on for ever, over lost connections and restarts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import ServiceUnavailable, SvcError
from svc_cli import extensions_of
from svc_events.api import EVENT_TYPES, GAP, Event
from svc_events.models import EventQuery
from svc_events.operations import stream_events, stream_own_events

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["OF_STREAMS", "events_of_file", "events_of_server"]

OF_STREAMS = ("server_ready", "heartbeat")
"""Events of a stream itself, asked for whatever else is: their ids say how far it has read."""

_PAUSE_SECONDS = 1.0


def events_of_server(
    client: Any,
    types: Sequence[str] = (),
    *,
    path_prefix: str | None = None,
    since: str | None = None,
    follow: bool = True,
    own: bool = False,
) -> Iterator[Event]:
    """Yields the events of a server as they happen; blocks.

    Args:
        client: the ``svc_client.Client`` of the server.
        types: only events of these types; none: of all, but for pulses that streams have of their own.
        path_prefix: only those with a path that begins so.
        since: the id behind which to begin; None: now.
        follow: whether to go on when all that there was has come. A lost connection is made anew then.
        own: only what is addressed to the caller.
    """
    names = ",".join((*types, *OF_STREAMS)) if types else None
    query = EventQuery(events=names, path_prefix=path_prefix or None, follow=follow)
    last = since
    while True:
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        try:
            with client.stream(
                stream_own_events if own else stream_events, query, headers=headers
            ) as response:
                if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    raise response.foreign()
                for data in response.event_data():
                    event = _decoded(data, response.foreign)
                    # A pulse has the id of what came before it.
                    is_pulse = event.event_id == last and event.event_type not in OF_STREAMS
                    last = event.event_id
                    if event.event_type in (*types, GAP) or not (types or is_pulse):
                        yield event
        except ServiceUnavailable:
            if not follow or last is None:
                raise
        if not follow:
            return
        time.sleep(_PAUSE_SECONDS)


def events_of_file(
    database: Database, types: Sequence[str], *, path_prefix: str | None, since: str | None, follow: bool
) -> Iterator[Event]:
    """Yields the events of an opened database; as ``events_of_server``."""
    from svc_events.feed import EventFeed
    from svc_events.places import parse_place
    from svc_events.selecting import EventFilter, Onlooker, parse_event_names

    known = extensions_of(database, "events", EVENT_TYPES)
    feed = EventFeed(database, lambda: known)
    names = parse_event_names(",".join(types) or None, feed.names())
    wanted = EventFilter(names=names, path_prefix=path_prefix)
    place = feed.end() if since is None else parse_place(since)
    everything = Onlooker(None)
    while True:
        batch = feed.after(place)
        if batch is None:
            if not follow:
                return
            database.wait_for_commit(place.sequence)
            continue
        for found in batch.events:
            if wanted.select(found, everything) is not None:
                yield found.event
        place = batch.place


def _decoded(data: bytes, foreign: Callable[[], SvcError]) -> Event:
    try:
        return msgspec.json.decode(data, type=Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise foreign() from None
