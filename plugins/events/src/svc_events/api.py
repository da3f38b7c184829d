"""What an event type is made of, and how other plugins read events: the public module of the driver.

An extension imports this module and nothing else of the plugin. Events are the commits of the log read aloud:
an event type is a function from a commit to what happened in it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import msgspec

from svc.plugin import Family, NamedRegistry, hookspec

if TYPE_CHECKING:
    from svc.plugin import Database
    from svc_events.commits import FeedCommit, RecordGone, SystemChange
    from svc_events.feed import EventBatch, EventFeed, FeedEvent
    from svc_events.places import BEGINNING, Place, parse_place
    from svc_events.selecting import EventFilter, Onlooker, parse_event_names

__all__ = [
    "BEGINNING",
    "EVENT_TYPES",
    "FAMILIES",
    "GAP",
    "Event",
    "EventBatch",
    "EventData",
    "EventFeed",
    "EventFilter",
    "EventType",
    "FeedCommit",
    "FeedEvent",
    "Onlooker",
    "Place",
    "RecordGone",
    "SeenBy",
    "SystemChange",
    "feed_of",
    "parse_event_names",
    "parse_place",
]

SeenBy: TypeAlias = Literal["paths", "root", "everyone", "users", "recipient"]
"""Who may see an event: whoever may read or list its paths, root alone, everybody who is authenticated, all
users (not the holders of share links), or root and the one whom it is for, if they may do anything to its
paths."""

GAP = "gap"
"""Says that events are missing: no type, since nothing has happened."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_TAKEN = frozenset({GAP, "server_ready", "heartbeat"})


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The envelope of an event, as it is delivered.

    Attributes:
        event_id: its place in the log. Ids compare as texts, and those of later events are greater.
        event_type: its name.
        timestamp: when it was committed, Unix milliseconds.
        payload: what happened.
        user_id: of an event that is for one user: who caused it.
        recipient_user_id: of such an event: whom it is for.
    """

    event_id: str
    event_type: str
    timestamp: int
    payload: dict[str, Any]
    user_id: str | None = None
    recipient_user_id: str | None = None


class EventData(msgspec.Struct, frozen=True):
    """What an event type says of one thing that happened.

    Attributes:
        event_type: one of the names of the type.
        payload: JSON; paths stand in ``path``, or in ``entries`` as ``{"path": ...}``.
        user_id: as in ``Event``.
        recipient_user_id: as in ``Event``.
    """

    event_type: str
    payload: dict[str, Any]
    user_id: str | None = None
    recipient_user_id: str | None = None


class EventType(ABC):
    """A kind of events, under one name or several. Stateless: one object serves all databases of a process.

    Attributes:
        names: the names of its events, lower-case words joined by underscores.
        seen_by: who may see them.
    """

    names: ClassVar[tuple[str, ...]]
    seen_by: ClassVar[SeenBy] = "paths"

    @abstractmethod
    def events(self, commit: FeedCommit, configuration: Any) -> Iterable[EventData | None]:
        """Yields what happened in a commit, in order. Called anywhere but in the loop of a server; may read.

        It is a function of the commit: the same in every process, today and in a year, since a client that
        comes back is given what it missed. How many it yields follows from the record of the commit alone,
        which stays readable. What needs a record that a collection has taken since (``RecordGone``) is given
        with what is known, or is None: it keeps its number then, and is left out.

        Args:
            commit: the commit.
            configuration: the settings of the plugin that added the type, in this database.
        """


def check_event_type(thing: object) -> str | None:
    """Returns what is wrong with an event type; None when it is fine."""
    if not isinstance(thing, EventType):
        return "must be an instance of svc_events.api.EventType"
    names = getattr(thing, "names", None)
    if not isinstance(names, tuple) or not names:
        return "must have names"
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return f"the name {name!r} is not lower-case words joined by underscores"
        if name in _TAKEN:
            return f"the name {name!r} is taken"
    if thing.seen_by not in get_args(SeenBy):
        return f"nobody is {thing.seen_by!r}"
    return None


@hookspec
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds event types: ``event_types.add(MyEvents())``.

    Called at boot, in the processes that serve databases.
    """


EVENT_TYPES: Family[EventType] = Family(
    "event_types", "event type", check_event_type, lambda thing: thing.names
)
FAMILIES = (EVENT_TYPES,)


def feed_of(database: Database) -> EventFeed:
    """Returns the events of a database that this process serves.

    Raises:
        ServiceUnavailable: the plugin ``events`` is not in use for it.
    """
    from svc_events.feeds import find_feed

    return find_feed(database)


_HOMES = {
    "BEGINNING": "svc_events.places",
    "EventBatch": "svc_events.feed",
    "EventFeed": "svc_events.feed",
    "EventFilter": "svc_events.selecting",
    "FeedCommit": "svc_events.commits",
    "FeedEvent": "svc_events.feed",
    "Onlooker": "svc_events.selecting",
    "Place": "svc_events.places",
    "RecordGone": "svc_events.commits",
    "SystemChange": "svc_events.commits",
    "parse_event_names": "svc_events.selecting",
    "parse_place": "svc_events.places",
}


def __getattr__(name: str) -> Any:
    # What reads is loaded when it is used: event types need none of it.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value
