"""A bounded cache of decoded directory nodes, by hash; what is in it can never go stale."""

from __future__ import annotations

from svc.hashing import Hash
from svc.tree import Node

__all__ = ["NodeCache"]


class NodeCache:
    """Two generations of a dict: a hit costs one or two dict reads and takes no lock.

    When the young generation is full it becomes the old one, and the old one is dropped; a hit in
    the old one brings the node back. Threads may race harmlessly: at worst a node is decoded twice.

    Args:
        limit: bytes of node payloads that one generation holds.
    """

    def __init__(self, limit: int = 8 * 1024 * 1024) -> None:
        self._limit = limit
        self._young: dict[Hash, Node] = {}
        self._old: dict[Hash, Node] = {}
        self._size = 0

    def get(self, hash: Hash) -> Node | None:
        """Returns the cached node, or None."""
        node = self._young.get(hash)
        if node is None:
            node = self._old.get(hash)
            if node is not None:
                self._young[hash] = node
        return node

    def put(self, hash: Hash, node: Node, size: int) -> None:
        """Keeps a node; ``size`` is its payload's length in bytes."""
        self._young[hash] = node
        self._size += size
        if self._size > self._limit:
            self._old = self._young
            self._young = {}
            self._size = 0

    def clear(self) -> None:
        """Forgets everything."""
        self._young = {}
        self._old = {}
        self._size = 0
