"""What differs between two trees, in O(changes * log n).

Nodes with equal hashes are passed over unread, also where the two sides are cut into nodes differently.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from svc.errors import CorruptRecord
from svc.hashing import Hash
from svc.paths import Path
from svc.tree.entry import Entry, EntryKind
from svc.tree.node import Inner, Leaf
from svc.tree.read import lookup, resolve
from svc.tree.store import NodeReader

__all__ = ["Change", "diff", "differences"]

_Difference = tuple[str, Entry | None, Entry | None]
_NO_LEAF = Leaf(([], b"", b"", b"", [], []))


class Change(Struct, frozen=True):
    """A path whose entry is not the same on both sides.

    Attributes:
        before: the left side's entry; None when the path appears.
        after: the right side's entry; None when the path vanishes.
    """

    path: Path
    before: Entry | None
    after: Entry | None


def diff(
    store: NodeReader, left: Hash, right: Hash, path: Path = (), *, after: Path | None = None
) -> Iterator[Change]:
    """Yields what must change to make the right tree of the left one, in path order.

    Files and links that differ are changes. A directory is one when it appears, vanishes, takes the place of
    something else or gives way to it (everything below it then follows as changes too), and when it becomes
    empty, since then it has times of its own. A move is a path that vanishes and one that appears.

    Only what lies at and below ``path`` is compared; where a side has nothing there, it counts as empty. What
    ``after`` names need not differ or exist; the diff begins behind it, in O(depth * log n).
    """
    if after is not None and after[: len(path)] == path:
        stack = _behind(store, left, right, path, after)
    elif after is not None and after > path:
        return
    elif path:
        sides = resolve(store, left, path), resolve(store, right, path)
        start: Iterator[_Difference] = iter(() if sides[0] == sides[1] else ((path[-1], *sides),))
        stack = [(path[:-1], start)]
    else:
        stack = [((), differences(store, left, right))]
    while stack:
        prefix, remaining = stack[-1]
        for name, before, now in remaining:
            here = (*prefix, name)
            old, new = _directory_root(before), _directory_root(now)
            if old is None or new is None or _is_empty(now):
                yield Change(here, before, now)
            if old != new:
                stack.append((here, differences(store, old, new)))
                break
        else:
            stack.pop()


def _behind(
    store: NodeReader, left: Hash, right: Hash, path: Path, after: Path
) -> list[tuple[Path, Iterator[_Difference]]]:
    """The iterators of a comparison below ``path`` that begins behind ``after``, outermost first."""
    stack: list[tuple[Path, Iterator[_Difference]]] = []
    old, new = _directory_root(resolve(store, left, path)), _directory_root(resolve(store, right, path))
    for depth in range(len(path), len(after) + 1):
        if old == new:
            break
        if depth == len(after):
            stack.append((after, differences(store, old, new)))
            break
        name = after[depth]
        stack.append((after[:depth], differences(store, old, new, after=name)))
        old = None if old is None else _directory_root(lookup(store, old, name))
        new = None if new is None else _directory_root(lookup(store, new, name))
    return stack


def differences(
    store: NodeReader, left: Hash | None, right: Hash | None, *, after: str | None = None
) -> Iterator[_Difference]:
    """Yields the names of two directories whose entries differ: (name, left entry, right entry).

    Args:
        store: gives the nodes.
        left: root of one directory; None is one that holds nothing.
        right: root of the other; None likewise.
        after: begins behind this name, which neither need hold, in O(log n).
    """
    if left == right:
        return
    ours, theirs = _Side(store, left, after), _Side(store, right, after)
    while True:
        if ours.position < ours.end and theirs.position < theirs.end:
            yield from _in_open_leaves(ours, theirs)
        if ours.position < ours.end:
            if theirs.pending:
                theirs.open()
            else:
                yield from [(name, entry, None) for name, entry in ours.rest()]
        elif theirs.position < theirs.end:
            if ours.pending:
                ours.open()
            else:
                yield from [(name, None, entry) for name, entry in theirs.rest()]
        elif ours.pending or theirs.pending:
            _step_over(ours, theirs)
        else:
            return


def _in_open_leaves(ours: _Side, theirs: _Side) -> Iterator[_Difference]:
    """Compares the open leaves up to the end of one of them, column by column: few rows become entries."""
    leaf, other_leaf, at, other = ours.leaf, theirs.leaf, ours.position, theirs.position
    names, kinds, hashes, numbers, types, extras = leaf.columns
    other_names, other_kinds, other_hashes, other_numbers, other_types, other_extras = other_leaf.columns
    end, other_end = ours.end, theirs.end
    while at < end and other < other_end:
        name, other_name = names[at], other_names[other]
        if name < other_name:
            yield name, leaf.entry(at), None
            at += 1
        elif other_name < name:
            yield other_name, None, other_leaf.entry(other)
            other += 1
        else:
            if (
                hashes[at * 32 : at * 32 + 32] != other_hashes[other * 32 : other * 32 + 32]
                or numbers[at * 24 : at * 24 + 24] != other_numbers[other * 24 : other * 24 + 24]
                or kinds[at] != other_kinds[other]
                or types[at] != other_types[other]
                or extras[at] != other_extras[other]
            ):
                yield name, leaf.entry(at), other_leaf.entry(other)
            at += 1
            other += 1
    ours.position, theirs.position = at, other


class _Side:
    """One of two directories that are compared: the rest of an open leaf, then nodes not opened yet."""

    __slots__ = ("_after", "_store", "end", "leaf", "pending", "position")

    def __init__(self, store: NodeReader, root: Hash | None, after: str | None = None) -> None:
        self._store = store
        self._after = after
        self.pending: list[tuple[int, Hash]] = []  # level and hash of each node, the next one last
        self.leaf = _NO_LEAF
        self.position = self.end = 0
        if root is not None:
            self.pending.append((store.read_node(root).level, root))

    def rest(self) -> list[tuple[str, Entry]]:
        found = self.leaf.items(self.position)
        self.position = self.end
        return found

    def open(self) -> None:
        level, node_hash = self.pending.pop()
        node = self._store.read_node(node_hash)
        if node.level != level:
            raise CorruptRecord("A directory node names a child of the wrong level.")
        first = 0 if self._after is None else bisect_right(node.names, self._after)
        if isinstance(node, Inner):
            self.pending.extend([(level - 1, child) for child in reversed(node.children()[first:])])
        else:
            self.leaf, self.position, self.end = node, first, len(node.names)


def _step_over(ours: _Side, theirs: _Side) -> None:
    """Passes equal nodes; of the first two that differ, opens the one of the higher level, or both."""
    mine, other = ours.pending, theirs.pending
    while mine and other and mine[-1] == other[-1]:
        mine.pop()
        other.pop()
    level = mine[-1][0] if mine else -1
    other_level = other[-1][0] if other else -1
    if mine and level >= other_level:
        ours.open()
    if other and other_level >= level:
        theirs.open()


def _directory_root(entry: Entry | None) -> Hash | None:
    return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None


def _is_empty(directory: Entry | None) -> bool:
    below = None if directory is None else directory.totals
    return below is not None and not (below.files or below.directories or below.symlinks)
