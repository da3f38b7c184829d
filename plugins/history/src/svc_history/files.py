"""The history of one path: over the snapshots, or over every commit that touched it."""

from __future__ import annotations

from typing import Any

from svc.plugin import Entry, EntryKind, Hash, Path, pause
from svc_history.counting import Counter
from svc_history.cursors import decode_cursor, encode_cursor, number_of
from svc_history.log import MOST_EXAMINED, Page, author_json, counts_json
from svc_history.reading import History, LookedAt
from svc_history.rows import ChangeType, CollectedRow, DirectoryRow, FileRow, PathRow, is_same_content
from svc_history.viewer import Viewer
from svc_versions.api import Snapshot, list_snapshots

__all__ = ["commit_history", "snapshot_history"]

_SNAPSHOTS, _COMMITS = "snapshots", "commits"
_PAUSE_EVERY = 64


def snapshot_history(viewer: Viewer, path: Path, *, limit: int, after: str | None) -> Page:
    """Returns what became of a path, which the viewer may see, from each snapshot to the next, newest first.

    A snapshot in which it was not, and had not been in the one before either, says nothing of it.
    """
    snapshots = list_snapshots(viewer.database)
    start = 0
    if after is not None:
        _, created, sequence, name = decode_cursor(after, (_SNAPSHOTS, 3))
        place = (-number_of(created), -number_of(sequence), name)
        start = next((at for at, one in enumerate(snapshots) if _order(one) > place), len(snapshots))
    entries = _Entries(viewer, path)
    rows: list[dict[str, Any]] = []
    last: Snapshot | None = None
    for count, snapshot in enumerate(snapshots[start:], start=start):
        older = entries.at(snapshots[count + 1].root) if count + 1 < len(snapshots) else None
        row = _snapshot_row(viewer, path, snapshot, older, entries.at(snapshot.root))
        if row is None:
            continue
        if last is not None and len(rows) == limit:
            cursor = encode_cursor(_SNAPSHOTS, str(last.created_ms), str(last.sequence), last.name)
            return Page(rows, cursor)
        rows.append(row)
        last = snapshot
    return Page(rows, None)


def commit_history(history: History, viewer: Viewer, path: Path, *, limit: int, after: str | None) -> Page:
    """Returns what every commit that touched a path did to it, newest first; see ``snapshot_history``."""
    before = None
    if after is not None:
        before = number_of(decode_cursor(after, (_COMMITS, 1))[1])
    rows: list[dict[str, Any]] = []
    place = ""
    counter = Counter()
    for examined, one in enumerate(history.looked_at(path, before)):
        if len(rows) >= limit or examined >= MOST_EXAMINED:
            return Page(rows, place)
        is_first = counter.looked_at == 0
        answer = None if one.row is None else _commit_row(viewer, path, one, one.row, counter)
        if counter.is_exhausted and not is_first:
            return Page(rows, place)  # The next page can count more for it.
        if answer is not None:
            rows.append(answer)
        place = encode_cursor(_COMMITS, str(one.sequence))
        if examined % _PAUSE_EVERY == 0:
            pause()
    return Page(rows, None)


class _Entries:
    def __init__(self, viewer: Viewer, path: Path) -> None:
        self._viewer = viewer
        self._path = path
        self._known: dict[Hash, Entry | None] = {}

    def at(self, root: Hash) -> Entry | None:
        if root not in self._known:
            self._known[root] = self._find(root)
            if len(self._known) % _PAUSE_EVERY == 0:
                pause()
        return self._known[root]

    def _find(self, root: Hash) -> Entry | None:
        version = self._viewer.database.version_of(root)
        if self._path:
            return version.get(self._path)
        totals = version.totals()
        return Entry(
            EntryKind.DIRECTORY, root, totals.size, totals.created_ms, totals.updated_ms, totals=totals
        )


def _order(snapshot: Snapshot) -> tuple[int, int, str]:
    return (-snapshot.created_ms, -snapshot.sequence, snapshot.name)


def _snapshot_row(
    viewer: Viewer, path: Path, snapshot: Snapshot, older: Entry | None, entry: Entry | None
) -> dict[str, Any] | None:
    shown = entry or older
    if shown is None or not viewer.shows(path, directory=shown.kind is EntryKind.DIRECTORY):
        return None
    if entry is None:
        change = ChangeType.DELETED
    elif older is None:
        change = ChangeType.ADDED
    else:
        change = ChangeType.UNCHANGED if is_same_content(older, entry) else ChangeType.MODIFIED
    if entry is None:
        size: int | None = 0
    else:
        size = entry.size if viewer.sums_up(path, entry) else None
    return {
        "snapshot": snapshot.name,
        "timestamp": snapshot.created_ms,
        "change_type": change.label,
        "size": size,
        "content_type": None if entry is None else entry.content_type,
        "content_hash": None if entry is None or size is None else entry.hash.hex(),
        "entry_type": int(shown.kind),
        "version": snapshot.root.hex(),
    }


def _commit_row(
    viewer: Viewer, path: Path, one: LookedAt, row: PathRow, counter: Counter
) -> dict[str, Any] | None:
    if not viewer.shows(path, directory=isinstance(row, DirectoryRow)):
        return None
    commit = one.commit
    if isinstance(row, CollectedRow):
        return _collected_row(viewer, one, row)
    shows_messages = viewer.sees_all_changes(commit.parent_root, commit.root)
    answer: dict[str, Any] = {
        "snapshot": None,
        "timestamp": commit.time_ms,
        "change_type": row.change.label,
        **_content(row),
        "entry_type": row.kind,
        "version": commit.root.hex(),
        "sequence": one.sequence,
        **author_json(commit.authors, row.author, shows_messages=shows_messages),
    }
    if one.is_damaged:
        answer["damaged"] = True
    if isinstance(row, DirectoryRow):
        counts = row.counts
        if counts is None or not viewer.sees_all:
            sees, counts = viewer.visible_counts(commit.parent_root, commit.root, path, counter)
            if not sees:
                return None
        answer["changes"] = counts_json(counts)
    return answer


def _collected_row(viewer: Viewer, one: LookedAt, row: CollectedRow) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "snapshot": None,
        "timestamp": one.commit.time_ms,
        "change_type": ChangeType.DELETED.label if row.is_deletion else None,
        "size": None,
        "content_type": None,
        "content_hash": None,
        "entry_type": None,
        "version": one.commit.root.hex(),
        "sequence": one.sequence,
        **author_json(one.commit.authors, row.author, shows_messages=viewer.sees_below(())),
        "collected": True,
    }
    if not one.is_certain:
        answer["certain"] = False
    return answer


def _content(row: PathRow) -> dict[str, Any]:
    if not isinstance(row, FileRow) or row.change is ChangeType.DELETED:
        size = 0 if isinstance(row, FileRow) else None
        return {"size": size, "content_type": None, "content_hash": None}
    return {"size": row.size, "content_type": row.content_type, "content_hash": row.hash.hex()}
