"""Reading trees: one name, a page of a directory, a path, everything below a path in order.

Every function reads O(log n) nodes to where it begins, and streams. A damaged node raises CorruptRecord.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from svc.hashing import Hash
from svc.paths import Path
from svc.tree.entry import NO_TOTALS, Entry, EntryKind, Totals
from svc.tree.node import Inner, Leaf, Node
from svc.tree.store import NodeReader, read_child

__all__ = [
    "directory_entry",
    "entries",
    "entry_count",
    "lookup",
    "lookup_many",
    "rank",
    "resolve",
    "totals",
    "walk",
    "walk_files",
]

_DIRECTORY = EntryKind.DIRECTORY  # a member is read through its class for ten times the price


def lookup(store: NodeReader, root: Hash, name: str) -> Entry | None:
    """Returns the entry of a name in one directory, or None."""
    leaf, index = _locate(store, root, name)
    return None if leaf is None else leaf.entry(index)


def lookup_many(store: NodeReader, root: Hash, names: list[str]) -> Iterator[tuple[str, Entry]]:
    """Yields those of some names, in ascending order, that a directory has, and their entries."""
    waiting = [(store.read_node(root), 0, len(names))]
    while waiting:
        node, start, stop = waiting.pop()
        if not isinstance(node, Inner):
            for name in set(node.names).intersection(names[start:stop]):
                yield name, node.entry(bisect_left(node.names, name))
            continue
        while start < stop:
            index = bisect_left(node.names, names[start])
            if index == len(node.names):
                break
            end = bisect_right(names, node.names[index], start, stop)
            waiting.append((read_child(store, node, index), start, end))
            start = end


def entry_count(store: NodeReader, root: Hash) -> int:
    """Returns how many entries a directory holds itself, in O(1)."""
    return store.read_node(root).summary().entries


def totals(store: NodeReader, root: Hash) -> Totals:
    """Returns what lies below a directory at every depth, in O(1)."""
    count, *numbers = store.read_node(root).summary()
    return Totals(*numbers) if count else NO_TOTALS


def rank(store: NodeReader, root: Hash, name: str) -> int:
    """Returns how many names of a directory come before ``name``, whether that is there or not."""
    return _rank(store, root, name, after=False)


def directory_entry(store: NodeReader, root: Hash, own_ms: int) -> Entry:
    """Returns the entry by which a parent names a directory.

    ``own_ms``, when it was made or emptied, counts only while it is empty: else its times are its contents'.
    """
    below = totals(store, root)
    if below is NO_TOTALS:
        return Entry(_DIRECTORY, root, 0, own_ms, own_ms, totals=NO_TOTALS)
    return Entry(_DIRECTORY, root, below.size, below.created_ms, below.updated_ms, totals=below)


def resolve(store: NodeReader, root: Hash, path: Path) -> Entry | None:
    """Returns the entry at a path, or None; links are not followed.

    The empty path gives the directory ``root`` itself, with times of 0 when it is empty.
    """
    if not path:
        return directory_entry(store, root, 0)
    for name in path[:-1]:
        leaf, index = _locate(store, root, name)
        below = None if leaf is None else leaf.directory_root(index)
        if below is None:
            return None
        root = below
    return lookup(store, root, path[-1])


def entries(
    store: NodeReader, root: Hash, *, after: str | None = None, offset: int = 0, reverse: bool = False
) -> Iterator[tuple[str, Entry]]:
    """Yields names and entries of one directory in order; reaches the first in O(log n).

    Begins behind ``after``, which need not exist, in the direction of reading; leaves out ``offset`` entries.
    """
    if reverse:
        start = (
            (entry_count(store, root) if after is None else _rank(store, root, after, after=False))
            - 1
            - offset
        )
        return _entries_down(store, root, start)
    start = (0 if after is None else _rank(store, root, after, after=True)) + offset
    return _entries_up(store, root, start)


def walk(
    store: NodeReader,
    root: Hash,
    path: Path = (),
    *,
    after: Path | None = None,
    files_only: bool = False,
    max_depth: int = -1,
) -> Iterator[tuple[Path, Entry]]:
    """Yields everything below a path, depth first: the order of paths compared as tuples.

    Yielded paths begin with ``path``; where no directory is there, nothing is yielded. The walk begins behind
    ``after`` (relative to ``root``; need not exist), in O(depth * log n), first with what lies below it.
    ``files_only`` leaves out directories, and never enters one without files and links. ``max_depth`` says
    how many levels of subdirectories to enter, -1 all.
    """
    start = resolve(store, root, path)
    if start is None or start.kind is not _DIRECTORY:
        return
    stack = _walk_from(store, start.hash, path, after, max_depth)
    while stack:
        prefix, remaining = stack[-1]
        for name, entry in remaining:
            here = (*prefix, name)
            is_directory = entry.kind is _DIRECTORY
            if not (is_directory and files_only):
                yield here, entry
            if is_directory and _is_entered(entry, files_only) and (max_depth < 0 or len(stack) <= max_depth):
                stack.append((here, entries(store, entry.hash)))
                break
        else:
            stack.pop()


def walk_files(
    store: NodeReader,
    root: Hash,
    path: Path = (),
    *,
    after: Path | None = None,
    offset: int = 0,
    max_depth: int = -1,
    enters: Callable[[Path], bool] | None = None,
) -> Iterator[tuple[Path, Entry | None]]:
    """Yields the files below a path, and the directories that hold some (with None), in ``walk``'s order.

    What holds no file is passed over by the counts that the nodes keep. So each step costs little, whatever
    the tree holds: whoever bounds the number of steps bounds the work.

    ``path``, ``after`` and ``max_depth`` are as for ``walk``; directories that are not entered are yielded
    too, and ``enters`` is asked after that. ``offset`` leaves out that many files by the counts of whole
    subtrees, which are not yielded, in O(depth * log n): only where all directories are entered.
    """
    start = resolve(store, root, path)
    if start is None or start.kind is not _DIRECTORY:
        return

    def is_entered(directory: Path) -> bool:
        if 0 <= max_depth < len(directory) - len(path):
            return False
        return enters is None or enters(directory)

    stack = _files_from(store, start.hash, path, after, is_entered)
    while stack:
        prefix, node, at = stack.pop()
        if isinstance(node, Inner):
            for index in range(at, len(node.names)):
                files = node.child_summary(index).files
                if files <= offset:
                    offset -= files
                    continue
                stack.append((prefix, node, index + 1))
                stack.append((prefix, read_child(store, node, index), 0))
                break
            continue
        for index in range(at, len(node.names)):
            files = node.file_count(index)
            if files <= offset:
                offset -= files
                continue
            here = (*prefix, node.names[index])
            below = node.directory_root(index)
            if below is None:
                yield here, node.entry(index)
                continue
            if not offset:
                yield here, None
            if is_entered(here):
                stack.append((prefix, node, index + 1))
                stack.append((here, store.read_node(below), 0))
                break


def _files_from(
    store: NodeReader, root: Hash, path: Path, after: Path | None, is_entered: Callable[[Path], bool]
) -> list[tuple[Path, Node, int]]:
    """Returns where a walk stands behind ``after``: nodes, each with its next row; the innermost last."""
    if after is None or after[: len(path)] != path:
        # Either all of the subtree lies behind ``after``, or all of it before.
        return [] if after is not None and after > path else [(path, store.read_node(root), 0)]
    stack: list[tuple[Path, Node, int]] = []
    prefix = path
    for name in after[len(path) :]:
        node = store.read_node(root)
        while isinstance(node, Inner):
            index = bisect_left(node.names, name)
            if index == len(node.names):
                return stack
            stack.append((prefix, node, index + 1))
            node = read_child(store, node, index)
        index = bisect_right(node.names, name)
        stack.append((prefix, node, index))
        below = node.directory_root(index - 1) if index and node.names[index - 1] == name else None
        prefix = (*prefix, name)
        if below is None or not is_entered(prefix):
            return stack
        root = below
    stack.append((prefix, store.read_node(root), 0))
    return stack


def _walk_from(
    store: NodeReader, root: Hash, path: Path, after: Path | None, max_depth: int
) -> list[tuple[Path, Iterator[tuple[str, Entry]]]]:
    """Returns the iterators of a walk that stands behind ``after``, outermost first."""
    if after is None or after[: len(path)] != path:
        # Either all of the subtree lies behind ``after``, or all of it before.
        return [] if after is not None and after > path else [(path, entries(store, root))]
    stack: list[tuple[Path, Iterator[tuple[str, Entry]]]] = []
    prefix = path
    for name in after[len(path) :]:
        stack.append((prefix, entries(store, root, after=name)))
        entry = lookup(store, root, name)
        if entry is None or entry.kind is not _DIRECTORY or 0 <= max_depth < len(stack):
            return stack
        root, prefix = entry.hash, (*prefix, name)
    stack.append((prefix, entries(store, root)))
    return stack


def _is_entered(directory: Entry, files_only: bool) -> bool:
    below = directory.totals
    return not files_only or below is None or bool(below.files or below.symlinks)


def _locate(store: NodeReader, root: Hash, name: str) -> tuple[Leaf | None, int]:
    """The leaf that holds a name, and the position in it; (None, 0) when the directory has no such name."""
    node = store.read_node(root)
    while isinstance(node, Inner):
        names = node.names
        index = bisect_left(names, name)
        if index == len(names):
            return None, 0
        node = read_child(store, node, index)
    names = node.names
    index = bisect_left(names, name)
    return (node, index) if index < len(names) and names[index] == name else (None, 0)


def _rank(store: NodeReader, root: Hash, name: str, *, after: bool) -> int:
    """How many names come before ``name``, counting ``name`` itself if ``after``."""
    node = store.read_node(root)
    before = 0
    while isinstance(node, Inner):
        index = bisect_left(node.names, name)
        if index == len(node.names):
            return before + node.summary().entries
        before += sum(node.counts()[:index])
        node = read_child(store, node, index)
    return before + (bisect_right if after else bisect_left)(node.names, name)


def _descend(store: NodeReader, root: Hash, position: int) -> tuple[list[tuple[Inner, int]], Leaf, int]:
    way: list[tuple[Inner, int]] = []
    node = store.read_node(root)
    while isinstance(node, Inner):
        index = 0
        for count in node.counts()[:-1]:
            if position < count:
                break
            position -= count
            index += 1
        way.append((node, index))
        node = read_child(store, node, index)
    return way, node, position


def _entries_up(store: NodeReader, root: Hash, start: int) -> Iterator[tuple[str, Entry]]:
    if start >= entry_count(store, root):
        return
    way, leaf, position = _descend(store, root, max(start, 0))
    while True:
        yield from leaf.items(position)
        while way and way[-1][1] + 1 == len(way[-1][0].names):
            way.pop()
        if not way:
            return
        inner, index = way.pop()
        way.append((inner, index + 1))
        node = read_child(store, inner, index + 1)
        while isinstance(node, Inner):
            way.append((node, 0))
            node = read_child(store, node, 0)
        leaf, position = node, 0


def _entries_down(store: NodeReader, root: Hash, start: int) -> Iterator[tuple[str, Entry]]:
    if start < 0:
        return
    way, leaf, position = _descend(store, root, min(start, entry_count(store, root) - 1))
    while True:
        for index in range(position, -1, -1):
            yield leaf.names[index], leaf.entry(index)
        while way and way[-1][1] == 0:
            way.pop()
        if not way:
            return
        inner, index = way.pop()
        way.append((inner, index - 1))
        node = read_child(store, inner, index - 1)
        while isinstance(node, Inner):
            last = len(node.names) - 1
            way.append((node, last))
            node = read_child(store, node, last)
        leaf, position = node, len(node.names) - 1
