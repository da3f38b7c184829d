"""Which part of the system tree a backup may hold, and which it never does.

A system tree flows in; another one flows out that holds users, groups, settings and snapshots, and no
credentials. The same rule is applied to a file that comes in, whoever made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from svc.database.references import CONTINUATION, REFERENCES
from svc.hashing import Hash
from svc.objects.store import EMPTY_SYSTEM_ROOT, ObjectStore, PendingObjects, TreeStore
from svc.paths import Path
from svc.tree import Entry, EntryKind, NodeReader, WorkingTree, entries, resolve

__all__ = ["CREDENTIALS", "INCLUDED", "backup_tree", "is_reference", "system_entries"]

INCLUDED: tuple[Path, ...] = (
    ("config",),
    ("grants",),
    ("groups",),
    ("plugin-set",),
    ("plugins",),
    (REFERENCES, "snapshots"),
    ("users",),
    ("versions", "lifecycle"),
    ("versions", "snapshots"),
)
"""What of the system tree a privileged backup holds: these, with everything below."""

CREDENTIALS = frozenset({"api-keys", "refresh-tokens", "magic-links"})
"""Names that no backup holds, at whatever depth they stand."""


def is_reference(path: Path) -> bool:
    """Whether a path of the system tree is that of a named ref, whose directory is a version of its own."""
    return len(path) > 2 and path[0] == REFERENCES and not path[-1].endswith(CONTINUATION)


def system_entries(store: NodeReader, root: Hash) -> Iterator[tuple[Path, Entry]]:
    """Yields the files and refs of a system tree that a backup may hold, in path order.

    Args:
        store: gives the nodes.
        root: a system root.
    """
    for top in INCLUDED:
        found = resolve(store, root, top)
        if found is None:
            continue
        stack: list[tuple[Path, Entry]] = [(top, found)]
        while stack:
            path, entry = stack.pop()
            if CREDENTIALS.intersection(path):
                continue
            if entry.kind is not EntryKind.DIRECTORY or is_reference(path):
                yield path, entry
                continue
            below = [((*path, name), one) for name, one in entries(store, entry.hash)]
            stack.extend(reversed(below))


def backup_tree(objects: ObjectStore, root: Hash, pause: Callable[[], None]) -> tuple[Hash, PendingObjects]:
    """Returns the system tree of a backup: its root, and the nodes of it that the database does not have.

    Args:
        objects: the database's objects.
        root: the database's system root.
        pause: called now and then, to let others run.
    """
    pending = PendingObjects()
    tree = WorkingTree(TreeStore(objects, pending, system=True), EMPTY_SYSTEM_ROOT)
    newest = 0
    for count, (path, entry) in enumerate(system_entries(objects, root)):
        tree.put(path, entry)
        newest = max(newest, entry.updated_ms)
        if count % 256 == 0:
            pause()
    return tree.write(newest), pending
