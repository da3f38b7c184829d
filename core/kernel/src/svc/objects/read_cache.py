"""Bounded caches of reads: decoded nodes, names, differences, offsets of small contents.

The keys are hashes, which always name the same content, so entries never become stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from svc.hashing import Hash
from svc.metrics import Level
from svc.paths import MAXIMUM_SEGMENT_BYTES
from svc.tree import Entry, Node

__all__ = ["CACHE_BYTES", "MOST_DIFFERENCES", "Difference", "ReadCache"]

Difference: TypeAlias = tuple[str, Entry | None, Entry | None]
"""A name that two directories do not have alike, and what stands there on either side."""

CACHE_BYTES = 64 * 1024 * 1024
"""What a cache takes when it is full, about."""

KEPT_NODES = Level("svc_cached_nodes", "Decoded nodes of directories that processes keep.")

_NODE_BYTES, _ROW_BYTES = 1024, 144
_NAME_AND_OFFSET_BYTES = 512
_GENERATIONS = 4
MOST_DIFFERENCES = 64
"""What differs in more names than that is not kept."""
_MOST_DIFFERENCES_KEPT = 4096
_MOST_CUT = 16384


class ReadCache:
    """Plain dicts that readers look into themselves: a hit costs a dict read or two and takes no lock.

    Nodes are young or old. Whenever as many were read as take a quarter of the room, those that were used
    since the last time become the old ones, as far as there is room, and the others are dropped. Who finds a
    node among the old ones brings it back. So what is read once passes through quickly, what is read again
    and again stays. The rest is cheap to find again: when there is too much of a kind, all of that is
    forgotten. Threads may race harmlessly: at worst something is looked up twice.

    Attributes:
        entries: by the root of a directory and a name: what stands there, None where nothing does.
        offsets: where in the log the records of chunks lie that are stored raw.
        differences: by two roots: what differs. Views come to the same commits one after the other.
        cut: file records whose chunks this process has cut itself. Others state what somebody else says: an
            import looks at what chunks hold, and not at where they end.
    """

    def __init__(
        self,
        node_bytes: int = CACHE_BYTES * 3 // 4,
        names: int = CACHE_BYTES // 4 // _NAME_AND_OFFSET_BYTES,
        offsets: int = CACHE_BYTES // 4 // _NAME_AND_OFFSET_BYTES,
    ) -> None:
        self._node_limit = node_bytes
        self._name_limit = names
        self._offset_limit = offsets
        self.nodes: dict[Hash, Node] = {}
        self.entries: dict[Hash, dict[str, Entry | None]] = {}
        self.offsets: dict[Hash, int] = {}
        self.cut: set[Hash] = set()
        self.differences: dict[tuple[Hash, Hash], Sequence[Difference]] = {}
        self._old_nodes: dict[Hash, Node] = {}
        self._new_size = self._counted = 0
        self._name_count = 0
        self._difference_count = 0

    def limit(self, memory_bytes: int) -> None:
        """Lets all that is kept take about so much memory: three quarters of it for nodes."""
        self._node_limit = memory_bytes * 3 // 4
        self._name_limit = self._offset_limit = memory_bytes // 4 // _NAME_AND_OFFSET_BYTES

    def old_node(self, hash: Hash) -> Node | None:
        """Returns an old node, which is young again then; or None."""
        node = self._old_nodes.get(hash)
        if node is not None:
            self.nodes[hash] = node
        return node

    def put_node(self, hash: Hash, node: Node) -> None:
        """Keeps a node that is new here."""
        self.nodes[hash] = node
        self._new_size += _memory_of(node)
        self._count_nodes()
        if self._new_size > self._node_limit // _GENERATIONS:
            self._begin_generation()

    def put_nodes(self, nodes: Mapping[Hash, Node]) -> None:
        """Keeps many nodes that are new here."""
        total = sum(map(_memory_of, nodes.values()))
        if self._new_size + total <= self._node_limit // _GENERATIONS:
            self.nodes.update(nodes)
            self._new_size += total
            self._count_nodes()
        else:
            for hash, node in nodes.items():
                self.put_node(hash, node)

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

    def put_differences(self, left: Hash, right: Hash, found: Sequence[Difference]) -> None:
        """Keeps what differs between two directories: few names."""
        if self._difference_count >= _MOST_DIFFERENCES_KEPT:
            self.differences.clear()
            self._difference_count = 0
        self.differences[left, right] = found
        self._difference_count += 1 + len(found)

    def put_cut(self, record: Hash) -> None:
        """Notes a file record whose chunks this process has cut."""
        if len(self.cut) >= _MOST_CUT:
            self.cut.clear()
        self.cut.add(record)

    def clear(self) -> None:
        """Forgets everything."""
        self.cut.clear()
        self.differences.clear()
        self.nodes.clear()
        self.entries.clear()
        self.offsets.clear()
        self._old_nodes = {}
        self._new_size = self._name_count = self._difference_count = 0
        self._count_nodes()

    def _count_nodes(self) -> None:
        count = len(self.nodes) + len(self._old_nodes)
        KEPT_NODES.add(count - self._counted)
        self._counted = count

    def _begin_generation(self) -> None:
        # First of all: what follows takes milliseconds, in which other threads put nodes.
        self._new_size = 0
        young = self.nodes.copy()
        self.nodes.clear()
        self._old_nodes = _latest(young, self._node_limit - self._node_limit // _GENERATIONS)
        self._count_nodes()


def _latest(nodes: dict[Hash, Node], limit: int) -> dict[Hash, Node]:
    kept: dict[Hash, Node] = {}
    for hash, node in reversed(nodes.items()):
        limit -= _memory_of(node)
        if limit < 0:
            break
        kept[hash] = node
    return kept


def _memory_of(node: Node) -> int:
    """Bytes of memory that a decoded node takes, about: twice to five times its payload."""
    names = node.names
    if not names:
        return _NODE_BYTES
    # The first and the last name stand for all: to look at each would cost some microseconds a node.
    return _NODE_BYTES + len(names) * (_ROW_BYTES + (len(names[0]) + len(names[-1])) // 2)
