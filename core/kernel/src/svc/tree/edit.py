"""Making directories: from nothing, and from what they were.

Both give the same root: an edit redoes boundaries, level by level, until they meet the old ones again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any

from svc.errors import InvalidInput
from svc.hashing import Hash
from svc.tree.boundaries import closed_ends
from svc.tree.codec import empty_payload, encode_columns, entry_columns, leaf_columns
from svc.tree.edit_one import edit_one
from svc.tree.entry import Entry
from svc.tree.node import (
    INNER_WIDTHS,
    LEAF_WIDTHS,
    Columns,
    Inner,
    Leaf,
    Node,
    inner_columns,
    join_columns,
    node_of,
    slice_columns,
    splice_columns,
)
from svc.tree.store import NodeStore, read_child

__all__ = ["build", "edit", "empty_directory"]

_BATCH = 4096


def empty_directory(store: NodeStore) -> Hash:
    """Returns the root of a directory that holds nothing."""
    return store.write_node(empty_payload())


def build(store: NodeStore, entries: Iterable[tuple[str, Entry]]) -> Hash:
    """Makes a directory of all its entries, as a stream.

    Raises as ``leaf_columns``, and InvalidInput for names out of order or doubled.
    """
    source = iter(entries)
    rows: list[Columns] = []
    rest = leaf_columns(())
    last = ""
    while batch := list(islice(source, _BATCH)):
        columns = leaf_columns(batch)
        names = [last, *columns[0]]
        if any(left >= right for left, right in pairwise(names)):
            raise InvalidInput("The entries of a directory must be given in ascending order of their names.")
        last = names[-1]
        rest = _write_closed(store, 0, join_columns([rest, columns]), rows)
    return _finish(store, 0, rest, rows)


def edit(store: NodeStore, root: Hash, changes: Mapping[str, Entry | None]) -> Hash:
    """Changes entries of one directory, in O(changes * log(entries)); returns the new root.

    That is ``root`` itself when nothing changed: removing what is not there, and putting what is there
    already, change nothing. Raises InvalidInput and InvalidPath as ``build``, and CorruptRecord.
    """
    if len(changes) == 1:
        new = edit_one(store, root, *next(iter(changes.items())))
        if new is not None:
            return new
    top = store.read_node(root)
    pending: Mapping[str, Any] = changes
    for level in range(top.level):
        pending = _edit_level(store, _LevelCursor(store, top, level), _Changes(level, pending))
        if not pending:
            return root
    merged = _apply(top, _Changes(top.level, pending), 0, len(pending))
    if merged is None:
        return root
    rows: list[Columns] = []
    rest = _write_closed(store, top.level, merged, rows)
    return _finish(store, top.level, rest, rows)


class _LevelCursor:
    def __init__(self, store: NodeStore, top: Node, level: int) -> None:
        self._store = store
        self._top = top
        self._level = level
        self._path: list[tuple[Inner, int]] = []

    def seek(self, key: str) -> Node:
        self._path.clear()
        node = self._top
        while node.level > self._level and isinstance(node, Inner):
            index = min(bisect_left(node.names, key), len(node.names) - 1)
            self._path.append((node, index))
            node = read_child(self._store, node, index)
        return node

    def is_last(self) -> bool:
        return all(index + 1 == len(node.names) for node, index in self._path)

    def next(self) -> Node:
        path = self._path
        node, index = path.pop()
        while index + 1 == len(node.names):
            node, index = path.pop()
        path.append((node, index + 1))
        below = read_child(self._store, node, index + 1)
        while below.level > self._level and isinstance(below, Inner):
            path.append((below, 0))
            below = read_child(self._store, below, 0)
        return below


class _Changes:
    """What becomes of some ``keys`` of one level, ascending.

    ``values`` has for each key an Entry (leaves), a row of columns (above), or None to remove it; ``columns``
    the rows of all that stay; ``rows`` how many rows stand before each key's own, and one more number.
    """

    __slots__ = ("columns", "keys", "rows", "values")

    def __init__(self, level: int, changes: Mapping[str, Any]) -> None:
        self.keys = keys = sorted(changes)
        self.values = values = [changes[key] for key in keys]
        self.rows: Sequence[int] = range(len(keys) + 1)
        if None in values:
            self.rows = [0, *accumulate([value is not None for value in values])]
            keys = [key for key, value in zip(keys, values, strict=True) if value is not None]
            values = [value for value in values if value is not None]
        self.columns = join_columns(values) if level and values else entry_columns(keys, values)


def _edit_level(store: NodeStore, cursor: _LevelCursor, changes: _Changes) -> dict[str, Columns | None]:
    """Applies changes to a level below the top; returns the changes that follow for the next level."""
    above: dict[str, Columns | None] = {}
    keys = changes.keys
    start = 0
    while start < len(keys):
        node = cursor.seek(keys[start])
        rest: Columns | None = None
        while True:
            last = cursor.is_last()
            stop = len(keys) if last else bisect_right(keys, node.names[-1], start)
            merged = _apply(node, changes, start, stop)
            start = stop
            if merged is None:
                if rest is None:
                    break
                merged = node.columns
            above.setdefault(node.names[-1], None)
            rows: list[Columns] = []
            rest = _write_closed(
                store, node.level, merged if rest is None else join_columns([rest, merged]), rows
            )
            if last and rest[0]:
                rows.append(_write(store, node.level, rest))
            for row in rows:
                above[row[0][0]] = row
            if last or not rest[0]:
                break
            node = cursor.next()
    return above


def _apply(node: Node, changes: _Changes, start: int, stop: int) -> Columns | None:
    """Returns the node's columns with changes ``start`` to ``stop`` made; None when they change nothing."""
    names, keys, rows = node.names, changes.keys, changes.rows
    count = len(names)
    parts: list[tuple[Columns, int, int]] = []
    position, touched = 0, False
    while start < stop:
        index = bisect_left(names, keys[start], position)
        found = index < count and names[index] == keys[start]
        if found:
            end = start + 1
            value = changes.values[start]
            changed = value is None or not _holds(node, index, value)
        else:
            # All keys before the node's next name are inserted here.
            end = bisect_left(keys, names[index], start, stop) if index < count else stop
            changed = rows[end] > rows[start]
        if changed:
            touched = True
            parts += ((node.columns, position, index), (changes.columns, rows[start], rows[end]))
            position = index + found
        start = end
    if not touched:
        return None
    parts.append((node.columns, position, count))
    return splice_columns(parts, INNER_WIDTHS if node.level else LEAF_WIDTHS)


def _holds(node: Node, index: int, value: Any) -> bool:
    if isinstance(node, Leaf):
        same_hash = node.hashes[index * 32 : index * 32 + 32] == value.hash
        return bool(same_hash and node.entry(index) == value)
    return bool(node.child(index) == value[1])


def _write(store: NodeStore, level: int, columns: Columns) -> Columns:
    node = node_of(level, columns)
    node_hash = store.write_node(encode_columns(level, columns), node)
    return inner_columns(columns[0][-1], node_hash, node.summary())


def _write_closed(store: NodeStore, level: int, columns: Columns, rows: list[Columns]) -> Columns:
    """Writes all complete nodes of some columns, appends their rows, and returns what is left over."""
    ends = closed_ends(columns[0], level)
    if not ends:
        return columns
    widths = INNER_WIDTHS if level else LEAF_WIDTHS
    if ends == [len(columns[0])]:
        rows.append(_write(store, level, columns))
        return slice_columns(columns, widths, 0, 0)
    start = 0
    for end in ends:
        rows.append(_write(store, level, slice_columns(columns, widths, start, end)))
        start = end
    return slice_columns(columns, widths, start, len(columns[0]))


def _finish(store: NodeStore, level: int, rest: Columns, rows: list[Columns]) -> Hash:
    """Writes the last node of a level and all levels above; returns the root.

    The root is the first node that is alone on its level, counted from the leaves.
    """
    while True:
        if not rows and not rest[0]:
            return empty_directory(store)
        if level and not rows and len(rest[0]) == 1:
            return _only_root(store, rest[1])
        if not rows:
            return store.write_node(encode_columns(level, rest), node_of(level, rest))
        if rest[0]:
            rows.append(_write(store, level, rest))
        if len(rows) == 1:
            return bytes(rows[0][1])
        level += 1
        columns, rows = join_columns(rows), []
        rest = _write_closed(store, level, columns, rows)


def _only_root(store: NodeStore, root: Hash) -> Hash:
    node = store.read_node(root)
    while isinstance(node, Inner) and len(node.names) == 1:
        root = node.child(0)
        node = read_child(store, node, 0)
    return root
