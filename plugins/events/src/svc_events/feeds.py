"""The feeds of the databases that this process serves, from the start of the plugin to its stop."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from svc.errors import ServiceUnavailable
from svc_events.api import EVENT_TYPES, PULSES
from svc_events.feed import EventFeed
from svc_events.pulses import Pulses

if TYPE_CHECKING:
    from svc.plugin import Database, PluginContext

__all__ = ["find_feed", "start_feed", "stop_feed"]

_feeds: WeakKeyDictionary[Database, EventFeed] = WeakKeyDictionary()


def start_feed(context: PluginContext) -> None:
    """Lets the events of a database be read."""
    _feeds[context.database] = EventFeed(
        context.database,
        lambda: context.extensions(EVENT_TYPES),
        Pulses(lambda: context.extensions(PULSES)),
    )


def stop_feed(context: PluginContext) -> None:
    """Ends that, and the streams that read them."""
    feed = _feeds.pop(context.database, None)
    if feed is not None:
        feed.close()


def find_feed(database: Database) -> EventFeed:
    """See ``svc_events.api.feed_of``."""
    feed = _feeds.get(database)
    if feed is None:
        raise ServiceUnavailable("The plugin 'events' is not in use for this database.", retry_after=60)
    return feed
