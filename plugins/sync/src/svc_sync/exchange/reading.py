"""The user tree of a version as registers see it: what stands at paths, without what a node adds."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from svc.plugin import EMPTY_ROOT, Entry, EntryKind, Path, Totals, Version
from svc_sync.tree import FULL, Leaf, TreeReader
from svc_sync.values import Directory

__all__ = ["VersionTree", "directory_of", "leaf_of"]

_MOST_KEPT = 10_000
"""So many entries are kept that were read."""


def leaf_of(entry: Entry | None) -> Leaf:
    """Returns what an entry is to registers.

    A file's record follows from its content and from the version of svc that stored it, so it is left out.
    """
    if entry is None:
        return None
    if entry.kind is not EntryKind.DIRECTORY:
        return entry if entry.record is None else replace(entry, record=None)
    below = entry.totals
    if below is None or below.files or below.directories or below.symlinks:
        return FULL
    return Directory(entry.created_ms)


def directory_of(value: Directory) -> Entry:
    """Returns the entry of an empty directory."""
    return Entry(EntryKind.DIRECTORY, EMPTY_ROOT, 0, value.own_ms, value.own_ms, totals=Totals())


class VersionTree(TreeReader):
    """A version.

    Args:
        version: the version.
    """

    def __init__(self, version: Version) -> None:
        self.version = version
        self._read: dict[Path, Entry | None] = {}

    def entry(self, path: Path) -> Entry | None:
        """Returns the entry at a path."""
        if path not in self._read:
            if len(self._read) >= _MOST_KEPT:
                self._read.clear()
            self._read[path] = self.version.get(path)
        return self._read[path]

    def leaf(self, path: Path) -> Leaf:
        """Returns what stands at a path."""
        return leaf_of(self.entry(path))

    def names(self, path: Path) -> Iterator[str]:
        """Yields the names in a directory."""
        return (name for name, _ in self.version.entries(path))
