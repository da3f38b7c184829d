"""What the command asks of a database, in a file or a server; events are the envelopes of the streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from svc.plugin import Source

__all__ = ["PLUGIN_ID", "Document", "EventStore", "open_events"]

PLUGIN_ID = "events"

Document = dict[str, Any]


class EventStore(Protocol):
    """The events of one database. Methods block and raise the errors of ``svc.errors``."""

    def events(
        self, types: Sequence[str], *, path_prefix: str | None, since: str | None, follow: bool
    ) -> Iterator[Document]:
        """Yields events behind an id, or from now on; with ``follow`` without end."""


def open_events(source: Source) -> AbstractContextManager[EventStore]:
    """Opens what a command works on, for as long as the context lasts; see ``Source.open_store``."""
    return source.open_store(
        PLUGIN_ID,
        local="svc_events.commands.local:LocalEvents",
        remote="svc_events.commands.remote:RemoteEvents",
        read_only=True,
    )
