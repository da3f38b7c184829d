"""The events of a database file. Whoever holds the file sees all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from svc.plugin import Database, extensions_of
from svc_events.api import EVENT_TYPES, GAP
from svc_events.commands.store import PLUGIN_ID, Document
from svc_events.feed import EventFeed
from svc_events.places import parse_place
from svc_events.selecting import EventFilter, Onlooker, parse_event_names

__all__ = ["LocalEvents"]


class LocalEvents:
    """See ``EventStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        types = extensions_of(database, PLUGIN_ID, EVENT_TYPES)
        self._feed = EventFeed(database, lambda: types)

    def events(
        self, types: Sequence[str], *, path_prefix: str | None, since: str | None, follow: bool
    ) -> Iterator[Document]:
        """Yields events."""
        feed = self._feed
        wanted = EventFilter(
            names=parse_event_names(",".join(types) or None, feed.names()), path_prefix=path_prefix
        )
        place = feed.end() if since is None else parse_place(since)
        everything = Onlooker(None)
        while True:
            batch = feed.after(place)
            if batch is None:
                if not follow:
                    return
                self._database.wait_for_commit(place.sequence)
                continue
            for found in batch.events:
                if found.event.event_type == GAP or wanted.select(found, everything) is not None:
                    yield msgspec.to_builtins(found.event)
            place = batch.place
