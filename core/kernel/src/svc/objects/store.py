"""The object store: hashes to verified bytes, and bytes to records that wait for a commit.

Reading looks a hash up in the key index and reads the log once. What is written waits in ``PendingObjects``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import lmdb
from msgspec import Struct, field

from svc.clock import now_ms
from svc.errors import CorruptRecord, NotFound, SvcError, TruncatedFile
from svc.hashing import Hash, ObjectKind, hash_object
from svc.log import RECORD_HEADER_SIZE, Log, encode_record
from svc.log.framing import decode_header
from svc.metrics import Counter
from svc.objects.codecs import MINIMUM_COMPRESSED_SIZE, Codec, compress, decompress
from svc.objects.file_record import FileRecord
from svc.objects.key_index import KeyIndex, PackedPlace, Place, place_of
from svc.objects.read_cache import MOST_DIFFERENCES, Difference, ReadCache
from svc.paths import Path
from svc.tree import Entry, EntryKind, Node, decode_node, differences, empty_payload, lookup, resolve

__all__ = ["ObjectStore", "PendingObjects", "TreeStore", "encode_object"]

EMPTY_ROOT = hash_object(ObjectKind.NODE, empty_payload())
"""Identity of the empty directory of the user tree; it is known without being stored."""

EMPTY_SYSTEM_ROOT = hash_object(ObjectKind.NODE, empty_payload(), system=True)

_EMPTY_ROOTS = (EMPTY_ROOT, EMPTY_SYSTEM_ROOT)
_RAW, _CHUNK, _NODE = int(Codec.RAW), int(ObjectKind.CHUNK), int(ObjectKind.NODE)
_OF_NODES = ObjectKind.NODE  # a member is read through its class for ten times the price
_NO_DIRECTORY = b""
_UNKNOWN = Entry(EntryKind.FILE, b"", 0, 0, 0)
"""Stands for an answer that the cache does not have; None is one."""


OFFERED_CHUNKS = Counter("svc_chunks_offered", "Chunks of contents that were to be stored.")
STORED_CHUNKS = Counter("svc_chunks_stored", "Chunks of them that were new, and became part of the log.")


class PendingObjects(Struct):
    """Objects on their way into the log; ``records`` are not yet appended, and ``size`` is their bytes.

    ``placed`` were appended ahead of the commit; none was known in the index's state ``unknown_in``, if any.
    """

    records: dict[Hash, tuple[bytes, Place]] = field(default_factory=dict)
    placed: dict[Hash, PackedPlace] = field(default_factory=dict)
    size: int = 0
    unknown_in: object = None

    def add(self, hash: Hash, framed: bytes, place: Place) -> None:
        """Adds a record unless the hash is pending already."""
        if hash not in self.records and hash not in self.placed:
            self.records[hash] = (framed, place)
            self.size += len(framed)

    def absorb(self, other: PendingObjects) -> None:
        """Takes over everything of another set."""
        if self.records or self.placed:
            for hash, (framed, place) in other.records.items():
                self.add(hash, framed, place)
        else:
            self.records.update(other.records)
            self.size = other.size
        if other.placed:
            self.place(other.placed, other.unknown_in)

    def place(self, placed: Mapping[Hash, PackedPlace], unknown_in: object = None) -> None:
        """Takes over what was appended ahead, none of which was known in a state of the index."""
        if not self.placed:
            self.unknown_in = unknown_in
        elif self.unknown_in != unknown_in:
            self.unknown_in = None
        self.placed.update(placed)

    def __contains__(self, hash: Hash) -> bool:
        return hash in self.records or hash in self.placed


class ObjectStore:
    """Reads objects by hash. ``explain_missing`` may say why an object is missing that another one names."""

    def __init__(self, log: Log, index: KeyIndex, cache: ReadCache | None = None) -> None:
        self.log = log
        self.index = index
        self.cache = cache if cache is not None else ReadCache()
        self.explain_missing: Callable[[Hash], str | None] = _unexplained
        self._nodes = self.cache.nodes
        self._entries = self.cache.entries
        self._offsets = self.cache.offsets
        empty = decode_node(empty_payload())
        self._empty_nodes = {EMPTY_ROOT: empty, EMPTY_SYSTEM_ROOT: empty}

    def find(self, hash: Hash) -> Place:
        """Returns where an object lies; raises NotFound."""
        place = self.index.find(hash)
        if place is None:
            raise NotFound(f"No object has the hash {hash.hex()}.")
        return place

    def holds(self, entry: Entry) -> bool:
        """Whether what an entry names is stored: its file record, its only chunk, or its root node."""
        if entry.kind is EntryKind.SYMLINK or (entry.kind is EntryKind.FILE and entry.size == 0):
            return True
        named = entry.record or entry.hash
        return named in self._empty_nodes or self.index.contains(named)

    def known(self, hashes: Iterable[Hash]) -> set[Hash]:
        """Returns which of some objects are stored."""
        return self.index.known(hashes)

    def read(self, hash: Hash, kind: ObjectKind | None = None) -> bytes:
        """Returns an object's content, its record's checksums verified, or raises CorruptRecord.

        A ``kind`` of None takes any; NotFound is raised for one of another kind too.
        """
        place = self.find(hash)
        if kind is not None and place.kind != kind:
            raise NotFound(f"No {kind.name.lower().replace('_', ' ')} has the hash {hash.hex()}.")
        return self.read_at(hash, place)

    def read_at(self, hash: Hash, place: Place) -> bytes:
        """As ``read``, for an object whose place is known."""
        try:
            stored = self.log.read_payload(place.offset, place.stored_length, hash)
            return stored if place.codec == _RAW else decompress(place.codec, stored, place.raw_length)
        except CorruptRecord as error:
            error.details.setdefault("hash", hash.hex())
            error.details.setdefault("offset", place.offset)
            if not isinstance(error, TruncatedFile):
                self._note_damaged(hash)
            raise

    def stands_at(self, hash: Hash, place: Place) -> bool:
        """Whether the header of a record in the log says what the key index says of an object."""
        try:
            data = self.log.read_stretch(place.offset, place.offset + RECORD_HEADER_SIZE)
        except OverflowError:
            return False
        header = decode_header(data, offset=place.offset) if len(data) == RECORD_HEADER_SIZE else None
        return header is not None and (hash, *place[1:]) == (
            header.hash,
            header.stored_length,
            header.raw_length,
            header.kind,
            header.system,
            header.codec,
        )

    def read_node(self, hash: Hash) -> Node:
        """Returns a decoded directory node, from the cache when it is there."""
        node = self._nodes.get(hash)
        return node if node is not None else self._read_node(hash)

    def _read_node(self, hash: Hash) -> Node:
        node = self._empty_nodes.get(hash) or self.cache.old_node(hash)
        if node is None:
            payload = self._read_part(hash, ObjectKind.NODE)
            node = decode_node(payload)
            self.cache.put_node(hash, node)
        return node

    def resolve(self, root: Hash, path: Path) -> Entry | None:
        """As ``svc.tree.resolve``, from the cache where it is there."""
        if not path:
            return resolve(self, root, path)
        known = self._entries
        entry: Entry | None = None
        below = root
        for name in path:
            try:
                entry = known[below][name]
            except KeyError:
                entry = _UNKNOWN
            if entry is _UNKNOWN:
                if not below:
                    return None  # what stands above is no directory
                entry = lookup(self, below, name)
                self.cache.put_entry(below, name, entry)
            if entry is None:
                return None
            below = entry.hash if entry.totals is not None else _NO_DIRECTORY
        return entry

    def differences(self, left: Hash, right: Hash, *, after: str | None = None) -> Iterator[Difference]:
        """As ``svc.tree.differences``, from the cache when it is there."""
        if after is not None:
            return differences(self, left, right, after=after)
        known = self.cache.differences.get((left, right))
        return self._differences(left, right) if known is None else iter(known)

    def _differences(self, left: Hash, right: Hash) -> Iterator[Difference]:
        found: list[Difference] = []
        for one in differences(self, left, right):
            if len(found) <= MOST_DIFFERENCES:
                found.append(one)
            yield one
        if len(found) <= MOST_DIFFERENCES:
            self.cache.put_differences(left, right, found)

    def read_record(self, hash: Hash) -> FileRecord:
        """Returns a decoded file record."""
        return FileRecord.decode(self._read_part(hash, ObjectKind.FILE_RECORD))

    def read_chunk(self, hash: Hash, size: int) -> bytes:
        """Returns a file's chunk; raises CorruptRecord. Keeps where it lies: half of a small read's time."""
        offset = self._offsets.get(hash)
        if offset is not None:
            try:
                return self.log.read_payload(offset, size, hash)
            except CorruptRecord:
                # It may have been stored anew elsewhere since; if not, the index leads to the same error.
                self._offsets.pop(hash, None)
        place = self.index.find(hash)
        if place is None or place.kind != _CHUNK:
            raise self._missing("A chunk of the file is missing.", hash)
        chunk = self.read_at(hash, place)
        if len(chunk) != size:
            raise CorruptRecord("A chunk has another size than its file states.", hash=hash.hex())
        if place.codec == _RAW:
            self.cache.put_offset(hash, place.offset)
        return chunk

    def _read_part(self, hash: Hash, kind: ObjectKind) -> bytes:
        """Reads what another object names: if it is missing, that is damage."""
        try:
            return self.read(hash, kind)
        except NotFound as error:
            raise self._missing("An object that another one names is missing.", hash) from error

    def _missing(self, message: str, hash: Hash) -> CorruptRecord:
        reason = self.explain_missing(hash)
        if reason is None:
            return CorruptRecord(message, hash=hash.hex())
        return CorruptRecord(reason, hash=hash.hex(), lost=True)

    def _note_damaged(self, hash: Hash) -> None:
        """Notes, if the index can be written, that the object is stored again when a client sends it."""
        with suppress(lmdb.Error, OSError, SvcError):
            if self.index.contains(hash):
                self.index.note_damaged([hash])


def _unexplained(_hash: Hash) -> str | None:
    return None


class TreeStore:
    """The node store of one tree: reads through to the database, keeps new nodes pending."""

    def __init__(self, objects: ObjectStore, pending: PendingObjects, system: bool = False) -> None:
        self._objects = objects
        self._known = objects.cache.nodes
        self._pending = pending
        self._system = system
        self._fresh: dict[Hash, Node] = {}

    def read_node(self, hash: Hash) -> Node:
        """Returns a node of the database or one that was just written here."""
        node = self._fresh.get(hash)
        if node is None:
            node = self._known.get(hash)
        return node if node is not None else self._objects.read_node(hash)

    def write_node(self, payload: bytes, node: Node | None = None, /) -> Hash:
        """Makes a node pending and returns its hash."""
        hash = hash_object(_OF_NODES, payload, self._system)
        if hash not in self._fresh:
            self._fresh[hash] = node if node is not None else decode_node(payload)
            pending = self._pending
            if hash not in pending.records and hash not in pending.placed and hash not in _EMPTY_ROOTS:
                record = _encode(_NODE, hash, payload, now_ms(), self._system)
                pending.records[hash] = record
                pending.size += len(record[0])
        return hash

    def collect_into(self, pending: PendingObjects) -> None:
        """Sends the nodes that are written from here on to another set."""
        self._pending = pending

    def share_fresh_nodes(self) -> None:
        """Puts the new nodes into the database's cache; called once they are committed."""
        self._objects.cache.put_nodes(self._fresh)


def encode_object(
    kind: ObjectKind, hash: Hash, content: bytes, *, system: bool = False
) -> tuple[bytes, Place]:
    """Returns an object's framed record, and its place with the offset still 0."""
    return _encode(kind, hash, content, now_ms(), system)


def add_object(
    pending: PendingObjects, kind: ObjectKind, hash: Hash, content: bytes, *, system: bool = False
) -> None:
    """Encodes an object and makes it pending, unless it is."""
    if hash not in pending:
        framed, place = encode_object(kind, hash, content, system=system)
        pending.add(hash, framed, place)


def add_chunks(pending: PendingObjects, chunks: Mapping[Hash, bytes]) -> None:
    """Encodes chunks of the user tree and makes those pending that are not."""
    records, placed = pending.records, pending.placed
    added = 0
    time_ms = now_ms()
    for hash, content in chunks.items():
        if hash in records or hash in placed:
            continue
        size = len(content)
        if size < MINIMUM_COMPRESSED_SIZE:
            framed = encode_record(_CHUNK, hash, content, time_ms=time_ms)
            records[hash] = framed, place_of((0, size, size, _CHUNK, 0, _RAW))
        else:
            framed, place = _encode(_CHUNK, hash, content, time_ms, False)
            records[hash] = framed, place
        added += len(framed)
    pending.size += added


def _encode(
    kind: ObjectKind | int, hash: Hash, content: bytes, time_ms: int, system: bool
) -> tuple[bytes, Place]:
    size = len(content)
    if size < MINIMUM_COMPRESSED_SIZE:
        framed = encode_record(kind, hash, content, time_ms=time_ms, system=system)
        return framed, place_of((0, size, size, kind, int(system), _RAW))
    codec, stored = compress(content)
    framed = encode_record(kind, hash, stored, codec=codec, raw_length=size, time_ms=time_ms, system=system)
    return framed, Place(0, len(stored), size, kind, int(system), codec)
