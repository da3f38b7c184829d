"""Where nodes come from and go to: the one thing that the tree's functions need from outside."""

from __future__ import annotations

from typing import Protocol

from svc.errors import CorruptRecord
from svc.hashing import HASH_SIZE, Hash
from svc.tree.node import Inner, Node

__all__ = ["NodeReader", "NodeStore", "read_child"]


class NodeReader(Protocol):
    """Reads nodes by their hashes.

    It may keep decoded nodes: a node never changes, so one that was decoded once is good for ever. It
    always has the node of the empty directory, since an entry may name that before anything was written.
    """

    def read_node(self, node_hash: Hash, /) -> Node:
        """Returns the node of that hash.

        Raises:
            CorruptRecord: what is stored under the hash is damaged, missing or not a node.
        """
        ...


class NodeStore(NodeReader, Protocol):
    """Reads and keeps nodes; the store decides the hash context (user or system tree)."""

    def write_node(self, payload: bytes, node: Node | None = None, /) -> Hash:
        """Keeps a node's payload and returns its hash; a payload that is kept already costs nothing.

        Args:
            payload: the encoded node.
            node: what decoding the payload would give, where the caller has it: whoever reads the node
                next need not decode it.
        """
        ...


def read_child(store: NodeReader, parent: Inner, index: int) -> Node:
    """Returns a child of an inner node."""
    at = index * HASH_SIZE
    child = store.read_node(parent.hashes[at : at + HASH_SIZE])
    if child.level != parent.level - 1:
        raise CorruptRecord("A directory node names a child of the wrong level.")
    return child
