"""File contents: a stream becomes chunks on its way in, an entry becomes pieces on its way out.

Memory is bounded both ways: a writer holds about 2 MiB, a reader one chunk. A content of up to 64 KiB
waits in memory for its commit; a larger one is appended to the log ahead, outside every lock that
others need, and what no commit takes is garbage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from svc.errors import InvalidInput, PayloadTooLarge
from svc.hashing import Hash, ObjectKind, content_hasher, hash_content, hash_object
from svc.log import encode_record
from svc.objects.chunking import WHOLE_LIMIT, Chunker, Readable
from svc.objects.codecs import CompressionTrial
from svc.objects.file_record import FileRecord
from svc.objects.key_index import Place
from svc.objects.store import ObjectStore, PendingObjects, add_chunks, add_object
from svc.tree import Entry

__all__ = ["ContentWriter", "SmallContents", "StoredContent", "read_range", "stored_chunks"]

_NOTHING_PENDING = PendingObjects()

READ_PIECE = 256 * 1024
_APPEND_PIECE = 1024 * 1024
_HEAD_SIZE = 4096


class StoredContent(msgspec.Struct, frozen=True, gc=False):
    """A content that is ready to be put at a path.

    Attributes:
        size: bytes.
        content_hash: BLAKE3 of the whole content.
        record: hash of its file record; None when the content is one chunk or empty.
        head: its first bytes, at most 4,096, for type detection.
        pending: the objects that the database does not have yet.
    """

    size: int
    content_hash: Hash
    record: Hash | None
    head: bytes
    pending: PendingObjects


class ContentWriter:
    """Stores contents, one after the other.

    Args:
        objects: the database's objects.
        system: whether the contents belong to the system tree.
        pause: called after each piece of 256 KiB, to let others run.
        run_blocking: calls a function that blocks, with its arguments; None calls it here.
    """

    def __init__(
        self,
        objects: ObjectStore,
        *,
        system: bool = False,
        pause: Callable[[], None] | None = None,
        run_blocking: Callable[..., None] | None = None,
    ) -> None:
        self._objects = objects
        self._system = system
        self._pause = pause
        self._run_blocking = run_blocking

    def store_bytes(self, content: bytes) -> StoredContent:
        """Returns a small or large content that is in memory, stored."""
        if len(content) > WHOLE_LIMIT:
            return self._store_chunked(iter([content]), None)
        return self._store_whole(content)

    def store_stream(
        self,
        stream: Readable,
        *,
        limit: int | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> StoredContent:
        """Reads a stream to its end and returns its content, stored.

        Args:
            stream: has ``read(size)``; read in pieces of 256 KiB.
            limit: most bytes that are taken.
            on_bytes: called with the size of each piece, for progress.

        Raises:
            PayloadTooLarge: the stream is longer than ``limit``.
            InsufficientStorage: the disk is full.
        """
        pieces = _read_pieces(stream, limit, on_bytes)
        first = bytearray()
        for piece in pieces:
            first += piece
            if len(first) > WHOLE_LIMIT:
                return self._store_chunked(pieces, bytes(first))
        return self._store_whole(bytes(first))

    def _store_whole(self, content: bytes) -> StoredContent:
        pending = PendingObjects()
        content_hash = hash_object(ObjectKind.CHUNK, content)
        record = None
        if content and self._system:
            # System chunks hash under their own context: the content hash cannot name the chunk.
            record = self._add_record(
                pending, [(self._add_chunk(pending, content), len(content))], content_hash
            )
        elif content and not self._objects.index.contains(content_hash):
            add_object(pending, ObjectKind.CHUNK, content_hash, content)
        return StoredContent(len(content), content_hash, record, content[:_HEAD_SIZE], pending)

    def _store_chunked(self, pieces: Iterator[bytes], first: bytes | None) -> StoredContent:
        pending = PendingObjects()
        chunker = Chunker()
        hasher = content_hasher()
        trial = CompressionTrial()
        chunks: list[tuple[Hash, int]] = []
        head = b""

        def take(piece: bytes) -> None:
            nonlocal head
            if len(head) < _HEAD_SIZE:
                head = (head + piece)[:_HEAD_SIZE]
            hasher.update(piece)
            for chunk in chunker.feed(piece):
                chunks.append((self._add_chunk(pending, chunk, trial), len(chunk)))
                if self._pause is not None:
                    self._pause()
            if pending.size >= _APPEND_PIECE:
                self._append_ahead(pending)

        if first is not None:
            take(first)
        for piece in pieces:
            take(piece)
        chunks.extend((self._add_chunk(pending, chunk, trial), len(chunk)) for chunk in chunker.finish())
        record = self._add_record(pending, chunks, hasher.digest())
        self._append_ahead(pending)
        return StoredContent(sum(length for _, length in chunks), hasher.digest(), record, head, pending)

    def _append_ahead(self, pending: PendingObjects) -> None:
        """Appends; the pages of a large piece take milliseconds, and others may hold the end of the log."""
        if self._run_blocking is None:
            append_ahead(self._objects, pending)
        else:
            self._run_blocking(append_ahead, self._objects, pending)

    def _add_chunk(
        self, pending: PendingObjects, chunk: bytes, trial: CompressionTrial | None = None
    ) -> Hash:
        hash = hash_object(ObjectKind.CHUNK, chunk, self._system)
        if hash in pending or self._objects.index.contains(hash):
            return hash
        codec, stored = (trial or CompressionTrial()).compress(chunk)
        framed = encode_record(
            ObjectKind.CHUNK,
            hash,
            stored,
            codec=codec,
            raw_length=len(chunk),
            time_ms=time.time_ns() // 1_000_000,
            system=self._system,
        )
        pending.add(
            hash, framed, Place(0, len(stored), len(chunk), ObjectKind.CHUNK, int(self._system), codec)
        )
        return hash

    def _add_record(
        self, pending: PendingObjects, chunks: list[tuple[Hash, int]], content_hash: Hash
    ) -> Hash:
        record = FileRecord(
            sum(length for _, length in chunks),
            content_hash,
            tuple(hash for hash, _ in chunks),
            tuple(length for _, length in chunks),
        )
        payload = record.encode()
        hash = hash_object(ObjectKind.FILE_RECORD, payload, self._system)
        if not self._objects.index.contains(hash):
            add_object(pending, ObjectKind.FILE_RECORD, hash, payload, system=self._system)
        return hash


class SmallContents:
    """Small contents of one transaction: they wait as they are, and are looked up and framed many at a time.

    Args:
        objects: the database's objects.
        pending: takes those that the database does not have, once they are settled.

    Attributes:
        size: bytes of what waits.
    """

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
        if size and content_hash not in self._waiting:
            self._waiting[content_hash] = content
            self.size += size
        return StoredContent(size, content_hash, None, b"", _NOTHING_PENDING)

    def settle(self) -> None:
        """Makes pending what waits and is new; afterwards nothing waits."""
        waiting, self._waiting, self.size = self._waiting, {}, 0
        for known in self._objects.known(waiting):
            del waiting[known]
        add_chunks(self._pending, waiting)


def append_ahead(objects: ObjectStore, pending: PendingObjects) -> None:
    """Appends pending records to the log, unsynced; a later commit makes them part of the database."""
    if not pending.records:
        return
    offset = objects.log.append([framed for framed, _ in pending.records.values()])
    for hash, (framed, place) in pending.records.items():
        pending.placed[hash] = Place(offset, *place[1:])
        offset += len(framed)
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
    """Yields a range of a file's bytes, one chunk or a part of one at a time.

    Args:
        objects: the database's objects.
        entry: a file's entry.
        start: first byte.
        length: number of bytes; None reads to the end.

    Raises:
        CorruptRecord: a chunk is damaged or of another size than its file states.
    """
    remaining = max(0, entry.size - start) if length is None else min(length, max(0, entry.size - start))
    if remaining == 0:
        return
    if entry.record is None:
        yield objects.read_only_chunk(entry.hash, entry.size)[start : start + remaining]
        return
    record = objects.read_record(entry.record)
    index, skip = record.chunks_from(start)
    while remaining > 0:
        chunk = objects.read_chunk(record.chunks[index], record.lengths[index])
        piece = chunk[skip : skip + remaining] if skip or remaining < len(chunk) else chunk
        remaining -= len(piece)
        index += 1
        skip = 0
        yield piece


class ChunkStream:
    """The chunks that a client named, read one after the other as one stream.

    Args:
        objects: the database's objects.
        hashes: chunks in order; every one must be there.

    Raises:
        InvalidInput: chunks are missing; ``missing`` lists them.
    """

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
    """Whether a hash names a chunk that is not the system's."""
    place = objects.index.find(hash)
    return place is not None and place.kind == ObjectKind.CHUNK and not place.system


def _read_pieces(
    stream: Readable, limit: int | None, on_bytes: Callable[[int], None] | None
) -> Iterator[bytes]:
    total = 0
    while piece := stream.read(READ_PIECE):
        total += len(piece)
        if limit is not None and total > limit:
            raise PayloadTooLarge(f"The content is larger than {limit} bytes.", limit=limit)
        if on_bytes is not None:
            on_bytes(len(piece))
        yield piece
