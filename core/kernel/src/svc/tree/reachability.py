"""What a root keeps alive, and whether it is whole: for collection, verification and transfer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

from svc.errors import CorruptRecord
from svc.hashing import Hash
from svc.tree.boundaries import closed_ends
from svc.tree.codec import decode_node, encode_columns
from svc.tree.entry import EntryKind
from svc.tree.node import Inner, Leaf, Node
from svc.tree.read import directory_entry
from svc.tree.store import NodeReader, read_child

__all__ = ["check_directory", "check_node", "walk_nodes"]


def walk_nodes(
    store: NodeReader, root: Hash, seen: Callable[[Hash], bool] | None = None
) -> Iterator[tuple[Hash, Node]]:
    """Yields all nodes of a directory and of the directories below it, parents first.

    A node is read when it is about to be yielded; its ``Leaf.contents`` gives the file records and chunks
    that the tree keeps alive. ``seen`` is called once for each mention of a node before that is read; where
    it answers True, neither the node nor what lies below is visited. By default each node is visited once.
    """
    if seen is None:
        seen = _remember()
    stack = [root]
    while stack:
        node_hash = stack.pop()
        if seen(node_hash):
            continue
        node = store.read_node(node_hash)
        yield node_hash, node
        if isinstance(node, Inner):
            stack.extend(reversed(node.children()))
        else:
            stack.extend([below for _, below in reversed(node.directories())])


def check_node(payload: bytes) -> Node:
    """Decodes a node of unknown origin and checks that its encoding is canonical."""
    node = decode_node(payload)
    if encode_columns(node.level, node.columns) != payload:
        _corrupt("it is not in canonical form")
    return node


def check_directory(store: NodeReader, root: Hash, known: Callable[[Hash], bool] | None = None) -> None:
    """Makes sure that a directory's nodes fit together and are the only ones for its entries.

    Checks order of keys, boundaries, levels, counts and totals of every node of the directory itself, and
    that the entry of each subdirectory says what its root says; what is deeper is for the caller. Blocks
    while the store gives all nodes. Below a node that was ``known``, as part of a directory that was checked
    before, only the two edges are looked at, so that the cost follows what is new.
    """
    top = store.read_node(root)
    if isinstance(top, Inner) and len(top.names) < 2:
        _corrupt("a root has a single child")
    # Each node with the key that it must come after, whether none follows it on its level, and whether
    # it is known.
    stack: list[tuple[Node, str, bool, bool]] = [(top, "", True, known is not None and known(root))]
    while stack:
        node, before, is_last, is_known = stack.pop()
        _check_boundaries(node, before, is_last)
        if isinstance(node, Leaf):
            if not is_known:
                _check_subdirectories(store, node)
            continue
        last = len(node.names) - 1
        for index, key in enumerate(node.names):
            if is_known and 0 < index < last:
                continue
            child = read_child(store, node, index)
            if not child.names or child.names[-1] != key or child.summary() != node.child_summary(index):
                _corrupt("a child is not what its parent says")
            below_known = is_known or (known is not None and known(node.child(index)))
            after = node.names[index - 1] if index else before
            stack.append((child, after, is_last and index == last, below_known))


def _check_boundaries(node: Node, before: str, is_last: bool) -> None:
    if node.names and node.names[0] <= before:
        _corrupt("its names do not follow those of the node before it")
    ends = closed_ends(node.names, node.level)
    if ends != [len(node.names)] and (ends or not is_last):
        _corrupt("it does not end where it should")


def _check_subdirectories(store: NodeReader, leaf: Leaf) -> None:
    for index, kind in enumerate(leaf.columns[1]):
        if kind == EntryKind.DIRECTORY:
            entry = leaf.entry(index)
            if directory_entry(store, entry.hash, entry.created_ms) != entry:
                _corrupt("a subdirectory does not hold what its entry says")


def _remember() -> Callable[[Hash], bool]:
    known: set[Hash] = set()

    def seen(node_hash: Hash) -> bool:
        if node_hash in known:
            return True
        known.add(node_hash)
        return False

    return seen


def _corrupt(reason: str) -> NoReturn:
    raise CorruptRecord(f"A directory node does not fit: {reason}.")
