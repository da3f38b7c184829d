"""``files_shared``: a path was shared with a user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from svc_events.api import EventData, EventType

from svc_sharing.grants import SHARE_MESSAGE
from svc_users.api import Grant, user_of_own_group

if TYPE_CHECKING:
    from svc_events.api import FeedCommit, SystemChange

__all__ = ["ShareEvents"]

_GRANTS = "grants"


class ShareEvents(EventType):
    """One event for each path and each user that it was shared with by name; it is for that user."""

    names = ("files_shared",)
    seen_by = "recipient"

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData | None]:
        """See ``EventType``. After a collection what was shared is not known any more: a gap says it."""
        del configuration
        for found in commit.system_changes:
            change = found.change
            if found.transaction.message != SHARE_MESSAGE or change.kind != "put" or not change.system:
                continue
            if change.path[0] == _GRANTS and len(change.path) == 3:
                yield _event(commit, found)


def _event(commit: FeedCommit, found: SystemChange) -> EventData | None:
    from svc_events.api import RecordGone

    try:
        grant = commit.record(found.change.path, Grant)
    except RecordGone:
        return None
    recipient = None if grant is None else user_of_own_group(grant.group)
    if grant is None or recipient is None:
        return None
    actor = found.transaction.actor
    payload = {"path": grant.path, "permissions": grant.allow, "from": actor}
    return EventData("files_shared", payload, actor, recipient)
