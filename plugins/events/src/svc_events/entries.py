"""``entries_created`` and ``entries_deleted``: what became of the files of HEAD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from svc.errors import SvcError
from svc.plugin import EntryKind, Path, format_path
from svc_events.api import EventData, EventType, origin_member

if TYPE_CHECKING:
    from svc.plugin import Entry, Hash, Origin, PathChange, Version
    from svc_events.api import FeedCommit

__all__ = ["MOST_ENTRIES", "EntryEvents"]

MOST_ENTRIES = 500
"""Entries of one event; a commit with more gives several."""

_MOST_DIFFERENCES = 10_000
"""Entries that a move of HEAD gives; of more, the topmost directories."""

CREATED = "entries_created"
DELETED = "entries_deleted"


class EntryEvents(EventType):
    """Files, links and directories that were stored, copied, moved or deleted.

    Derived from the commit record alone, so a directory that was copied, moved or deleted is one entry.
    Only what a move of HEAD did is taken from the trees.
    """

    names = (CREATED, DELETED)

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData | None]:
        """See ``EventType``. Where the order of two changes matters, they are in two events."""
        del configuration
        open_batches = _Batches()
        for change, origin in commit.changes_and_origins():
            if change.kind == "ref":
                yield from open_batches.flush()
                yield from _move_of_head(commit, origin)
                continue
            for name, path in _parts(change):
                if open_batches.contradicts(name, path):
                    yield from open_batches.flush()
                yield from open_batches.add(name, path, origin)
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
        self.paths: dict[Path, Origin | None] = {}
        self.above: set[Path] = set()

    def add(self, path: Path, origin: Origin | None) -> None:
        self.paths[path] = origin
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

    def add(self, name: str, path: Path, origin: Origin | None) -> Iterator[EventData]:
        batch = self._open[name]
        batch.add(path, origin)
        if len(batch.paths) >= MOST_ENTRIES:
            yield self._take(name)

    def flush(self) -> Iterator[EventData]:
        for name, batch in self._open.items():
            if batch.paths:
                yield self._take(name)

    def _take(self, name: str) -> EventData:
        batch, self._open[name] = self._open[name], _Batch()
        return _event(name, batch.paths)


def _event(name: str, paths: Mapping[Path, Origin | None]) -> EventData:
    entries = [{"path": format_path(path), **origin_member(origin)} for path, origin in paths.items()]
    return EventData(name, {"entries": entries})


def _move_of_head(commit: FeedCommit, origin: Origin | None) -> Iterator[EventData | None]:
    """What a restore or a promotion did: parts of what is gone, then parts of what is there.

    Taken from the two trees; where these are gone it is the root. The number of parts is always the same,
    since the numbers of what follows must not depend on what can still be read.
    """
    database, record = commit.database, commit.commit
    try:
        before, after = database.version_of(record.parent_root), database.version_of(record.root)
        found = _differences(before, after)
    except SvcError:
        found = {DELETED: [()], CREATED: [()]}
    for name, paths in found.items():
        for start in range(0, _MOST_DIFFERENCES, MOST_ENTRIES):
            part = paths[start : start + MOST_ENTRIES]
            yield _event(name, dict.fromkeys(part, origin)) if part else None


def _differences(before: Version, after: Version) -> dict[str, list[Path]]:
    """The paths that went and those that came or changed; of very many the topmost that stand for all."""
    found: dict[str, list[Path]] = {DELETED: [], CREATED: []}
    for change in islice(before.diff(after), _MOST_DIFFERENCES + 1):
        found[DELETED if change.after is None else CREATED].append(change.path)
    if sum(map(len, found.values())) <= _MOST_DIFFERENCES:
        return found
    return _topmost(before, after)


def _topmost(before: Version, after: Version) -> dict[str, list[Path]]:
    """What differs in the first directory where more than one name does.

    A directory that is on both sides went and came: whoever follows it forgets it, and reads it again.
    """
    path: Path = ()
    while True:
        names = list(islice(before.differences(after), _MOST_DIFFERENCES + 1))
        if len(names) > _MOST_DIFFERENCES:
            return {DELETED: [path], CREATED: [path]}
        roots = {name: (_root_of(old), _root_of(new)) for name, old, new in names}
        both = {name: pair for name, pair in roots.items() if all(pair)}
        if len(names) > 1 or not both:
            break
        [(name, (old_root, new_root))] = both.items()
        path, before, after = (*path, name), before.sibling(old_root), after.sibling(new_root)
    return {
        DELETED: [(*path, name) for name, _, new in names if new is None or name in both],
        CREATED: [(*path, name) for name, _, new in names if new is not None],
    }


def _root_of(directory: Entry | None) -> Hash:
    """Returns the root of a directory; nothing for what is none."""
    return directory.hash if directory is not None and directory.kind is EntryKind.DIRECTORY else b""
