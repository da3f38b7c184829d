"""What event types and event sinks are made of, and how others read events: the public module of the driver.

An extension imports this module and nothing else of the plugin. Events are the commits of the log read aloud:
an event type is a function from a commit to what happened in it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import msgspec

from svc.plugin import Family, NamedRegistry, hookspec

if TYPE_CHECKING:
    from svc.plugin import Database, Origin, PluginContext, Transaction
    from svc_events.commits import FeedCommit, RecordGone, SystemChange
    from svc_events.feed import EventBatch, EventFeed, FeedEvent
    from svc_events.nodes import name_node, node_id_of
    from svc_events.places import BEGINNING, Place, parse_place
    from svc_events.pulses import DuePulses
    from svc_events.selecting import EventFilter, Onlooker, parse_event_names

__all__ = [
    "BEGINNING",
    "EVENT_SINKS",
    "EVENT_TYPES",
    "FAMILIES",
    "GAP",
    "PULSES",
    "DeliveryFailed",
    "Destination",
    "DestinationState",
    "DuePulses",
    "Event",
    "EventBatch",
    "EventData",
    "EventFeed",
    "EventFilter",
    "EventSink",
    "EventType",
    "FeedCommit",
    "FeedEvent",
    "Onlooker",
    "Place",
    "Pulse",
    "RecordGone",
    "SeenBy",
    "SystemChange",
    "begin_destination",
    "deliver_again",
    "destination_states",
    "end_destination",
    "feed_of",
    "name_node",
    "node_id_of",
    "origin_member",
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
_TAKEN = frozenset({GAP, "server_ready"})


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


def origin_member(origin: Origin | None) -> dict[str, Any]:
    """Returns the member ``origin`` of a path in a payload: where the change was made; nothing where here.

    Args:
        origin: as ``FeedCommit.changes_and_origins`` gives it.
    """
    if origin is None:
        return {}
    said = {"node_id": origin.node_id, "user_id": origin.user, "timestamp": origin.time_ms}
    return {"origin": said}


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


class Pulse(ABC):
    """An event that comes again and again while somebody listens, and is in no log: how things are now.

    Attributes:
        name: lower-case words joined by underscores; no event type has it.
        seen_by: ``root``, ``users`` or ``everyone``, as of an event type.
    """

    name: ClassVar[str]
    seen_by: ClassVar[SeenBy] = "root"

    def interval_ms(self, configuration: Any) -> int:
        """Returns the time from one to the next; each is due at a multiple of it. 15 s, unless overridden."""
        return 15_000

    @abstractmethod
    def payload(self, context: PluginContext, due_ms: int) -> dict[str, Any]:
        """Returns what it says: JSON. Called in a thread of a worker, once for all its streams; may read.

        Args:
            context: of the plugin that added it.
            due_ms: when it was due, Unix milliseconds.
        """


def check_pulse(thing: object) -> str | None:
    """Returns what is wrong with a pulse; None when it is fine."""
    if not isinstance(thing, Pulse):
        return "must be an instance of svc_events.api.Pulse"
    name = getattr(thing, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"the name {name!r} is not lower-case words joined by underscores"
    if name in _TAKEN:
        return f"the name {name!r} is taken"
    if thing.seen_by not in ("root", "users", "everyone"):
        return f"nobody is {thing.seen_by!r}"
    return None


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where a sink delivers events to. Each has a place of its own in the log, and its own order.

    A sink adds members by a subclass; what differs from before counts at once.

    Attributes:
        id: 1 to 100 letters, digits, dots, hyphens and underscores, unique in its sink.
        names: only events of these types; None: of all.
        path_prefix: only events with a path that begins so.
    """

    id: str
    names: frozenset[str] | None = None
    path_prefix: str | None = None


class DeliveryFailed(Exception):
    """The receiver did not take events; they are delivered again, later and later.

    Args:
        message: why, for operators; without secrets.
        delivered: how many of the events it has taken nevertheless, from the first on.
        retry_after: seconds that the receiver asks to be left alone; None: it does not say.
    """

    def __init__(self, message: str, *, delivered: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.delivered = delivered
        self.retry_after = retry_after


class EventSink(ABC):
    """Takes events, in order, to somewhere else. Its methods are called in the background process alone.

    The driver keeps in the database how far each destination is. What was delivered less than a second or so
    before a kill is delivered again: at least once, in order, whatever happens. Each destination has a thread
    of its own, so that one that hangs or fails holds up no other; a sink has at most 256.

    Attributes:
        name: lower-case words joined by underscores; the places of its destinations are kept by it.
        maximum_batch: most events in one call of ``deliver``.
    """

    name: ClassVar[str]
    maximum_batch: ClassVar[int] = 100

    @abstractmethod
    def destinations(self, context: PluginContext) -> Iterable[Destination]:
        """Returns where to deliver to. Called twice a second, so it looks before it reads; may block.

        A new destination gets what happens from then on. What is no longer returned is forgotten, and its
        place with it. An exception leaves everything as it was.
        """

    @abstractmethod
    def deliver(self, destination: Destination, events: Sequence[FeedEvent], context: PluginContext) -> None:
        """Delivers events, and returns when the receiver has all of them. Blocks, in a thread of its own.

        A ``gap`` comes to every destination, whatever it asks for.

        Raises:
            DeliveryFailed: not all were taken. Any other exception counts as that, and is logged.
        """

    def onlooker(self, destination: Destination, context: PluginContext) -> Onlooker | None:
        """Returns through whose eyes a destination sees events: root's, unless overridden.

        Called for each batch. None holds its events back for now, as where its user is deactivated.
        """
        from svc_events.selecting import Onlooker

        return Onlooker(None)


def check_event_sink(thing: object) -> str | None:
    """Returns what is wrong with an event sink; None when it is fine."""
    if not isinstance(thing, EventSink):
        return "must be an instance of svc_events.api.EventSink"
    name = getattr(thing, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"the name {name!r} is not lower-case words joined by underscores"
    if type(thing.maximum_batch) is not int or thing.maximum_batch < 1:
        return "its maximum_batch must be an integer above 0"
    return None


class DestinationState(msgspec.Struct, frozen=True, kw_only=True):
    """How a destination is, as the background process said last. Times are Unix milliseconds.

    Attributes:
        sink: the sink.
        id: the destination.
        place: the id of the event behind which it stands.
        commits_behind: how many commits it has not looked at yet.
        delivered: events delivered since the background process began.
        failures: tries that failed since the last that did not.
        failing_since: the first of them.
        error: why the last one failed.
        retry_at: when it is tried again.
        busy_since: when the call that goes on began.
    """

    sink: str
    id: str
    place: str
    commits_behind: int
    delivered: int
    failures: int = 0
    failing_since: int | None = None
    error: str | None = None
    retry_at: int | None = None
    busy_since: int | None = None


@hookspec
def svc_register_event_sinks(event_sinks: NamedRegistry[EventSink]) -> None:
    """Adds event sinks: ``event_sinks.add(MySink())``.

    Called at boot, in the background process.
    """


@hookspec
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds event types: ``event_types.add(MyEvents())``.

    Called at boot, in the processes that serve databases.
    """


@hookspec
def svc_register_pulses(pulses: NamedRegistry[Pulse]) -> None:
    """Adds pulses: ``pulses.add(MyPulse())``.

    Called at boot, in the processes that serve databases.
    """


EVENT_TYPES: Family[EventType] = Family(
    "event_types", "event type", check_event_type, lambda thing: thing.names
)
EVENT_SINKS: Family[EventSink] = Family("event_sinks", "event sink", check_event_sink)
PULSES: Family[Pulse] = Family("pulses", "pulse", check_pulse)
FAMILIES = (EVENT_TYPES, EVENT_SINKS, PULSES)


def destination_states(database: Database, sink: str) -> dict[str, DestinationState]:
    """Returns how the destinations of a sink are, by id; any process of the machine may ask. Reads one file.

    Those that the background process has not taken up yet are missing; all are while there is none.
    """
    from svc_events.sinks.states import live_states

    return {one.id: one for one in live_states(database.state_directory) if one.sink == sink}


def begin_destination(changes: Transaction, sink: str, destination_id: str, place: Place) -> None:
    """Says, in the transaction that makes a new destination, from where on it gets events."""
    from svc_events.sinks.records import begin

    begin(changes, sink, destination_id, place)


def end_destination(changes: Transaction, database: Database, sink: str, destination_id: str) -> None:
    """Forgets, in the transaction that ends a destination, how far it was."""
    from svc_events.sinks.records import sink_file

    if database.system().get(sink_file(sink, destination_id)) is not None:
        changes.delete_system(sink_file(sink, destination_id))


def deliver_again(
    database: Database, sink: str, destination_id: str, since: Place | None = None, *, actor: str | None
) -> None:
    """Ends the pause of a destination that fails, by a commit; the background process heeds it in a second.

    Args:
        database: the open database.
        sink: the sink.
        destination_id: the destination.
        since: the place behind which it goes on, back or ahead; None: where it stands.
        actor: who asks.
    """
    from svc_events.sinks.records import ask_again

    ask_again(database, sink, destination_id, since, actor)


def feed_of(database: Database) -> EventFeed:
    """Returns the events of a database that this process serves.

    Raises:
        ServiceUnavailable: the plugin ``events`` is not in use for it.
    """
    from svc_events.feeds import find_feed

    return find_feed(database)


_HOMES = {
    "BEGINNING": "svc_events.places",
    "DuePulses": "svc_events.pulses",
    "EventBatch": "svc_events.feed",
    "EventFeed": "svc_events.feed",
    "EventFilter": "svc_events.selecting",
    "FeedCommit": "svc_events.commits",
    "FeedEvent": "svc_events.feed",
    "Onlooker": "svc_events.selecting",
    "Place": "svc_events.places",
    "RecordGone": "svc_events.commits",
    "SystemChange": "svc_events.commits",
    "name_node": "svc_events.nodes",
    "node_id_of": "svc_events.nodes",
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
