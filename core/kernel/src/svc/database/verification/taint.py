"""Which directories lead to damage: every node is read once, and only the ways to damage are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from svc.errors import SvcError
from svc.hashing import Hash
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT, ObjectStore
from svc.tree import Entry, EntryKind, Inner, Leaf, Node

__all__ = ["DamagedThing", "Place", "Taint"]

CHUNK_DAMAGED = "A chunk of the file is damaged."
CHUNK_MISSING = "A chunk of the file is missing."
RECORD_DAMAGED = "A file record cannot be read: it is damaged."
RECORD_MISSING = "A file record cannot be read: it is missing."
NODE_DAMAGED = "A directory cannot be read: a node of it is damaged."
NODE_MISSING = "A directory cannot be read: a node of it is missing."


class DamagedThing(NamedTuple):
    """An object that can't be read, as the tree meets it.

    Attributes:
        hash: its identity.
        message: what is wrong, a sentence.
    """

    hash: Hash
    message: str


@dataclass(frozen=True, slots=True)
class Place:
    """What an entry of a directory leads to.

    Attributes:
        things: what is damaged of the entry itself.
        below: root of the directory that it is, where damage lies in that; else None.
    """

    things: tuple[DamagedThing, ...] = ()
    below: Hash | None = None


@dataclass(frozen=True, slots=True)
class _Node:
    """Of a node that leads to damage, what does: names with their places, nodes below it, or itself."""

    named: Mapping[str, Place]
    children: tuple[Hash, ...] = ()
    itself: DamagedThing | None = None


class Taint:
    """Follows roots and remembers what leads to damage.

    Args:
        objects: the database's objects.
        is_damaged: whether an object that the log holds is damaged.
        told: called once in a while, with the number of nodes that were read.

    Attributes:
        objects_seen: how many different objects the roots need.
    """

    def __init__(
        self,
        objects: ObjectStore,
        is_damaged: Callable[[Hash], bool],
        told: Callable[[int], None] | None = None,
    ) -> None:
        self._objects = objects
        self._is_damaged = is_damaged
        self._told = told
        self._clean: set[Hash] = {EMPTY_ROOT, EMPTY_SYSTEM_ROOT}
        self._nodes: dict[Hash, _Node] = {}
        self._things: dict[Hash, tuple[DamagedThing, ...]] = {}
        self._nodes_read = 0

    @property
    def objects_seen(self) -> int:
        """How many different objects the roots need."""
        return len(self._clean) - 2 + len(self._nodes) + len(self._things)

    @property
    def damaged(self) -> set[Hash]:
        """Identities of all that is damaged or missing and that a root leads to."""
        found = {one.hash for things in self._things.values() for one in things}
        return found | {node.itself.hash for node in self._nodes.values() if node.itself is not None}

    def is_tainted(self, root: Hash) -> bool:
        """Whether a root that was followed leads to damage."""
        return root in self._nodes

    def follow(self, root: Hash) -> bool:
        """Reads the nodes below a root that were not read yet; returns whether damage is among them."""
        stack: list[tuple[Hash, Node | None]] = [(root, None)]
        while stack:
            hash, opened = stack.pop()
            if opened is not None:
                self._close(hash, opened)
                continue
            if hash in self._clean or hash in self._nodes:
                continue
            node = self._read(hash)
            if node is None:
                continue
            below = node.children() if isinstance(node, Inner) else [child for _, child in node.directories()]
            new = [child for child in below if child not in self._clean and child not in self._nodes]
            if new:
                stack.append((hash, node))
                stack += [(child, None) for child in new]
            else:
                self._close(hash, node)
        return root in self._nodes

    def places(self, root: Hash) -> dict[str, Place]:
        """Returns a directory's entries that lead to damage; its own nodes stand under the empty name."""
        found: dict[str, Place] = {}
        own: list[DamagedThing] = []
        stack = [root]
        while stack:
            node = self._nodes.get(stack.pop())
            if node is None:
                continue
            if node.itself is not None:
                own.append(node.itself)
            found.update(node.named)
            stack += node.children
        if own:
            found[""] = Place(tuple(own))
        return found

    def _read(self, hash: Hash) -> Node | None:
        """Returns a node that can be read; takes note of one that cannot."""
        self._nodes_read += 1
        if self._told is not None and self._nodes_read % 4096 == 0:
            self._told(self._nodes_read)
        place = self._objects.index.find(hash)
        if place is None:
            thing = DamagedThing(hash, NODE_MISSING)
        elif self._is_damaged(hash):
            thing = DamagedThing(hash, NODE_DAMAGED)
        else:
            try:
                return self._objects.read_node(hash)
            except SvcError as error:
                thing = DamagedThing(hash, f"A directory cannot be read: {error.message}")
        self._nodes[hash] = _Node({}, (), thing)
        return None

    def _close(self, hash: Hash, node: Node) -> None:
        """Takes note of a node whose children are all known."""
        if isinstance(node, Inner):
            children = tuple(child for child in node.children() if child in self._nodes)
            if children:
                self._nodes[hash] = _Node({}, children)
            else:
                self._clean.add(hash)
            return
        named: dict[str, Place] = {
            name: Place(below=below) for name, below in node.directories() if below in self._nodes
        }
        if not self._are_well(node):
            for name, entry in node.items():
                things = self._things_of(entry) if entry.kind is EntryKind.FILE and entry.size else ()
                if things:
                    named[name] = Place(things)
        if named:
            self._nodes[hash] = _Node(named)
        else:
            self._clean.add(hash)

    def _are_well(self, leaf: Leaf) -> bool:
        """Looks at all contents of a leaf at once: nearly always none of them is damaged."""
        clean = self._clean
        is_well = True
        chunks: list[Hash] = []
        for hash, is_record in leaf.contents():
            if hash in clean:
                continue
            if hash in self._things:
                is_well = False
            elif is_record:
                is_well &= not self._of_record(hash)
            else:
                chunks.append(hash)
        return not self._missing_of(chunks) and is_well

    def _things_of(self, entry: Entry) -> tuple[DamagedThing, ...]:
        return self._things.get(entry.record or entry.hash, ())

    def _of_record(self, record: Hash) -> tuple[DamagedThing, ...]:
        """What is damaged of a file that has a record; each record is read once."""
        if self._objects.index.find(record) is None:
            things: tuple[DamagedThing, ...] = (DamagedThing(record, RECORD_MISSING),)
        elif self._is_damaged(record):
            things = (DamagedThing(record, RECORD_DAMAGED),)
        else:
            try:
                chunks = dict.fromkeys(self._objects.read_record(record).chunks)
            except SvcError as error:
                things = (DamagedThing(record, f"A file record cannot be read: {error.message}"),)
            else:
                self._missing_of([one for one in chunks if one not in self._clean])
                things = tuple(thing for chunk in chunks for thing in self._things.get(chunk, ()))
        if things:
            self._things[record] = things
        else:
            self._clean.add(record)
        return things

    def _missing_of(self, chunks: list[Hash]) -> bool:
        """Takes note of chunks; returns whether one of them can't be read."""
        if not chunks:
            return False
        known = self._objects.index.placed(chunks)
        is_bad = False
        for chunk in chunks:
            if chunk not in known:
                self._things[chunk] = (DamagedThing(chunk, CHUNK_MISSING),)
            elif self._is_damaged(chunk):
                self._things[chunk] = (DamagedThing(chunk, CHUNK_DAMAGED),)
            else:
                self._clean.add(chunk)
                continue
            is_bad = True
        return is_bad
