"""``indexes_changed``: an ``indexes.json`` was stored, moved or deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from svc_events.api import EventData, EventType, origin_member

from svc.plugin import format_path
from svc_query.index_configuration import CONFIGURATION_SUFFIX

if TYPE_CHECKING:
    from svc_events.api import FeedCommit

__all__ = ["IndexEvents"]


class IndexEvents(EventType):
    """The configuration of indexes changed, at the path of its file.

    Derived from the record of the commit: a file that went with its directory is not among them.
    """

    names = ("indexes_changed",)

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData]:
        """See ``EventType``."""
        del configuration
        for change, origin in commit.changes_and_origins():
            for path in (change.source, change.path):
                if path is not None and path[-2:] == CONFIGURATION_SUFFIX:
                    if path is change.source and change.kind != "move":
                        continue
                    yield EventData("indexes_changed", {"path": format_path(path), **origin_member(origin)})
