"""The events of a server's database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from svc_client import Client
from svc_events.client import Events
from svc_events.commands.store import Document

__all__ = ["RemoteEvents"]

_OF_STREAMS = frozenset({"server_ready", "heartbeat"})
"""Made for each stream: nothing has happened."""


class RemoteEvents:
    """See ``EventStore``."""

    def __init__(self, client: Client) -> None:
        self._events = Events(client)

    def events(
        self, types: Sequence[str], *, path_prefix: str | None, since: str | None, follow: bool
    ) -> Iterator[Document]:
        """Yields events."""
        for event in self._events.stream(types, path_prefix=path_prefix, since=since, follow=follow):
            if event["event_type"] not in _OF_STREAMS:
                yield event
