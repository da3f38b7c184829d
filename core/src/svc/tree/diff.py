"""What differs between two trees.

Two roots flow in, changes in path order flow out. Equal hashes are never opened, in any two nodes
that stand at the same place, however differently the two sides are cut into nodes: the cost is
O(changes * log n).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from svc.errors import CorruptRecord
from svc.hashing import Hash
from svc.paths import Path
from svc.tree.entry import Entry, EntryKind
from svc.tree.node import Inner, Leaf
from svc.tree.read import resolve
from svc.tree.store import NodeReader

__all__ = ["Change", "diff", "differences"]

_Difference = tuple[str, Entry | None, Entry | None]


@dataclass(frozen=True, slots=True)
class Change:
    """A path whose entry is not the same on both sides.

    Attributes:
        path: where.
        before: the left side's entry; None when the path appears.
        after: the right side's entry; None when the path vanishes.
    """

    path: Path
    before: Entry | None
    after: Entry | None


def diff(store: NodeReader, left: Hash, right: Hash, path: Path = ()) -> Iterator[Change]:
    """Yields what must change to make the right tree of the left one, in path order.

    Files and links that differ are changes. A directory is one when it appears, vanishes, takes the place
    of something else or gives way to it (everything below it then follows as changes too), and when
    it becomes empty, since then it has times of its own. A move is a path that vanishes and one that
    appears.

    Args:
        store: gives the nodes, one at a time as they are needed.
        left: root of the tree before.
        right: root of the tree after.
        path: compares only what lies at and below this path; where a side has nothing there, it
            counts as empty.

    Raises:
        CorruptRecord: a node that differs is damaged.
    """
    if path:
        before, after = resolve(store, left, path), resolve(store, right, path)
        start: Iterator[_Difference] = iter(() if before == after else ((path[-1], before, after),))
    else:
        start = differences(store, left, right)
    stack = [(path[:-1], start)]
    while stack:
        prefix, remaining = stack[-1]
        for name, before, after in remaining:
            here = (*prefix, name)
            old, new = _directory_root(before), _directory_root(after)
            if old is None or new is None or _is_empty(after):
                yield Change(here, before, after)
            if old != new:
                stack.append((here, differences(store, old, new)))
                break
        else:
            stack.pop()


def differences(store: NodeReader, left: Hash | None, right: Hash | None) -> Iterator[_Difference]:
    """Yields the names of two directories whose entries differ: (name, left entry, right entry).

    Args:
        store: gives the nodes.
        left: root of one directory; None is one that holds nothing.
        right: root of the other; None likewise.
    """
    if left == right:
        return
    ours, theirs = _Side(store, left), _Side(store, right)
    while True:
        mine, other = ours.row(), theirs.row()
        if mine is None and other is None:
            if not (ours.pending or theirs.pending):
                return
            _step_over(ours, theirs)
        elif mine is None and ours.pending:
            ours.open()
        elif other is None and theirs.pending:
            theirs.open()
        elif mine is not None and (other is None or mine[0] < other[0]):
            yield mine[0], ours.take(), None
        elif other is not None and (mine is None or other[0] < mine[0]):
            yield other[0], None, theirs.take()
        elif mine is not None and mine != other:
            yield mine[0], ours.take(), theirs.take()
        else:
            _skip_equal_rows(ours, theirs)


class _Side:
    """One directory on its way to be compared: rows of an open leaf, then nodes not opened yet."""

    __slots__ = ("_store", "leaf", "pending", "position", "rows")

    def __init__(self, store: NodeReader, root: Hash | None) -> None:
        self._store = store
        self.pending: list[tuple[int, Hash]] = []  # level and hash of each node, the next one last
        self.leaf: Leaf | None = None
        self.rows: list[tuple[Any, ...]] = []
        self.position = 0
        if root is not None:
            self.pending.append((store.read_node(root).level, root))

    def row(self) -> tuple[Any, ...] | None:
        """The next row, if it is of the open leaf; its first member is the name."""
        return self.rows[self.position] if self.position < len(self.rows) else None

    def take(self) -> Entry | None:
        """The entry of the next row, which is passed."""
        self.position += 1
        return self.leaf.entry(self.position - 1) if self.leaf is not None else None

    def open(self) -> None:
        """Replaces the next node by what it holds."""
        level, node_hash = self.pending.pop()
        node = self._store.read_node(node_hash)
        if node.level != level:
            raise CorruptRecord("A directory node names a child of the wrong level.")
        if isinstance(node, Inner):
            self.pending.extend([(level - 1, child) for child in reversed(node.children())])
        else:
            self.leaf, self.rows, self.position = node, node.rows(), 0


def _step_over(ours: _Side, theirs: _Side) -> None:
    """Passes two equal nodes, or opens the higher one of two that differ; both if they are level."""
    mine = ours.pending[-1] if ours.pending else (-1, b"")
    other = theirs.pending[-1] if theirs.pending else (-1, b"")
    if mine == other:
        ours.pending.pop()
        theirs.pending.pop()
        return
    if mine[0] >= other[0]:
        ours.open()
    if other[0] >= mine[0]:
        theirs.open()


def _skip_equal_rows(ours: _Side, theirs: _Side) -> None:
    count = 0
    for mine, other in zip(ours.rows[ours.position :], theirs.rows[theirs.position :], strict=False):
        if mine != other:
            break
        count += 1
    ours.position += count
    theirs.position += count


def _directory_root(entry: Entry | None) -> Hash | None:
    return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None


def _is_empty(directory: Entry | None) -> bool:
    below = None if directory is None else directory.totals
    return below is not None and not (below.files or below.directories or below.symlinks)
