"""The user tree of a database, as the functions of this package read and change it."""

from __future__ import annotations

from collections.abc import Iterator

from svc.plugin import Entry, EntryKind, Path, Transaction, Version
from svc_sync.tree import FULL, Application, Leaf, TreeReader
from svc_sync.values import Directory

__all__ = ["VersionTree", "add_edits"]


class VersionTree(TreeReader):
    """A version of a database.

    Args:
        version: it.
    """

    __slots__ = ("_version",)

    def __init__(self, version: Version) -> None:
        self._version = version

    def leaf(self, path: Path) -> Leaf:
        """Returns what stands at a path."""
        entry = self._version.get(path)
        if entry is None or entry.kind is not EntryKind.DIRECTORY:
            return entry
        below = entry.totals
        is_empty = below is None or not (below.files or below.directories or below.symlinks)
        return Directory(entry.created_ms) if is_empty else FULL

    def names(self, path: Path) -> Iterator[str]:
        """Yields the names in a directory."""
        return (name for name, _ in self._version.entries(path))


def add_edits(transaction: Transaction, edits: Application) -> None:
    """Adds to a transaction on HEAD what registers ask for; the contents of files are stored already."""
    for path in edits.removed:
        transaction.delete(path)
    for path, value in edits.put:
        if isinstance(value, Directory):
            transaction.mkdir(path, at_ms=value.own_ms)
        elif isinstance(value, Entry):
            transaction.put_entry(path, value)
