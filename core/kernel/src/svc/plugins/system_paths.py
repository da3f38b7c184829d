"""Who owns which path of the system tree, and what backups and clusters do with it, by what descriptors say.

What nobody declares is in no backup, and is taken from none: it may be a secret of a plugin that is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from svc.database.references import is_reference
from svc.hashing import Hash
from svc.paths import Path
from svc.plugins.claims import overlap
from svc.plugins.descriptor import BackupRule, PluginDescriptor, SyncRule, SystemPath
from svc.plugins.discovery import parse_allowed
from svc.plugins.loading import load_descriptors
from svc.tree import Entry, EntryKind, NodeReader, entries

__all__ = ["SystemPaths", "declared_system_paths"]

_KERNEL = (
    SystemPath("plugins", BackupRule.INCLUDE, sync=SyncRule.LAST_WRITER),
    SystemPath("plugin-set", BackupRule.INCLUDE),
    # What this log has lost, and where: of no meaning in another.
    SystemPath("repairs", BackupRule.SKIP),
    SystemPath("collection", BackupRule.SKIP),
    SystemPath("collection-plan", BackupRule.SKIP),
    # The history of this log; a backup holds versions.
    SystemPath("packed-commits", BackupRule.SKIP),
)
_REFERENCES = "refs"


class SystemPaths:
    """The paths that a set of plugins declares, and those of the kernel.

    Args:
        descriptors: of the plugins that may be used in this process.
    """

    def __init__(self, descriptors: Iterable[PluginDescriptor] = ()) -> None:
        descriptors = tuple(descriptors)
        self._declared = (*_KERNEL, *(owned for one in descriptors for owned in one.system_paths))
        self._by_first: dict[Path, list[SystemPath]] = {}
        for owned in self._declared:
            self._by_first.setdefault(owned.parts[:1], []).append(owned)
        self._of_node = frozenset(("plugins", one.id) for one in descriptors if one.is_of_node)

    def exchanged(self) -> list[tuple[Path, SyncRule]]:
        """Returns the paths that all nodes of a cluster have alike, with all below them but ``kept``."""
        found = [(owned.parts, owned.sync) for owned in self._declared if owned.sync is not SyncRule.NONE]
        return sorted(found, key=lambda one: one[0])

    def sync_rule(self, path: Path) -> SyncRule:
        """Returns what nodes of a cluster do with a path of the system tree."""
        # No declared path begins with ``*``.
        near = self._by_first.get(path[:1], ())
        fitting = [owned for owned in near if _lies_at_or_below(path, owned.parts)]
        if not fitting or path in self._of_node:
            return SyncRule.NONE
        return max(fitting, key=lambda owned: len(owned.parts)).sync

    def kept(self) -> frozenset[Path]:
        """Returns the documents that each node has of its own, below paths that are exchanged."""
        return self._of_node

    def included(self, store: NodeReader, root: Hash) -> Iterator[tuple[Path, Entry]]:
        """Yields what a privileged backup holds of a system tree: files and refs, in the order of paths.

        Args:
            store: gives the nodes.
            root: a system root.
        """
        for path, entry, rule in self._walk(store, root):
            is_leaf = entry.kind is not EntryKind.DIRECTORY or is_reference(path)
            if rule is BackupRule.INCLUDE and is_leaf:
                yield path, entry

    def undeclared(self, store: NodeReader, root: Hash) -> Iterator[Path]:
        """Yields the paths of a system tree that nobody declares, each without what is below it."""
        for path, _, rule in self._walk(store, root):
            if rule is None and not self._declared_below(path):
                yield path

    def documents(self, path: Path) -> Path | None:
        """The path of the document of a ref, both as paths of the system tree; None when it has none."""
        kind = "/".join(path[:2])
        for owned in self._declared:
            if owned.path == kind and owned.documents is not None:
                return (*owned.documents.split("/"), *path[2:])
        return None

    def _declared_below(self, path: Path) -> bool:
        return path == (_REFERENCES,) or any(_lies_below(owned, path) for owned in self._declared)

    def _walk(self, store: NodeReader, root: Hash) -> Iterator[tuple[Path, Entry, BackupRule | None]]:
        """Yields what may matter, each with its rule; what is secret or left out as a whole is not opened."""
        stack: list[tuple[Path, Entry, Sequence[SystemPath]]] = []

        def open_directory(path: Path, at: Hash, declared: Sequence[SystemPath]) -> None:
            below = [((*path, name), entry, declared) for name, entry in entries(store, at)]
            stack.extend(reversed(below))

        open_directory((), root, self._declared)
        while stack:
            path, entry, declared = stack.pop()
            if any(len(owned.parts) >= len(path) for owned in declared):
                declared = [owned for owned in declared if overlap(path, owned.parts)]
            rule = _rule([owned for owned in declared if len(owned.parts) <= len(path)])
            yield path, entry, rule
            if entry.kind is not EntryKind.DIRECTORY or is_reference(path) or rule is BackupRule.SECRET:
                continue
            deeper = any(len(owned.parts) > len(path) for owned in declared)
            if rule is BackupRule.INCLUDE or deeper or path == (_REFERENCES,):
                open_directory(path, entry.hash, declared)


def declared_system_paths() -> SystemPaths:
    """Returns who owns which path of the system tree, by the plugins that ``SVC_PLUGINS`` allows."""
    return SystemPaths(load_descriptors(parse_allowed(os.environ.get("SVC_PLUGINS"))))


def _lies_at_or_below(path: Path, owned: Path) -> bool:
    return len(path) >= len(owned) and overlap(path, owned)


def _lies_below(owned: SystemPath, path: Path) -> bool:
    return len(owned.parts) > len(path) and overlap(path, owned.parts)


def _rule(fitting: Sequence[SystemPath]) -> BackupRule | None:
    if any(owned.backup is BackupRule.SECRET for owned in fitting):
        return BackupRule.SECRET
    return max(fitting, key=lambda owned: len(owned.parts)).backup if fitting else None
