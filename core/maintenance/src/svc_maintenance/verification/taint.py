"""Which directories lead to damage: every node is read once, and only the ways to damage are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from pyroaring import BitMap64

from svc.errors import SvcError
from svc.hashing import Hash
from svc.objects.key_index import Place as PlaceInLog
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT, ObjectStore
from svc.tree import Entry, EntryKind, Inner, Leaf, Node

__all__ = ["DamagedThing", "Place", "Taint"]

CHUNK_DAMAGED = "A chunk of the file is damaged."
CHUNK_MISSING = "A chunk of the file is missing."
CHUNK_MISPLACED = (
    "A chunk of the file can't be found: the key index is damaged. 'svc verify --repair' makes it anew."
)
RECORD_DAMAGED = "A file record cannot be read: it is damaged."
RECORD_MISSING = "A file record cannot be read: it is missing."
NODE_DAMAGED = "A directory cannot be read: a node of it is damaged."
NODE_MISSING = "A directory cannot be read: a node of it is missing."
_EMPTY = (EMPTY_ROOT, EMPTY_SYSTEM_ROOT)


class DamagedThing(NamedTuple):
    """An object that can't be read, as the tree meets it."""

    hash: Hash
    message: str


class Place(Struct, frozen=True):
    """What an entry of a directory leads to: its own damage, or the root of a directory with damage."""

    things: tuple[DamagedThing, ...] = ()
    below: Hash | None = None


class _Node(Struct, frozen=True):
    """Of a node that leads to damage, what does: names with their places, nodes below it, or itself."""

    named: Mapping[str, Place]
    children: tuple[Hash, ...] = ()
    itself: DamagedThing | None = None


class Taint:
    """Follows roots and remembers what leads to damage; of what is whole only the place, in a bitmap."""

    def __init__(
        self,
        objects: ObjectStore,
        is_damaged: Callable[[int], bool],
        pace: Callable[[int], None] | None = None,
    ) -> None:
        self._objects = objects
        self._is_damaged = is_damaged
        self._pace = pace
        self._distrusted: set[Hash] = set()
        self._clean = BitMap64()
        self._nodes: dict[Hash, _Node] = {}
        self._things: dict[Hash, tuple[DamagedThing, ...]] = {}

    def distrust(self, objects: set[Hash]) -> None:
        """Looks at some objects themselves, also where another object with the same place was whole."""
        self._distrusted = objects

    @property
    def objects_seen(self) -> int:
        """How many different objects the roots need."""
        return len(self._clean) + len(self._nodes) + len(self._things)

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
        stack: list[tuple[Hash, PlaceInLog | None, Node | None]] = [
            (hash, place, None) for hash, place in self._new_of([root])
        ]
        while stack:
            hash, place, opened = stack.pop()
            if opened is not None and place is not None:
                self._close(hash, place, opened)
                continue
            if self._is_known(hash, place):
                continue
            node = self._read(hash, place)
            if node is None or place is None:
                continue
            new = self._new_of(_below(node))
            if new:
                stack.append((hash, place, node))
                stack += [(below, at, None) for below, at in new]
            else:
                self._close(hash, place, node)
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

    def _is_known(self, hash: Hash, place: PlaceInLog | None) -> bool:
        return hash in self._nodes or self._is_clean(hash, place)

    def _is_clean(self, hash: Hash, place: PlaceInLog | None) -> bool:
        return place is not None and place.offset >> 3 in self._clean and hash not in self._distrusted

    def _new_of(self, hashes: Iterable[Hash]) -> list[tuple[Hash, PlaceInLog | None]]:
        """Returns those of some nodes that were not read yet, each with its place if it has one."""
        wanted = [hash for hash in hashes if hash not in self._nodes and hash not in _EMPTY]
        found: dict[Hash, PlaceInLog | None] = dict(self._objects.index.locate(wanted))
        return [
            (hash, found.get(hash))
            for hash in dict.fromkeys(wanted)
            if not self._is_known(hash, found.get(hash))
        ]

    def _read(self, hash: Hash, place: PlaceInLog | None) -> Node | None:
        """Returns a node that can be read; takes note of one that cannot."""
        if place is None:
            thing = DamagedThing(hash, NODE_MISSING)
        elif self._is_damaged(place.offset):
            thing = DamagedThing(hash, NODE_DAMAGED)
        else:
            self._note_read(place)
            try:
                return self._objects.read_node(hash)
            except SvcError as error:
                thing = DamagedThing(hash, f"A directory cannot be read: {error.message}")
        self._nodes[hash] = _Node({}, (), thing)
        return None

    def _note_read(self, place: PlaceInLog) -> None:
        if self._pace is not None:
            self._pace(place.stored_length)

    def _close(self, hash: Hash, place: PlaceInLog, node: Node) -> None:
        if isinstance(node, Inner):
            children = tuple(child for child in node.children() if child in self._nodes)
            found = _Node({}, children)
        else:
            named: dict[str, Place] = {
                name: Place(below=below) for name, below in node.directories() if below in self._nodes
            }
            if not self._are_well(node):
                for name, entry in node.items():
                    things = self._things_of(entry) if entry.kind is EntryKind.FILE and entry.size else ()
                    if things:
                        named[name] = Place(things)
            found = _Node(named)
        if found.named or found.children:
            self._nodes[hash] = found
        else:
            self._clean.add(place.offset >> 3)

    def _are_well(self, leaf: Leaf) -> bool:
        """Looks at all contents of a leaf at once: nearly always none of them is damaged."""
        contents = leaf.contents()
        located: dict[Hash, PlaceInLog | None] = dict(
            self._objects.index.locate([hash for hash, _ in contents])
        )
        is_well = True
        for hash, is_record in contents:
            place = located.get(hash)
            if hash in self._things:
                is_well = False
            elif not self._is_clean(hash, place):
                is_well &= (
                    self._is_record_well(hash, place) if is_record else self._is_chunk_well(hash, place)
                )
        return is_well

    def _things_of(self, entry: Entry) -> tuple[DamagedThing, ...]:
        return self._things.get(entry.record or entry.hash, ())

    def _is_record_well(self, record: Hash, place: PlaceInLog | None) -> bool:
        things: tuple[DamagedThing, ...]
        if place is None:
            things = (DamagedThing(record, RECORD_MISSING),)
        elif self._is_damaged(place.offset):
            things = (DamagedThing(record, RECORD_DAMAGED),)
        else:
            self._note_read(place)
            try:
                chunks = list(dict.fromkeys(self._objects.read_record(record).chunks))
            except SvcError as error:
                things = (DamagedThing(record, f"A file record cannot be read: {error.message}"),)
            else:
                located: dict[Hash, PlaceInLog | None] = dict(self._objects.index.locate(chunks))
                bad = [
                    one
                    for one in chunks
                    if one in self._things or not self._is_chunk_well(one, located.get(one))
                ]
                things = tuple(thing for chunk in bad for thing in self._things[chunk])
        if things or place is None:
            self._things[record] = things
        else:
            self._clean.add(place.offset >> 3)
        return not things

    def _is_chunk_well(self, chunk: Hash, place: PlaceInLog | None) -> bool:
        if place is None:
            self._things[chunk] = (DamagedThing(chunk, CHUNK_MISSING),)
        elif self._is_damaged(place.offset):
            self._things[chunk] = (DamagedThing(chunk, CHUNK_DAMAGED),)
        elif not self._objects.stands_at(chunk, place):
            # The check of the log does not ask the index.
            self._things[chunk] = (DamagedThing(chunk, CHUNK_MISPLACED),)
        else:
            self._clean.add(place.offset >> 3)
            return True
        return False


def _below(node: Node) -> list[Hash]:
    return node.children() if isinstance(node, Inner) else [child for _, child in node.directories()]
