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

    A snapshot in which it was not, and had not been in the one before either, says nothing of it. Of a
    directory that the viewer sees in part, the hidden part counts for nothing. Where the viewer may
    not know which snapshots there are, the page is empty.
    """
    snapshots = list_snapshots(viewer.database) if viewer.knows_snapshots else []
    start = 0
    if after is not None:
        _, created, sequence, name = decode_cursor(after, (_SNAPSHOTS, 3))
        place = (-number_of(created), -number_of(sequence), name)
        start = next((at for at, one in enumerate(snapshots) if _order(one) > place), len(snapshots))
    entries = _Entries(viewer, path)
    rows: list[dict[str, Any]] = []
    last: Snapshot | None = None
    for count, snapshot in enumerate(snapshots[start:], start=start):
        before = snapshots[count + 1].root if count + 1 < len(snapshots) else None
        shown = entries.at(snapshot.root) or (None if before is None else entries.at(before))
        if shown is None:
            continue
        if last is not None and len(rows) == limit:
            return Page(rows, _cursor_of(last))
        is_first = entries.counter.looked_at == 0
        change = entries.change(before, snapshot.root)
        if last is not None and entries.counter.is_exhausted and not is_first:
            return Page(rows, _cursor_of(last))  # The next page can look at more for it.
        rows.append(_snapshot_row(viewer, path, snapshot, shown, change))
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
    """What versions have at a path, as far as the viewer may see it, and how they differ there."""

    def __init__(self, viewer: Viewer, path: Path) -> None:
        self.counter = Counter()
        self._viewer = viewer
        self._path = path
        self._known: dict[Hash, Entry | None] = {}

    def at(self, root: Hash) -> Entry | None:
        if root not in self._known:
            self._known[root] = self._find(root)
            if len(self._known) % _PAUSE_EVERY == 0:
                pause()
        return self._known[root]

    def change(self, before: Hash | None, after: Hash) -> ChangeType | None:
        """What became of the path, which one of the versions has; None: too much differs to find out."""
        old, new = None if before is None else self.at(before), self.at(after)
        if new is None:
            return ChangeType.DELETED
        if before is None or old is None:
            return ChangeType.ADDED
        if is_same_content(old, new):
            return ChangeType.UNCHANGED
        viewer, path, counter = self._viewer, self._path, self.counter
        if old.kind is not new.kind or viewer.sums_up(path, new):
            return ChangeType.MODIFIED
        if viewer.sees_difference(before, after, path, counter):
            return ChangeType.MODIFIED
        return None if counter.is_exhausted else ChangeType.UNCHANGED

    def _find(self, root: Hash) -> Entry | None:
        version = self._viewer.database.version_of(root)
        if self._path:
            entry = version.get(self._path)
        else:
            totals = version.totals()
            entry = Entry(
                EntryKind.DIRECTORY, root, totals.size, totals.created_ms, totals.updated_ms, totals=totals
            )
        is_directory = entry is not None and entry.kind is EntryKind.DIRECTORY
        return entry if self._viewer.shows(self._path, directory=is_directory) else None


def _order(snapshot: Snapshot) -> tuple[int, int, str]:
    return (-snapshot.created_ms, -snapshot.sequence, snapshot.name)


def _cursor_of(snapshot: Snapshot) -> str:
    return encode_cursor(_SNAPSHOTS, str(snapshot.created_ms), str(snapshot.sequence), snapshot.name)


def _snapshot_row(
    viewer: Viewer,
    path: Path,
    snapshot: Snapshot,
    entry: Entry,
    change: ChangeType | None,
) -> dict[str, Any]:
    """What a snapshot has of a path, or what stood there before."""
    size = entry.size if viewer.sums_up(path, entry) else None
    content_hash = None if size is None else entry.hash.hex()
    return {
        "snapshot": snapshot.name,
        "timestamp": snapshot.created_ms,
        "change_type": None if change is None else change.label,
        "size": 0 if change is ChangeType.DELETED else size,
        "content_type": entry.content_type,
        "content_hash": content_hash,
        "entry_type": int(entry.kind),
        "version": snapshot.root.hex(),
    }


def _commit_row(
    viewer: Viewer, path: Path, one: LookedAt, row: PathRow, counter: Counter
) -> dict[str, Any] | None:
    if not viewer.shows(path, directory=isinstance(row, DirectoryRow)):
        return None
    commit = one.commit
    if isinstance(row, CollectedRow):
        return _collected_row(viewer, path, one, row)
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


def _collected_row(viewer: Viewer, path: Path, one: LookedAt, row: CollectedRow) -> dict[str, Any] | None:
    if not viewer.sees_all:
        # Where its record is damaged, nobody knows what it did.
        sees = not one.is_damaged and viewer.sees_commit(one.sequence, path, is_certain=one.is_certain)[0]
        if not sees:
            return None
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
    """What a commit left of a file; of one that it deleted, what stood there, in no bytes."""
    if not isinstance(row, FileRow):
        return {"size": None, "content_type": None, "content_hash": None}
    size = 0 if row.change is ChangeType.DELETED else row.size
    return {"size": size, "content_type": row.content_type, "content_hash": row.hash.hex()}
