"""A database file as its documented format says: parsed, changed and put together again by other code.

Bytes of a file flow in; its header and records flow out, and the other way round. Checksums are made right
when records are encoded, so that a change shows only where a test wants it to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import xxhash
import zstandard
from blake3 import blake3

HEADER_LENGTH = 128
RECORD_HEADER = struct.Struct("<IBBBBIIQ32sQ")
MAGIC = 0x52435653
CHUNK, FILE_RECORD, NODE, DELETION, COMMIT, VOID = range(1, 7)
KIND_NAMES = {
    CHUNK: "chunk",
    FILE_RECORD: "file record",
    NODE: "node",
    DELETION: "deletion",
    COMMIT: "commit",
}


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record, with what its header says; ``stored_length`` may lie."""

    kind: int
    flags: int
    codec: int
    stored_length: int
    raw_length: int
    time_ms: int
    hash: bytes
    payload: bytes

    def encode(self) -> bytes:
        """The record with right checksums, padded."""
        header = RECORD_HEADER.pack(
            MAGIC,
            self.kind,
            self.flags,
            self.codec,
            0,
            self.stored_length,
            self.raw_length,
            self.time_ms,
            self.hash,
            xxhash.xxh3_64_intdigest(self.payload),
        )
        data = header + struct.pack("<Q", xxhash.xxh3_64_intdigest(header)) + self.payload
        return data + b"\0" * (-len(data) % 8)

    def with_payload(
        self, payload: bytes, *, codec: int | None = None, raw_length: int | None = None
    ) -> StoredRecord:
        """The record with another payload under the same hash."""
        return replace(
            self,
            payload=payload,
            stored_length=len(payload),
            codec=self.codec if codec is None else codec,
            raw_length=self.raw_length if raw_length is None else raw_length,
        )


def parse(data: bytes) -> tuple[bytes, list[StoredRecord]]:
    """Takes a whole file apart; it must be sound."""
    records, position = [], HEADER_LENGTH
    while position < len(data):
        magic, kind, flags, codec, _, stored, raw, time_ms, digest, _ = RECORD_HEADER.unpack_from(
            data, position
        )
        assert magic == MAGIC, position
        begin = position + RECORD_HEADER.size + 8
        payload = data[begin : begin + stored]
        records.append(StoredRecord(kind, flags, codec, stored, raw, time_ms, digest, payload))
        position = begin + stored + (-(RECORD_HEADER.size + 8 + stored) % 8)
    return data[:HEADER_LENGTH], records


def assemble(header: bytes, records: Iterable[StoredRecord]) -> bytes:
    """Puts a file together."""
    return header + b"".join(record.encode() for record in records)


def boundaries(records: Sequence[StoredRecord]) -> list[int]:
    """Where each record of a file begins, and where the last one ends."""
    found = [HEADER_LENGTH]
    for record in records:
        found.append(found[-1] + len(record.encode()))
    return found


def reseal(header: bytes) -> bytes:
    """A file header with a right checksum."""
    return header[:120] + struct.pack("<Q", xxhash.xxh3_64_intdigest(header[:120]))


_CONTEXTS = {
    CHUNK: "svc 2026 {}chunk",
    FILE_RECORD: "svc 2026 {}file record",
    NODE: "svc 2026 {}directory node",
    DELETION: "svc 2026 {}deletion",
    COMMIT: "svc 2026 commit",
}


def identity(record: StoredRecord, content: bytes) -> bytes:
    """The hash that a record's uncompressed content has."""
    system = "system " if record.flags & 1 else ""
    if record.kind == CHUNK:
        return (
            blake3(content, derive_key_context="svc 2026 system chunk").digest()
            if system
            else blake3(content).digest()
        )
    return blake3(content, derive_key_context=_CONTEXTS[record.kind].format(system)).digest()


def content_of_record(record: StoredRecord) -> bytes:
    """The uncompressed content."""
    if record.codec == 0:
        return record.payload
    return zstandard.ZstdDecompressor().decompress(record.payload, max_output_size=record.raw_length)


def substitute(
    records: Sequence[StoredRecord], old: bytes, new: bytes, kinds: Iterable[int] = (NODE,)
) -> list[StoredRecord]:
    """Replaces bytes in records of some kinds, and makes every hash above them right again.

    The result is a file that no checksum and no hash convicts: only what it says can.

    Raises:
        AssertionError: the bytes stand in no record of these kinds.
    """
    changed = list(records)
    pending = [(old, new, frozenset(kinds))]
    found = False
    everywhere = frozenset((FILE_RECORD, NODE, DELETION, COMMIT, CHUNK))
    while pending:
        old, new, among = pending.pop()
        for index, record in enumerate(changed):
            content = content_of_record(record)
            if record.kind in among and old in content:
                found = True
                content = content.replace(old, new)
                digest = identity(record, content)
                pending.append((record.hash, digest, everywhere))
                changed[index] = replace(
                    record,
                    codec=0,
                    payload=content,
                    stored_length=len(content),
                    raw_length=len(content),
                    hash=digest,
                )
    assert found, old
    return changed
