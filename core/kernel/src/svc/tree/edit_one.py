"""The usual edit: one entry of a directory comes, changes or goes, and no boundary of a node moves.

Rows are spliced where they stand, and sums follow by difference. That takes 540,000 instructions of a small
PUT where the general ``svc.tree.edit`` takes 950,000, of 1.8 million in all (decision 034).
"""

from __future__ import annotations

from bisect import bisect_left

from svc.hashing import Hash
from svc.tree.boundaries import is_boundary
from svc.tree.codec import encode_columns, encode_names, leaf_columns
from svc.tree.entry import Entry
from svc.tree.node import (
    MAXIMUM_ENTRIES,
    MINIMUM_ENTRIES,
    NO_ROW,
    Columns,
    Inner,
    Node,
    Summary,
    entry_summary,
    inner_columns,
    node_of,
    summary_after,
)
from svc.tree.store import NodeStore, read_child

__all__ = ["edit_one"]


def edit_one(store: NodeStore, root: Hash, name: str, entry: Entry | None) -> Hash | None:
    """Changes one entry as ``svc.tree.edit`` does; None when a boundary may move: then nothing is written."""
    above: list[tuple[Inner, int]] = []
    leaf = store.read_node(root)
    while isinstance(leaf, Inner):
        names = leaf.names
        index = min(bisect_left(names, name), len(names) - 1)
        above.append((leaf, index))
        leaf = read_child(store, leaf, index)
    names = leaf.names
    at = bisect_left(names, name)
    there = leaf.entry(at) if at < len(names) and names[at] == name else None
    if entry == there:
        return root
    if entry is None:
        is_last = all(index + 1 == len(inner.names) for inner, index in above)
        if not _stays_without(names, at, is_last):
            return None
    elif there is None and not _stays_with(names, at, name):
        return None
    old: Node = leaf
    stop = at if there is None else at + 1
    row = leaf_columns(() if entry is None else ((name, entry),))
    before = NO_ROW if there is None else entry_summary(there)
    after = NO_ROW if entry is None else entry_summary(entry)
    while True:
        node, node_hash = _replace(store, old, at, stop, row, summary_after(old.summary(), before, after))
        if not above:
            return node_hash
        old, at = above.pop()
        stop = at + 1
        before, after = old.child_summary(at), node.summary()
        row = inner_columns(node.names[-1], node_hash, after)


def _replace(
    store: NodeStore, old: Node, start: int, stop: int, rows: Columns, summary: Summary | None
) -> tuple[Node, Hash]:
    level = old.level
    columns = old.spliced(start, stop, rows)
    node = node_of(level, columns, summary)
    encoded_names = old.encoded_names
    node.encoded_names = (
        encode_names(columns[0])
        if encoded_names is None
        else _splice_names(encoded_names, old.names, start, stop, rows[0])
    )
    return node, store.write_node(encode_columns(level, columns, node.encoded_names), node)


def _splice_names(encoded_names: bytes, before: list[str], start: int, stop: int, names: list[str]) -> bytes:
    gone = before[start:stop]
    if names == gone:
        return encoded_names
    end = len(encoded_names) - len(encode_names(before[stop:]))
    begin = end - len(encode_names(gone))
    return encoded_names[:begin] + encode_names(names) + encoded_names[end:]


def _stays_with(names: list[str], at: int, name: str) -> bool:
    """Whether a leaf takes a new name at a position and keeps its end, or ends with this name."""
    count = len(names)
    if not 0 < count < MAXIMUM_ENTRIES:
        return False
    if at == count:  # nothing follows: the leaf is the directory's last
        return count < MINIMUM_ENTRIES or not is_boundary(names[-1], 0)
    if at < MINIMUM_ENTRIES - 1:
        # Names behind the new one move by one place; one of them enters those where a leaf may end.
        return count < MINIMUM_ENTRIES or not is_boundary(names[MINIMUM_ENTRIES - 2], 0)
    return not is_boundary(name, 0)


def _stays_without(names: list[str], at: int, is_last: bool) -> bool:
    """Whether a leaf loses the name at a position and keeps its end, or is the directory's last."""
    count = len(names)
    if is_last:
        return count > 1
    return MINIMUM_ENTRIES < count < MAXIMUM_ENTRIES and at + 1 < count
