"""Events: what can happen, and where it is told.

An event type turns commits into events and says which paths an event speaks of, so that one permission
function can filter it for every reader. A sink carries events out of the server, at least once, in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from svc.paths import Path

if TYPE_CHECKING:
    from svc.database import Commit, Version
    from svc.plugins.lifecycle import PluginContext

__all__ = ["Event", "EventSink", "EventTarget", "EventType"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event, the same for every reader.

    Attributes:
        event_id: increasing; of a durable event, its place in the log.
        event_type: name of the type.
        timestamp_ms: when it happened, in Unix milliseconds.
        payload: members that JSON can carry.
        user_id: who caused it, if known.
        recipient_user_id: the one user it is for; None for an event of the general stream.
    """

    event_id: str
    event_type: str
    timestamp_ms: int
    payload: Mapping[str, Any]
    user_id: str | None = None
    recipient_user_id: str | None = None


class EventType(ABC):
    """A kind of event.

    Attributes:
        name: what the ``event`` field of a stream says.
        summary: one line for the documentation.
        payload: struct of its payload; the documentation's table is made from it.
        durable: whether it follows from a commit, so that it can be read again from the log.
        root_only: whether only root may see it.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    payload: ClassVar[type[msgspec.Struct]]
    durable: ClassVar[bool] = True
    root_only: ClassVar[bool] = False

    def derive(self, commit: Commit, before: Version, after: Version) -> Iterable[Event]:
        """The events of this type that a commit means, always the same ones in the same order.

        Called wherever the feed is read, also long afterwards. Types that are not durable give none.
        """
        return ()

    def paths(self, event: Event) -> Sequence[Path] | None:
        """The paths that an event speaks of; a reader sees it when one of them may be read.

        None says that the event is about no path, and everyone who is authenticated may see it.
        """
        return None

    def narrowed(self, event: Event, visible: Sequence[Path]) -> Event:
        """The event as a reader may see it who may read only ``visible`` of its paths."""
        return event


@dataclass(frozen=True, slots=True)
class EventTarget:
    """One place that a sink delivers to; the dispatcher keeps a position in the feed for each.

    Attributes:
        id: unique within the sink; the position is kept under it.
        event_types: names of the types that it wants; empty for all.
        path_prefix: events are delivered when one of their paths begins with it; empty for all.
        settings: what the sink needs to deliver.
    """

    id: str
    event_types: frozenset[str] = frozenset()
    path_prefix: Path = ()
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)


class EventSink(ABC):
    """Somewhere that events go, such as webhooks. Runs in the background process.

    Attributes:
        name: what positions and logs call it.
        batch: the most events of one delivery.
    """

    name: ClassVar[str]
    batch: ClassVar[int] = 100

    @abstractmethod
    def targets(self, context: PluginContext) -> Sequence[EventTarget]:
        """Where to deliver, as the database is configured now. May block.

        Asked again after every commit that touches the configuration; a new target starts with the events
        that come after it.
        """

    @abstractmethod
    def deliver(self, context: PluginContext, target: EventTarget, events: Sequence[Event]) -> None:
        """Delivers a batch to one target, in order. Blocks; targets are served independently.

        A batch that was delivered may come again after a crash. Returning means delivered; an exception
        means that the dispatcher tries the same batch again later, with growing pauses.
        """
