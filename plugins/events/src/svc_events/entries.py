"""``entries_created`` and ``entries_deleted``: what became of the files of HEAD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from svc.errors import SvcError
from svc.plugin import Path, format_path
from svc_events.api import EventData, EventType

if TYPE_CHECKING:
    from svc.plugin import PathChange
    from svc_events.api import FeedCommit

__all__ = ["MOST_ENTRIES", "EntryEvents"]

MOST_ENTRIES = 500
"""Entries of one event; a commit with more gives several."""

CREATED = "entries_created"
DELETED = "entries_deleted"


class EntryEvents(EventType):
    """Files, links and directories that were stored, copied, moved or deleted.

    Derived from the commit record alone, so a directory that was copied, moved or deleted is one entry.
    """

    names = (CREATED, DELETED)

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData | None]:
        """See ``EventType``. Where the order of two changes matters, they are in two events."""
        del configuration
        open_batches = _Batches()
        for change in commit.file_changes():
            if change.kind == "ref":
                yield from open_batches.flush()
                yield from _move_of_head(commit)
                continue
            for name, path in _parts(change):
                if open_batches.contradicts(name, path):
                    yield from open_batches.flush()
                yield from open_batches.add(name, path)
        yield from open_batches.flush()


def _parts(change: PathChange) -> Iterator[tuple[str, Path]]:
    if change.kind == "delete":
        yield DELETED, change.path
        return
    if change.kind == "move" and change.source is not None:
        yield DELETED, change.source
    yield CREATED, change.path


class _Batch:
    """Paths of one event that is being made, and all that lies above them."""

    def __init__(self) -> None:
        self.paths: dict[Path, None] = {}
        self.above: set[Path] = set()

    def add(self, path: Path) -> None:
        self.paths[path] = None
        self.above.update(path[:depth] for depth in range(len(path)))

    def touches(self, path: Path) -> bool:
        if path in self.paths or path in self.above:
            return True
        return any(path[:depth] in self.paths for depth in range(len(path)))


class _Batches:
    def __init__(self) -> None:
        self._open = {DELETED: _Batch(), CREATED: _Batch()}

    def contradicts(self, name: str, path: Path) -> bool:
        """Whether the order of this change and of one of the other kind matters."""
        return self._open[CREATED if name == DELETED else DELETED].touches(path)

    def add(self, name: str, path: Path) -> Iterator[EventData]:
        batch = self._open[name]
        batch.add(path)
        if len(batch.paths) >= MOST_ENTRIES:
            yield self._take(name)

    def flush(self) -> Iterator[EventData]:
        for name, batch in self._open.items():
            if batch.paths:
                yield self._take(name)

    def _take(self, name: str) -> EventData:
        batch, self._open[name] = self._open[name], _Batch()
        return _event(name, batch.paths)


def _event(name: str, paths: dict[Path, None]) -> EventData:
    return EventData(name, {"entries": [{"path": format_path(path)} for path in paths]})


def _move_of_head(commit: FeedCommit) -> Iterator[EventData | None]:
    """What a restore or a promotion did: one event of each kind, or None.

    Taken from the two trees where they are there and differ little; else it is the root directory.
    """
    found: dict[str, dict[Path, None]] = {DELETED: {}, CREATED: {}}
    database, record = commit.database, commit.commit
    try:
        before, after = database.version_of(record.parent_root), database.version_of(record.root)
        for change in before.diff(after):
            paths = found[DELETED if change.after is None else CREATED]
            paths[change.path] = None
            if len(paths) > MOST_ENTRIES:
                raise _TooMany
    except (SvcError, _TooMany):
        found = {DELETED: {}, CREATED: {(): None}}
    for name, paths in found.items():
        yield _event(name, paths) if paths else None


class _TooMany(Exception):
    """More differs than one event holds."""
