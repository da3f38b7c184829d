"""``permissions_changed``: what was granted on a path, or taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from svc_events.api import EventData, EventType

from svc_users.records import GRANTS, Grant

if TYPE_CHECKING:
    from svc_events.api import FeedCommit, SystemChange

__all__ = ["PermissionEvents"]


class PermissionEvents(EventType):
    """Grants on a path came, changed or went; one event for a path and a commit."""

    names = ("permissions_changed",)

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData | None]:
        """See ``EventType``. After a collection the paths are not known any more: a gap says it."""
        del configuration
        told: set[str] = set()
        for found in commit.system_changes:
            change = found.change
            if not change.system or change.path[:1] != GRANTS or len(change.path) != 3:
                continue
            path = _path(commit, found)
            if path is None or path in told:
                yield None
                continue
            told.add(path)
            yield EventData("permissions_changed", {"path": path})


def _path(commit: FeedCommit, found: SystemChange) -> str | None:
    from svc_events.api import RecordGone

    try:
        grant = commit.record(found.change.path, Grant, before=found.change.kind == "delete")
    except RecordGone:
        return None
    return None if grant is None else grant.path
