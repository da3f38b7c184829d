"""The difference of two versions, for a patch: counts, deleted paths, and where new objects are named.

Each difference is reported once. Equal subtrees are never opened, and an added directory is counted by its
totals: the cost follows the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct

from svc.errors import PayloadTooLarge
from svc.hashing import Hash
from svc.paths import Path
from svc.tree import Entry, EntryKind, Node, NodeReader, differences, walk

__all__ = ["ChangeCounts", "Differences", "RecordingReader", "compare_versions"]

MOST_DELETIONS = 10_000_000
"""A patch names every path that it deletes; one that would name more is refused."""

_PAUSE_EVERY = 64


class ChangeCounts(Struct, frozen=True):
    """How many files and links lie between two versions: added, modified, deleted."""

    added: int = 0
    modified: int = 0
    deleted: int = 0


class Differences(Protocol):
    """Who is told of the differences, in path order."""

    def directory(self, before: Hash, after: Hash) -> None:
        """A directory of both versions holds something else."""
        ...

    def added_directory(self, root: Hash) -> None:
        """A directory that the version before does not have at this path."""
        ...

    def removed_directory(self, root: Hash) -> None:
        """A directory that the version after does not have at this path."""
        ...

    def entry(self, before: Entry | None, after: Entry | None) -> None:
        """A file or link that appears, vanishes or changes; the side that is no file or link is None."""
        ...

    def deleted(self, path: Path) -> None:
        """A file or link is there before and not after; also each below a directory that goes."""
        ...


class RecordingReader:
    """Reads nodes and remembers which: those that a comparison opens are those that differ."""

    def __init__(self, store: NodeReader, pause: Callable[[], None]) -> None:
        self._store = store
        self._pause = pause
        self.opened: set[Hash] = set()

    def read_node(self, hash: Hash) -> Node:
        """Returns a node, and remembers it."""
        self.opened.add(hash)
        if len(self.opened) % _PAUSE_EVERY == 0:
            self._pause()
        return self._store.read_node(hash)


def compare_versions(store: NodeReader, base: Hash, target: Hash, told: Differences) -> ChangeCounts:
    """Tells what changes from one version to another, and returns how much that is.

    Two directories that differ in the same way at many paths are compared once, unless they differ in paths
    that go: each of those is told. ``PayloadTooLarge``: more than ``MOST_DELETIONS`` files and links go.
    """
    added = modified = deleted = 0
    if base == target:
        return ChangeCounts()
    told.directory(base, target)
    # How much two directories add and modify that take nothing away, once they were compared.
    known: dict[tuple[Hash, Hash], tuple[int, int]] = {}
    stack = [_Compared((), (base, target), differences(store, base, target), (0, 0, 0))]
    while stack:
        prefix, pair, remaining, start = stack[-1]
        for name, before, after in remaining:
            here = (*prefix, name)
            old, new = _directory(before), _directory(after)
            file_before, file_after = _no_directory(before), _no_directory(after)
            if file_before is not None or file_after is not None:
                told.entry(file_before, file_after)
            if file_before is not None and file_after is not None:
                modified += 1
            elif file_after is not None:
                added += 1
            elif file_before is not None:
                deleted = _bounded(deleted + 1)
                told.deleted(here)
            if old is not None and new is not None:
                if (counts := known.get((old, new))) is not None:
                    added, modified = added + counts[0], modified + counts[1]
                elif old != new:
                    told.directory(old, new)
                    start = (added, modified, deleted)
                    stack.append(_Compared(here, (old, new), differences(store, old, new), start))
                    break
            elif new is not None:
                told.added_directory(new)
                added += _files_below(after)
            elif old is not None:
                told.removed_directory(old)
                deleted = _bounded(deleted + _files_below(before))
                _tell_deletions(store, old, here, told)
        else:
            stack.pop()
            if deleted == start[2]:
                known[pair] = (added - start[0], modified - start[1])
    return ChangeCounts(added, modified, deleted)


class _Compared(NamedTuple):
    """Two directories that are being compared: what is left of it, and the counts when it began."""

    path: Path
    pair: tuple[Hash, Hash]
    remaining: Iterator[tuple[str, Entry | None, Entry | None]]
    start: tuple[int, int, int]


def _bounded(deleted: int) -> int:
    if deleted > MOST_DELETIONS:
        raise PayloadTooLarge(
            f"A patch names every file and link that it deletes, and at most {MOST_DELETIONS:,} of them: "
            "export the version instead.",
            limit=MOST_DELETIONS,
        )
    return deleted


def _tell_deletions(store: NodeReader, root: Hash, path: Path, told: Differences) -> None:
    for below, entry in walk(store, root, files_only=True):
        if entry.kind is not EntryKind.DIRECTORY:
            told.deleted((*path, *below))


def _directory(entry: Entry | None) -> Hash | None:
    return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None


def _no_directory(entry: Entry | None) -> Entry | None:
    return None if entry is None or entry.kind is EntryKind.DIRECTORY else entry


def _files_below(entry: Entry | None) -> int:
    totals = entry.totals if entry is not None else None
    return totals.files + totals.symlinks if totals is not None else 0
