"""File contents: a stream becomes chunks on its way in, an entry becomes pieces on its way out.

A writer holds about 4 MiB, a reader one chunk. A content of up to 64 KiB waits in memory for its commit. A
larger one is appended to the log ahead, outside every lock that others need: without a commit it is garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from svc.errors import InvalidInput, PayloadTooLarge, SvcError
from svc.hashing import Hash, ObjectKind, hash_content, hash_object
from svc.log.framing import verified_payload
from svc.objects.chunking import WHOLE_LIMIT, Readable
from svc.objects.codecs import MINIMUM_COMPRESSED_SIZE, Codec, decompress
from svc.objects.expected_chunks import ExpectedChunks
from svc.objects.file_record import FileRecord
from svc.objects.key_index import PackedPlace, pack_place, unpack_place
from svc.objects.large_content import LargeContent, append_pieces
from svc.objects.many_chunks import append_chunks
from svc.objects.store import OFFERED_CHUNKS, ObjectStore, PendingObjects, add_chunks, add_object
from svc.tree import Entry

__all__ = [
    "ContentWriter",
    "SmallContents",
    "StoredContent",
    "read_content",
    "read_range",
    "stored_chunks",
]

_NOTHING_PENDING = PendingObjects()

READ_PIECE = 256 * 1024
_HEAD_SIZE = 4096
_MOST_EXPECTED = 1 << 30
"""Bytes of a file that another one may be like: its list of chunks has some 16,000 then, and is kept."""


class StoredContent(msgspec.Struct, frozen=True, gc=False):
    """A content that is ready to be put at a path.

    Attributes:
        size: bytes.
        content_hash: BLAKE3 of the whole content.
        record: hash of its file record; None when the content is one chunk or empty.
        head: its first bytes, at most 4,096, for type detection.
        pending: the objects that the database does not have yet.
        cut: hash and bytes of its chunks in order, where it is more than one chunk; else empty.
        hold: keeps what the database had of it from being collected, for as long as this lives.
    """

    size: int
    content_hash: Hash
    record: Hash | None
    head: bytes
    pending: PendingObjects
    cut: Sequence[tuple[Hash, int]] = ()
    hold: object = None


class ContentWriter:
    """Stores contents, one after the other."""

    def __init__(
        self,
        objects: ObjectStore,
        *,
        system: bool = False,
        begin_blocking: Callable[..., Callable[[], None]],
        take_hold: Callable[[], object] = lambda: None,
    ) -> None:
        self._take_hold = take_hold
        self._objects = objects
        self._system = system
        self._begin_blocking = begin_blocking

    def store_bytes(self, content: bytes) -> StoredContent:
        """Stores a content that is in memory."""
        if len(content) > WHOLE_LIMIT:
            return self._store_large(content)
        return self._store_whole(content)

    def store_stream(
        self,
        stream: Readable,
        *,
        limit: int | None = None,
        on_bytes: Callable[[int], None] | None = None,
        like: Entry | None = None,
    ) -> StoredContent:
        """Reads a stream to its end, in pieces of 256 KiB, with ``readinto(buffer)`` if it has that.

        ``on_bytes`` gets the size of each piece; for ``like`` see ``Database.store``. Raises PayloadTooLarge
        behind ``limit`` bytes, and InsufficientStorage.
        """
        source = _Source(stream, limit, on_bytes)
        first = bytearray()
        while piece := stream.read(READ_PIECE):
            source.count(len(piece))
            first += piece
            if len(first) > WHOLE_LIMIT:
                del piece  # or it would be kept for as long as the rest takes
                return self._store_large(first, source, self._expected(like))
        return self._store_whole(bytes(first))

    def _store_whole(self, content: bytes) -> StoredContent:
        pending = PendingObjects()
        content_hash = hash_object(ObjectKind.CHUNK, content)
        hold = self._take_hold()  # before anything is looked up
        record = None
        if content:
            OFFERED_CHUNKS.add()
        if content and self._system:
            # System chunks hash under their own context: the content hash cannot name the chunk.
            chunk = hash_object(ObjectKind.CHUNK, content, system=True)
            if not self._objects.index.contains(chunk):
                add_object(pending, ObjectKind.CHUNK, chunk, content, system=True)
            record = self._add_record(pending, chunk, len(content), content_hash)
        elif content and not self._objects.index.contains(content_hash):
            add_chunks(pending, {content_hash: content})
        return StoredContent(len(content), content_hash, record, content[:_HEAD_SIZE], pending, hold=hold)

    def _expected(self, like: Entry | None) -> ExpectedChunks | None:
        """The chunks of a file, for a content that is like it; None where it can't be relied on them."""
        if like is None or like.record not in self._objects.cache.cut or like.size > _MOST_EXPECTED:
            return None
        with suppress(SvcError):
            return ExpectedChunks(stored_chunks(self._objects, like))
        return None

    def _store_large(
        self,
        first: bytes | bytearray,
        source: _Source | None = None,
        expected: ExpectedChunks | None = None,
    ) -> StoredContent:
        hold = self._take_hold()
        content = LargeContent(self._objects, self._system, self._begin_blocking, expected)
        head = bytes(first[:_HEAD_SIZE])
        try:
            content.take_bytes(first)
            if isinstance(first, bytearray):
                first.clear()
            while source is not None and (count := source.read_into(content.room)):
                content.take(count)
            content.finish()
        except BaseException:
            content.abandon()
            raise
        pending = PendingObjects(placed=content.placed)
        return StoredContent(
            content.size, content.content_hash, content.record, head, pending, content.chunks, hold
        )

    def _add_record(self, pending: PendingObjects, chunk: Hash, size: int, content_hash: Hash) -> Hash:
        payload = FileRecord(size, content_hash, (chunk,), (size,)).encode()
        hash = hash_object(ObjectKind.FILE_RECORD, payload, self._system)
        if not self._objects.index.contains(hash):
            add_object(pending, ObjectKind.FILE_RECORD, hash, payload, system=self._system)
        return hash


class SmallContents:
    """Small contents of one transaction: they wait, and are looked up and framed many at a time."""

    __slots__ = ("_objects", "_pending", "_waiting", "size")

    def __init__(self, objects: ObjectStore, pending: PendingObjects) -> None:
        self._objects = objects
        self._pending = pending
        self._waiting: dict[Hash, bytes] = {}
        self.size = 0

    def add(self, content: bytes) -> StoredContent:
        """Takes a content of at most 64 KiB that belongs to the user tree; its head is not kept."""
        content_hash = hash_content(content)
        size = len(content)
        if size:
            OFFERED_CHUNKS.add()
        if size and content_hash not in self._waiting:
            self._waiting[content_hash] = content
            self.size += size
        return StoredContent(size, content_hash, None, b"", _NOTHING_PENDING)

    def get(self, content_hash: Hash) -> bytes | None:
        """Returns a content that waits, or None."""
        return self._waiting.get(content_hash)

    def append_ahead(self) -> None:
        """Appends what waits and is not stored, unsynced, for a later commit; if that fails all waits on."""
        pending, waiting = self._pending, self._waiting
        state = self._objects.index.state()
        known, placed, records = self._objects.known(waiting), pending.placed, pending.records
        fresh = {
            hash: content
            for hash, content in waiting.items()
            if hash not in known and hash not in placed and hash not in records
        }
        pending.place(append_chunks(self._objects.log, fresh), state)
        self._waiting, self.size = {}, 0

    def settle(self) -> None:
        """Makes pending what waits, but for much that is stored already; afterwards nothing waits."""
        waiting, size = self._waiting, self.size
        self._waiting, self.size = {}, 0
        # The fold asks again for all; for a few bytes that nobody compresses, framing costs less than asking.
        if size >= MINIMUM_COMPRESSED_SIZE:
            for known in self._objects.known(waiting):
                del waiting[known]
        add_chunks(self._pending, waiting)


def append_ahead(objects: ObjectStore, pending: PendingObjects) -> None:
    """Appends pending records to the log, unsynced; a later commit makes them part of the database."""
    if not pending.records:
        return
    offset = append_pieces(objects.log, [framed for framed, _ in pending.records.values()])
    placed: dict[Hash, PackedPlace] = {}
    for hash, (framed, place) in pending.records.items():
        placed[hash] = pack_place(offset, *place[1:])
        offset += len(framed)
    pending.place(placed)
    pending.records.clear()
    pending.size = 0


def stored_chunks(objects: ObjectStore, entry: Entry) -> list[tuple[Hash, int]]:
    """Returns (hash, bytes) of an entry's chunks in order; empty for an empty file."""
    if entry.size == 0:
        return []
    if entry.record is None:
        return [(entry.hash, entry.size)]
    record = objects.read_record(entry.record)
    return list(zip(record.chunks, record.lengths, strict=True))


def read_range(
    objects: ObjectStore, entry: Entry, start: int = 0, length: int | None = None
) -> Iterator[bytes]:
    """Yields a range of a file's bytes, one chunk or a part of one at a time; raises CorruptRecord."""
    remaining = max(0, entry.size - start) if length is None else min(length, max(0, entry.size - start))
    if remaining == 0:
        return
    if entry.record is None:
        yield objects.read_chunk(entry.hash, entry.size)[start : start + remaining]
        return
    record = objects.read_record(entry.record)
    index, skip = record.chunks_from(start)
    while remaining > 0:
        length = min(record.lengths[index] - skip, remaining)
        remaining -= length
        # No name of this frame holds the piece while whoever takes it waits for a slow client.
        yield _part(objects.read_chunk(record.chunks[index], record.lengths[index]), skip, length)
        index += 1
        skip = 0


def read_content(objects: ObjectStore, content: StoredContent, pending: PendingObjects) -> bytes:
    """Returns all bytes of a content that may not be committed yet."""
    if not content.size:
        return b""
    if content.record is None:
        return _read_pending(objects, content.content_hash, pending)
    record = FileRecord.decode(_read_pending(objects, content.record, pending))
    return b"".join(_read_pending(objects, chunk, pending) for chunk in record.chunks)


def _read_pending(objects: ObjectStore, hash: Hash, pending: PendingObjects) -> bytes:
    waiting = pending.records.get(hash)
    if waiting is not None:
        framed, place = waiting
        payload = verified_payload(framed, 0, place.stored_length, hash)
        return payload if place.codec == Codec.RAW else decompress(place.codec, payload, place.raw_length)
    placed = pending.placed.get(hash)
    return objects.read(hash) if placed is None else objects.read_at(hash, unpack_place(placed))


def _part(chunk: bytes, start: int, length: int) -> bytes:
    return chunk if length == len(chunk) else chunk[start : start + length]


class ChunkStream:
    """The chunks that a client named, read as one stream; InvalidInput lists those that are ``missing``."""

    def __init__(self, objects: ObjectStore, hashes: list[Hash]) -> None:
        missing = [hash.hex() for hash in hashes if not is_user_chunk(objects, hash)]
        if missing:
            raise InvalidInput("Chunks are missing: upload them first.", missing=missing)
        self._objects = objects
        self._hashes = iter(hashes)
        self._rest = b""

    def read(self, size: int = READ_PIECE, /) -> bytes:
        """Returns at most ``size`` bytes; empty at the end."""
        while not self._rest:
            hash = next(self._hashes, None)
            if hash is None:
                return b""
            self._rest = self._objects.read(hash, ObjectKind.CHUNK)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def is_user_chunk(objects: ObjectStore, hash: Hash) -> bool:
    """Whether a hash names a chunk that can be read and is not the system's."""
    place = objects.index.find(hash)
    return place is not None and place.kind == ObjectKind.CHUNK and not place.system


class _Source:
    def __init__(self, stream: Readable, limit: int | None, on_bytes: Callable[[int], None] | None) -> None:
        self._stream = stream
        self._limit = limit
        self._on_bytes = on_bytes
        self._read_into: Callable[[memoryview], int] | None = getattr(stream, "readinto", None)
        self._total = 0

    def read_into(self, room: memoryview) -> int:
        room = room[:READ_PIECE]
        if self._read_into is not None:
            count = self._read_into(room)
        else:
            piece = self._stream.read(len(room))
            count = len(piece)
            room[:count] = piece
        self.count(count)
        return count

    def count(self, count: int) -> None:
        self._total += count
        if self._limit is not None and self._total > self._limit:
            raise PayloadTooLarge(f"The content is larger than {self._limit} bytes.", limit=self._limit)
        if count and self._on_bytes is not None:
            self._on_bytes(count)
