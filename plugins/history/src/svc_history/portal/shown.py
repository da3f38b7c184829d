"""What the pages of the history share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from svc.errors import Forbidden, NotFound
from svc.plugin import Path
from svc_history.models import Origin

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["ROWS", "hidden_as_missing", "past_url", "short", "what_changed", "who"]

ROWS = 50
_SHORT = 10


@contextmanager
def hidden_as_missing() -> Iterator[None]:
    """A path that may not be seen looks like one with nothing at it."""
    try:
        yield
    except Forbidden:
        raise NotFound("There is nothing at this path.") from None


def past_url(request: PortalRequest, path: Path, version: str | None, **query: Any) -> str | None:
    """Returns where a path is shown as a version has it; None where no plugin in use shows that."""
    return None if version is None else request.url_if("past", {"version": version, **query}, path=path)


def short(version: str | None) -> str:
    """Returns the beginning of a root hash: enough for people."""
    return (version or "")[:_SHORT]


def who(request: PortalRequest, row: Any) -> str:
    """Returns who made a commit, or several; the reader by name."""
    users = getattr(row, "users", UNSET)
    ids = users if isinstance(users, list) else [] if row.user in (None, UNSET) else [row.user]
    origin = getattr(row, "origin", UNSET)
    nodes = [origin.node_id] if isinstance(origin, Origin) else getattr(row, "nodes", UNSET) or []
    where = f"on node {', '.join(map(str, nodes))}" if nodes else ""
    return " ".join(filter(None, (", ".join(map(request.user_name, ids)), where)))


def what_changed(row: Any) -> str:
    """Returns what a commit did, in a few words."""
    counts = row.changes
    if counts not in (None, UNSET):
        parts = [
            f"{count:,} {label}"
            for count, label in (
                *((counts.added, "added"), (counts.modified, "modified"), (counts.deleted, "deleted")),
            )
            if count
        ]
        return ", ".join(parts) or "nothing"
    if row.collected is True:
        return "no longer known"
    return str(getattr(row, "change_type", None) or "too much to count")
