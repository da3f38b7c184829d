"""The file record: the chunk list of a file that is more than one chunk, as CBOR (RFC 8949).

The payload starts with its version. Version 0 is older: it does not state the hash of the whole content.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import accumulate
from typing import Any

import cbor2
from msgspec import Struct, field

from svc.errors import CorruptRecord, UnsupportedFormat
from svc.hashing import HASH_SIZE, Hash

__all__ = ["PAYLOAD_VERSION", "FileRecord"]

PAYLOAD_VERSION = 1

_FIELDS = 6


class FileRecord(Struct, frozen=True):
    """What a larger file is made of: ``chunks`` and their ``lengths`` in order.

    ``content_hash`` is None in a record of version 0. ``metadata`` is an application's, empty for most files.
    """

    size: int
    content_hash: Hash | None
    chunks: tuple[Hash, ...]
    lengths: tuple[int, ...]
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The version of the payload that says the same."""
        return 0 if self.content_hash is None else PAYLOAD_VERSION

    def encode(self) -> bytes:
        """Returns the canonical payload: ``[version, size, content hash, hashes, lengths, metadata]``.

        Hashes are one byte string of 32 bytes each, lengths one of 32-bit little-endian numbers.
        """
        return cbor2.dumps(
            [
                self.version,
                self.size,
                *(() if self.content_hash is None else (self.content_hash,)),
                b"".join(self.chunks),
                struct.pack(f"<{len(self.lengths)}I", *self.lengths),
                self.metadata,
            ],
            canonical=True,
        )

    @classmethod
    def decode(cls, payload: bytes) -> FileRecord:
        """Returns the record of a payload; raises CorruptRecord, or UnsupportedFormat for a newer version."""
        try:
            fields = cbor2.loads(payload)
        except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
            raise CorruptRecord("A file record is not CBOR.") from error
        if not isinstance(fields, list) or not fields or not isinstance(fields[0], int):
            raise CorruptRecord("A file record is not of the expected form.")
        if fields[0] == 0 and len(fields) == _FIELDS - 1:
            return cls._from_fields([*fields[:2], None, *fields[2:]])
        if fields[0] not in (0, PAYLOAD_VERSION):
            raise UnsupportedFormat(
                f"A file record has version {fields[0]}; this program reads 0 to {PAYLOAD_VERSION}."
            )
        if fields[0] == 0:
            raise CorruptRecord("A file record is not of the expected form.")
        return cls._from_fields(fields)

    @classmethod
    def _from_fields(cls, fields: list[Any]) -> FileRecord:
        if len(fields) != _FIELDS:
            raise CorruptRecord("A file record is not of the expected form.")
        version, size, content_hash, hashes, lengths, metadata = fields
        well_typed = (
            isinstance(size, int)
            and (content_hash is None if version == 0 else isinstance(content_hash, bytes))
            and isinstance(hashes, bytes)
            and isinstance(lengths, bytes)
            and isinstance(metadata, dict)
        )
        count = len(lengths) // 4 if well_typed else 0
        if (
            not well_typed
            or (content_hash is not None and len(content_hash) != HASH_SIZE)
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
