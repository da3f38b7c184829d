"""What reading has learned, bounded: decoded nodes, what stands under names, where small contents lie.

All of it is kept by hashes, which name one content for ever, so what is in it can never go stale.
"""

from __future__ import annotations

from collections.abc import Mapping

from svc.hashing import Hash
from svc.paths import MAXIMUM_SEGMENT_BYTES
from svc.tree import Entry, Node

__all__ = ["ReadCache"]


class ReadCache:
    """Plain dicts that readers look into themselves: a hit costs a dict read or two and takes no lock.

    Nodes are kept in two generations: when the young one is full it becomes the old one, and the old one
    is dropped; who finds a node in the old one brings it back. Names and offsets are cheap to find
    again: when there are too many, all of them are forgotten. Threads may race harmlessly: at worst
    something is looked up twice.

    Args:
        node_bytes: bytes of node payloads that one generation holds.
        names: number of names that are kept; a directory counts as one more.
        offsets: number of offsets that are kept.

    Attributes:
        nodes: the young nodes, by their hashes.
        entries: by the root of a directory and a name: what stands there, None where nothing does.
        offsets: where in the log the records of chunks lie that are stored raw.
    """

    def __init__(
        self, node_bytes: int = 8 * 1024 * 1024, names: int = 32 * 1024, offsets: int = 32 * 1024
    ) -> None:
        self._node_limit = node_bytes
        self._name_limit = names
        self._offset_limit = offsets
        self.nodes: dict[Hash, Node] = {}
        self.entries: dict[Hash, dict[str, Entry | None]] = {}
        self.offsets: dict[Hash, int] = {}
        self._old_nodes: dict[Hash, Node] = {}
        self._node_size = 0
        self._name_count = 0

    def old_node(self, hash: Hash) -> Node | None:
        """Returns a node of the old generation, which is young again then; or None."""
        node = self._old_nodes.get(hash)
        if node is not None:
            self.nodes[hash] = node
        return node

    def put_node(self, hash: Hash, node: Node, size: int) -> None:
        """Keeps a node; ``size`` is its payload's length in bytes."""
        self.nodes[hash] = node
        self._node_size += size
        if self._node_size > self._node_limit:
            self._old_nodes = self.nodes.copy()
            self.nodes.clear()
            self._node_size = 0

    def put_nodes(self, nodes: Mapping[Hash, Node], size: int) -> None:
        """Keeps many nodes; ``size`` is what each of their payloads counts."""
        total = size * len(nodes)
        if self._node_size + total <= self._node_limit:
            self.nodes.update(nodes)
            self._node_size += total
        else:
            for hash, node in nodes.items():
                self.put_node(hash, node, size)

    def put_entry(self, root: Hash, name: str, entry: Entry | None) -> None:
        """Keeps what stands under a name of a directory, or that nothing does."""
        if entry is None and len(name) > MAXIMUM_SEGMENT_BYTES:
            return
        if self._name_count >= self._name_limit:
            self.entries.clear()
            self._name_count = 0
        names = self.entries.get(root)
        if names is None:
            names = self.entries[root] = {}
            self._name_count += 1
        names[name] = entry
        self._name_count += 1

    def put_offset(self, hash: Hash, offset: int) -> None:
        """Keeps where the record of a chunk lies."""
        if len(self.offsets) >= self._offset_limit:
            self.offsets.clear()
        self.offsets[hash] = offset

    def clear(self) -> None:
        """Forgets everything."""
        self.nodes.clear()
        self.entries.clear()
        self.offsets.clear()
        self._old_nodes = {}
        self._node_size = self._name_count = 0
