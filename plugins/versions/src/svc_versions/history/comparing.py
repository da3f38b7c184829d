"""What differs between two versions, and what one commit changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc.hashing import Hash
from svc.paths import Path, format_path
from svc.tree import Change, Entry
from svc_versions.history.cursors import decode_cursor, encode_cursor
from svc_versions.history.log import Page
from svc_versions.history.rows import Counts, change_type_of
from svc_versions.history.view import counts_of
from svc_versions.history.viewer import Viewer

__all__ = ["Comparison", "change_json", "changes_page"]

_CHANGES = "changes"


class Comparison:
    """The differences of two versions, read once, with totals that grow on the way.

    Args:
        viewer: who asks.
        before: root hash of the one version.
        after: root hash of the other.
        path: only what lies at and below it.
    """

    def __init__(self, viewer: Viewer, before: Hash, after: Hash, path: Path = ()) -> None:
        self._changes = viewer.changes(before, after, path)
        self._before = before
        self._after = after
        self._counts = Counts()

    def items(self) -> Iterator[dict[str, Any]]:
        """Yields the differences in path order, as answers show them."""
        for change in self._changes:
            self._counts = self._counts.plus(counts_of(change))
            yield change_json(change)

    def summary(self) -> dict[str, Any]:
        """Which versions were compared, and the totals of what ``items`` has yielded."""
        return {
            "from": self._before.hex(),
            "to": self._after.hex(),
            "totals": self._counts._asdict(),
        }


def changes_page(viewer: Viewer, before: Hash, after: Hash, *, limit: int, cursor: str | None) -> Page:
    """Returns a page of the differences of two versions, in path order.

    Raises:
        InvalidInput: no list of changes gave this cursor.
    """
    place: Path | None = None
    if cursor is not None:
        place = tuple(decode_cursor(cursor, (_CHANGES, 1))[1].split("/"))
    rows: list[dict[str, Any]] = []
    last: Path = ()
    for change in viewer.changes(before, after):
        if place is not None and change.path <= place:
            continue
        if len(rows) == limit:
            return Page(rows, encode_cursor(_CHANGES, "/".join(last)))
        rows.append(change_json(change))
        last = change.path
    return Page(rows, None)


def change_json(change: Change) -> dict[str, Any]:
    """Returns a difference as answers show it."""
    entry = change.after or change.before
    assert entry is not None, "a difference has a side"
    return {
        "path": format_path(change.path),
        "change_type": change_type_of(change).label,
        "entry_type": int(entry.kind),
        "before": _side(change.before),
        "after": _side(change.after),
    }


def _side(entry: Entry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    side: dict[str, Any] = {
        "hash": entry.hash.hex(),
        "size": entry.size,
        "updated_at": entry.updated_ms,
        "entry_type": int(entry.kind),
        "content_type": entry.content_type,
    }
    if entry.target is not None:
        side["target"] = entry.target
    return side
