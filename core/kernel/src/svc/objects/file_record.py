"""The file record: the chunk list of a file that is more than one chunk.

CBOR (RFC 8949) in, CBOR out; a value without I/O. The payload starts with its version, so that a
later version can be told and read.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import cbor2

from svc.errors import CorruptRecord, UnsupportedFormat
from svc.hashing import HASH_SIZE, Hash

__all__ = ["PAYLOAD_VERSION", "FileRecord"]

PAYLOAD_VERSION = 1


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a larger file is made of.

    Attributes:
        size: bytes of the whole file.
        content_hash: BLAKE3 of the whole content.
        chunks: hashes of the chunks in order.
        lengths: bytes of each chunk, in the same order.
        metadata: what an application keeps with the content; empty for most files.
    """

    size: int
    content_hash: Hash
    chunks: tuple[Hash, ...]
    lengths: tuple[int, ...]
    metadata: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Returns the canonical payload: ``[version, size, content hash, hashes, lengths, metadata]``.

        Hashes are one byte string of 32 bytes each, lengths one of 32-bit little-endian numbers.
        """
        return cbor2.dumps(
            [
                PAYLOAD_VERSION,
                self.size,
                self.content_hash,
                b"".join(self.chunks),
                struct.pack(f"<{len(self.lengths)}I", *self.lengths),
                self.metadata,
            ],
            canonical=True,
        )

    @classmethod
    def decode(cls, payload: bytes) -> FileRecord:
        """Returns the record of a payload.

        Raises:
            CorruptRecord: the payload is not a file record, or its numbers contradict each other.
            UnsupportedFormat: its version is newer than this program.
        """
        try:
            fields = cbor2.loads(payload)
        except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
            raise CorruptRecord("A file record is not CBOR.") from error
        if not isinstance(fields, list) or not fields or not isinstance(fields[0], int):
            raise CorruptRecord("A file record is not of the expected form.")
        if fields[0] != PAYLOAD_VERSION:
            raise UnsupportedFormat(
                f"A file record has version {fields[0]}; this program reads {PAYLOAD_VERSION}."
            )
        return cls._from_fields(fields)

    @classmethod
    def _from_fields(cls, fields: list[Any]) -> FileRecord:
        if len(fields) != 6:
            raise CorruptRecord("A file record is not of the expected form.")
        _, size, content_hash, hashes, lengths, metadata = fields
        well_typed = (
            isinstance(size, int)
            and isinstance(content_hash, bytes)
            and isinstance(hashes, bytes)
            and isinstance(lengths, bytes)
            and isinstance(metadata, dict)
        )
        count = len(lengths) // 4 if well_typed else 0
        if (
            not well_typed
            or len(content_hash) != HASH_SIZE
            or len(lengths) % 4
            or len(hashes) != count * HASH_SIZE
        ):
            raise CorruptRecord("A file record is not of the expected form.")
        numbers = struct.unpack(f"<{count}I", lengths)
        if sum(numbers) != size:
            raise CorruptRecord("A file record's chunks do not add up to its size.")
        chunks = tuple(hashes[i * HASH_SIZE : (i + 1) * HASH_SIZE] for i in range(count))
        return cls(size, content_hash, chunks, numbers, metadata)

    def chunks_from(self, start: int) -> tuple[int, int]:
        """Returns the index of the chunk that holds byte ``start``, and the offset of ``start`` in it."""
        ends = list(accumulate(self.lengths))
        index = bisect_right(ends, start)
        begin = ends[index - 1] if index else 0
        return index, start - begin
