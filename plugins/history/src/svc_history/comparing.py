"""What differs between two versions, and what one commit changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from svc.plugin import Change, Entry, Hash, Path, format_path
from svc_history.counting import Counter, own_counts
from svc_history.cursors import decode_cursor, encode_cursor
from svc_history.log import Page
from svc_history.rows import Counts, change_type_of
from svc_history.viewer import Viewer

__all__ = ["Comparison", "changes_page", "side_json"]

_CHANGES = "changes"


class Comparison:
    """The differences of two versions, read once, with totals that grow on the way."""

    def __init__(self, viewer: Viewer, before: Hash, after: Hash, path: Path = ()) -> None:
        self._viewer = viewer
        self._changes = viewer.changes(before, after, path)
        self._before = before
        self._after = after
        self._counts = Counts()

    def items(self) -> Iterator[dict[str, Any]]:
        """Yields the differences in path order, as answers show them."""
        for change in self._changes:
            self._counts = self._counts.plus(own_counts(change.before, change.after))
            yield _change_json(self._viewer, change)

    def summary(self) -> dict[str, Any]:
        """Which versions were compared, and the totals of what ``items`` has yielded."""
        return {
            "from": self._before.hex(),
            "to": self._after.hex(),
            "totals": self._counts._asdict(),
        }


def changes_page(
    viewer: Viewer, before: Hash, after: Hash, *, limit: int, cursor: str | None, path: Path = ()
) -> Page:
    """Returns a page of the differences of two versions at and below a path, in path order.

    A page looks at a bounded number of differences. If the caller may see some of them, the page is short. If
    all are hidden, the list ends there and is marked as truncated: a cursor would name what is hidden.
    """
    place: Path | None = None
    if cursor is not None:
        place = tuple(decode_cursor(cursor, (_CHANGES, 1))[1].split("/"))
    rows: list[dict[str, Any]] = []
    last: Path = ()
    counter = Counter()
    for change in viewer.changes(before, after, path, after_path=place, counter=counter):
        if len(rows) == limit:
            return Page(rows, _cursor_of(last))
        rows.append(_change_json(viewer, change))
        last = change.path
    if counter.is_exhausted:
        return Page(rows, _cursor_of(last)) if rows else Page(rows, None, truncated=True)
    return Page(rows, None)


def _cursor_of(path: Path) -> str:
    return encode_cursor(_CHANGES, "/".join(path))


def _change_json(viewer: Viewer, change: Change) -> dict[str, Any]:
    entry = change.after or change.before
    assert entry is not None, "a difference has a side"
    return {
        "path": format_path(change.path),
        "change_type": change_type_of(change).label,
        "entry_type": int(entry.kind),
        "before": side_json(viewer, change.path, change.before),
        "after": side_json(viewer, change.path, change.after),
    }


def side_json(viewer: Viewer, path: Path, entry: Entry | None) -> dict[str, Any] | None:
    """Returns what stands at a path on one side, as answers show it."""
    if entry is None:
        return None
    complete = viewer.sums_up(path, entry)
    side: dict[str, Any] = {
        "hash": entry.hash.hex() if complete else None,
        "size": entry.size if complete else None,
        "updated_at": entry.updated_ms if complete else None,
        "entry_type": int(entry.kind),
        "content_type": entry.content_type,
    }
    if entry.target is not None:
        side["target"] = entry.target
    return side
