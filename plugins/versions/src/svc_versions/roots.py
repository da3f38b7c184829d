"""Which snapshots name a version: answered from memory, which follows the tree of refs by its differences.

The first answer of a process reads all refs, every later one only what changed since. So making a snapshot
does not slow down as they become many.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from svc.plugin import Database, Entry, EntryKind, Hash, Path, Version, differences, reference_name
from svc_versions.names import SNAPSHOTS

__all__ = ["snapshot_names"]

_REFS: Path = ("refs", SNAPSHOTS)
_CONTINUATION = "%+"


class _KnownRoots:
    def __init__(self) -> None:
        self.tree: Hash | None = None
        self.names: dict[Hash, set[str]] = {}
        self.lock = threading.Lock()

    def follow(self, database: Database, tree: Hash | None) -> None:
        pending: list[tuple[Path, Hash | None, Hash | None]] = [(_REFS, self.tree, tree)]
        # What is interrupted half way must begin again with nothing.
        known, self.tree, self.names = self.names, None, {}
        while pending:
            base, old, new = pending.pop()
            for segment, before, after in differences(database.objects, old, new):
                path = (*base, segment)
                if segment.endswith(_CONTINUATION):
                    pending.append((path, _root(before), _root(after)))
                    continue
                name = reference_name(path).partition("/")[2]
                if before is not None and name in (names := known.get(before.hash, set())):
                    names.discard(name)
                    if not names:
                        del known[before.hash]
                if after is not None:
                    known.setdefault(after.hash, set()).add(name)
        self.tree, self.names = tree, known


_KNOWN: WeakKeyDictionary[Database, _KnownRoots] = WeakKeyDictionary()


def snapshot_names(database: Database, system: Version, root: Hash) -> tuple[str, ...]:
    """Returns the names of the snapshots that name a version, by the system tree."""
    known = _KNOWN.get(database) or _KNOWN.setdefault(database, _KnownRoots())
    tree = _root(system.get(_REFS))
    with known.lock:
        if known.tree != tree:
            known.follow(database, tree)
        return tuple(known.names.get(root, ()))


def _root(entry: Entry | None) -> Hash | None:
    return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None
