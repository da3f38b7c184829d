"""What the command asks of a database: one protocol, for a file and for a server.

Events are the envelopes of the streams, so that the command prints the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from svc.plugin import Database, Source

__all__ = ["PLUGIN_ID", "Document", "EventStore", "open_events"]

PLUGIN_ID = "events"

Document = dict[str, Any]


class EventStore(Protocol):
    """The events of one database. Methods block and raise the errors of ``svc.errors``."""

    def events(
        self, types: Sequence[str], *, path_prefix: str | None, since: str | None, follow: bool
    ) -> Iterator[Document]:
        """Yields events behind an id, or from now on; with ``follow`` without end."""


@contextmanager
def open_events(source: Source) -> Iterator[EventStore]:
    """Opens the store that the command reads, for as long as the context lasts.

    Args:
        source: the database file, or the server.

    Raises:
        DatabaseNotFound: there is no such file.
        PluginMissing: the plugin is not enabled in it.
    """
    with source.open(PLUGIN_ID, read_only=True) as opened:
        if isinstance(opened, Database):
            from svc_events.commands.local import LocalEvents

            yield LocalEvents(opened)
            return
        from svc_events.commands.remote import RemoteEvents

        yield RemoteEvents(opened)
