"""A store of tree nodes in memory: for tests of anything that works on trees."""

from __future__ import annotations

from collections.abc import Mapping

from svc.errors import CorruptRecord
from svc.hashing import Hash, ObjectKind, hash_object
from svc.paths import Path
from svc.tree import Entry, Node, NodeStore, build, decode_node, directory_entry, empty_payload

__all__ = ["MemoryNodeStore", "build_tree"]


class MemoryNodeStore:
    """Keeps payloads and decoded nodes in dictionaries: a ``NodeStore``, with the empty directory in it.

    ``system``: nodes are hashed as those of the system tree. ``reads`` and ``writes`` count how many times a
    node was asked for, and written, also when it was there already.
    """

    def __init__(self, *, system: bool = False) -> None:
        self.payloads: dict[Hash, bytes] = {}
        self.reads = 0
        self.writes = 0
        self._system = system
        self._nodes: dict[Hash, Node] = {}
        self.write_node(empty_payload())
        self.writes = 0

    def read_node(self, node_hash: Hash, /) -> Node:
        """Returns the node of that hash; CorruptRecord where nothing, or not a node, is stored under it."""
        self.reads += 1
        node = self._nodes.get(node_hash)
        if node is None:
            payload = self.payloads.get(node_hash)
            if payload is None:
                raise CorruptRecord("A directory node is missing.", hash=node_hash.hex())
            node = self._nodes[node_hash] = decode_node(payload)
        return node

    def write_node(self, payload: bytes, node: Node | None = None, /) -> Hash:
        """Keeps a node's payload and returns its hash; insists that ``node`` is what the payload says."""
        if node is not None:
            decoded = decode_node(payload)
            assert (decoded.level, decoded.columns) == (node.level, node.columns)
        self.writes += 1
        node_hash = hash_object(ObjectKind.NODE, payload, self._system)
        self.payloads[node_hash] = payload
        return node_hash


def build_tree(store: NodeStore, contents: Mapping[Path, Entry]) -> Hash:
    """Makes a whole tree of files, links and empty directories, each directory in one go; returns its root.

    The directories above them follow.
    """
    own: dict[str, Entry] = {}
    below: dict[str, dict[Path, Entry]] = {}
    for path, entry in contents.items():
        if len(path) == 1:
            own[path[0]] = entry
        else:
            below.setdefault(path[0], {})[path[1:]] = entry
    for name, inside in below.items():
        own[name] = directory_entry(store, build_tree(store, inside), 0)
    return build(store, sorted(own.items()))
