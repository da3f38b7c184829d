"""Which stored records a version needs: all, or those that another version does not have.

They come in the order of an import: chunks and file records by their offsets in the log, then nodes, each
behind those that it names. Memory is bounded, except for the hashes of nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from svc.errors import CorruptRecord, InvalidInput
from svc.hashing import Hash
from svc.log.framing import verified_payload
from svc.objects.codecs import Codec, decompress
from svc.objects.key_index import Place
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT, PendingObjects, TreeStore
from svc.paths import Path
from svc.tree import (
    Entry,
    EntryKind,
    Inner,
    Leaf,
    Node,
    NodeReader,
    WorkingTree,
    decode_node,
    directory_entry,
    walk_nodes,
)
from svc_maintenance.transfer.comparison import (
    ChangeCounts,
    Differences,
    RecordingReader,
    compare_versions,
)
from svc_maintenance.transfer.copying import copy_records
from svc_maintenance.transfer.places import PlaceSet, without
from svc_maintenance.transfer.records import LARGEST_CONTENT

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["Selection"]

_LARGEST = {int(kind): size for kind, size in LARGEST_CONTENT.items()}
_NODE_PLACE = struct.Struct("<QI")
_PAUSE_EVERY = 256
_ROOT, _INSIDE, _DONE = range(3)
_EMPTY = (EMPTY_ROOT, EMPTY_SYSTEM_ROOT)


class Selection:
    """Gathers records: first roots are added, then the records are asked for. The caller closes it.

    ``directories`` counts those whose index is among the nodes, those of the roots too. ``new_nodes``, framed
    records of nodes that the database does not have, come last.
    """

    def __init__(self, database: Database, pause: Callable[[], None]) -> None:
        self._objects = database.objects
        self._pause = pause
        self._pending = PendingObjects()
        self._chunks, self._records = PlaceSet(), PlaceSet()
        self._base_chunks, self._base_records = PlaceSet(), PlaceSet()
        self._nodes = bytearray()
        self._seen: set[Hash] = set(_EMPTY)
        self._steps = 0
        self.directories = 0
        self.new_nodes: list[bytes] = []

    def add_version(self, root: Hash) -> None:
        """Takes everything that a root needs; a system root too, with the versions that its refs name."""
        self._take_tree(root, None)

    def add_version_without(self, root: Hash, left_out: Iterable[Path], time_ms: int) -> Entry:
        """Makes a version of another one without some paths, takes all that it needs, and returns its entry.

        Raises Conflict where the root itself would have to be left out.
        """
        store = TreeStore(self._objects, self._pending)
        tree = WorkingTree(store, root)
        for path in left_out:
            tree.remove(path)
        made = tree.write(time_ms)
        self._take_tree(made, None)
        return directory_entry(store, made, time_ms)

    def add_system_tree(self, chosen: Iterable[tuple[Path, Entry]]) -> Hash:
        """Makes a system tree of entries of the database, takes all that it needs, and returns its root."""
        tree = WorkingTree(TreeStore(self._objects, self._pending, system=True), EMPTY_SYSTEM_ROOT)
        newest = 0
        for count, (path, entry) in enumerate(chosen):
            tree.put(path, entry)
            newest = max(newest, entry.updated_ms)
            if count % _PAUSE_EVERY == 0:
                self._pause()
        root = tree.write(newest)
        self._take_tree(root, None)
        return root

    def add_difference(self, base: Hash, target: Hash, on_deleted: Callable[[Path], None]) -> ChangeCounts:
        """Takes what the target needs and the base does not have.

        What the base holds at a place that did not change may be taken again, where content was copied.
        """
        reader = RecordingReader(self._objects, self._pause)
        gathering = _Gathering(self, on_deleted)
        counts = compare_versions(reader, base, target, gathering)
        self._seen |= gathering.in_base
        if base != target:
            self._take_tree(target, _Changed(reader.opened, gathering.added))
        return counts

    def pieces(self) -> Iterator[bytes]:
        """Yields the records as they are stored, each verified against its checksums."""
        for places in (self.chunks(), self.records(), self.nodes()):
            yield from copy_records(self._objects.log, places)
        yield from self.new_nodes

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yields (offset, stored length) of the chunks, as they lie in the log."""
        return without(self._chunks, self._base_chunks)

    def records(self) -> Iterator[tuple[int, int]]:
        """Yields (offset, stored length) of the file records, as they lie in the log."""
        return without(self._records, self._base_records)

    def nodes(self) -> Iterator[tuple[int, int]]:
        """Yields (offset, stored length) of the stored nodes, each behind those that it names."""
        return _NODE_PLACE.iter_unpack(bytes(self._nodes))

    def close(self) -> None:
        """Gives temporary files back."""
        for places in (self._chunks, self._records, self._base_chunks, self._base_records):
            places.close()

    def take_content(self, named: Hash, is_record: bool, *, base: bool = False) -> None:
        """Takes a file's record with its chunks, or its only chunk; or notes that the base has them."""
        chunks, records = (self._base_chunks, self._base_records) if base else (self._chunks, self._records)
        if not is_record:
            self._add(chunks, named)
            return
        self._add(records, named)
        for chunk in self._objects.read_record(named).chunks:
            self._add(chunks, chunk)

    def _add(self, places: PlaceSet, hash: Hash) -> None:
        place = self._place(hash)
        places.add(place.offset, place.stored_length)

    def _place(self, hash: Hash) -> Place:
        place = self._objects.index.find(hash)
        if place is None:
            raise CorruptRecord("An object that another one names is missing.", hash=hash.hex())
        limit = _LARGEST.get(place.kind, 0)
        if place.raw_length > limit:
            raise InvalidInput(
                f"A file cannot be exported: the list of its chunks has more than {limit} bytes.",
                limit=limit,
            )
        self._steps += 1
        if self._steps % _PAUSE_EVERY == 0:
            self._pause()
        return place

    def _node(self, hash: Hash) -> Node:
        pending = self._pending.records.get(hash)
        if pending is None:
            return self._objects.read_node(hash)
        framed, place = pending
        return decode_node(_content(framed, place))

    def _take_tree(self, root: Hash, changed: _Changed | None) -> None:
        """Takes nodes depth first, each behind those that it names, and what their files hold."""
        stack: list[tuple[Hash, bool, int]] = [(root, changed is None, _ROOT)]
        while stack:
            hash, whole, state = stack.pop()
            if state == _DONE:
                self._add_node(hash)
                continue
            if hash in self._seen or not (whole or (changed is not None and hash in changed.opened)):
                continue
            self._seen.add(hash)
            self.directories += state == _ROOT
            stack.append((hash, whole, _DONE))
            node = self._node(hash)
            if isinstance(node, Inner):
                stack.extend([(child, whole, _INSIDE) for child in reversed(node.children())])
                continue
            if whole:
                for named, is_record in node.contents():
                    self.take_content(named, is_record)
            for _, below in reversed(node.directories()):
                stack.append((below, whole or (changed is not None and below in changed.added), _ROOT))

    def _add_node(self, hash: Hash) -> None:
        pending = self._pending.records.get(hash)
        if pending is not None:
            self.new_nodes.append(pending[0])
            return
        place = self._place(hash)
        self._nodes += _NODE_PLACE.pack(place.offset, place.stored_length)


class _Changed:
    """Where the target has something new: in nodes of directories that differ, and below added roots."""

    __slots__ = ("added", "opened")

    def __init__(self, opened: set[Hash], added: set[Hash]) -> None:
        self.opened = opened
        self.added = added


class _Gathering(Differences):
    def __init__(self, selection: Selection, on_deleted: Callable[[Path], None]) -> None:
        self._selection = selection
        self._on_deleted = on_deleted
        self.added: set[Hash] = set()
        self.in_base: set[Hash] = set()

    def directory(self, before: Hash, after: Hash) -> None:
        pass

    def added_directory(self, root: Hash) -> None:
        self.added.add(root)

    def removed_directory(self, root: Hash) -> None:
        store: NodeReader = self._selection._objects
        for hash, node in walk_nodes(store, root, self._is_known):
            self.in_base.add(hash)
            if isinstance(node, Leaf):
                for named, is_record in node.contents():
                    self._selection.take_content(named, is_record, base=True)

    def entry(self, before: Entry | None, after: Entry | None) -> None:
        for one, base in ((before, True), (after, False)):
            if one is not None and one.kind is EntryKind.FILE and one.size:
                named = one.record if one.record is not None else one.hash
                self._selection.take_content(named, one.record is not None, base=base)

    def deleted(self, path: Path) -> None:
        self._on_deleted(path)

    def _is_known(self, hash: Hash) -> bool:
        return hash in self.in_base


def _content(framed: bytes, place: Place) -> bytes:
    stored = verified_payload(framed, 0, place.stored_length)
    return stored if place.codec == Codec.RAW else decompress(place.codec, stored, place.raw_length)
