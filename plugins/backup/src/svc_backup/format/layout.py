"""The bytes of exports and patches that a database does not have (docs/format/export.md, patch.md).

Both are logs: a file header, records, one commit at the end. A patch has a flag in its header and names
its two versions there; its deletion records say what goes. Values without I/O.
"""

from __future__ import annotations

import struct
from typing import Any

import cbor2
from msgspec import Struct
from xxhash import xxh3_64_intdigest

from svc.errors import CorruptRecord, UnsupportedFormat
from svc.plugin import HASH_SIZE, Hash
from svc_maintenance.transfer import (
    FILE_HEADER_SIZE,
    PATCH_FLAG,
    ChangeCounts,
    FileHeader,
    decode_file_header,
    encode_file_header,
)

__all__ = [
    "Deletions",
    "TransferHeader",
    "decode_transfer_header",
    "encode_patch_header",
]

DELETIONS_VERSION = 1
_FLAGS = struct.Struct("<20xI")
_VERSIONS = struct.Struct("<56x32s32s")
_CHECKSUM = struct.Struct("<Q")


class TransferHeader(Struct, frozen=True):
    """What the first 128 bytes of a transferred file say.

    ``database_id`` is 16 random bytes. ``base`` and ``target`` are the roots that a patch applies to and
    makes; None for an export.
    """

    database_id: bytes
    created_ms: int
    base: Hash | None = None
    target: Hash | None = None


class Deletions(Struct, frozen=True):
    """The content of a deletion record of a patch; the records of a patch continue each other.

    ``counts`` are of the whole patch. ``paths`` are absolute, in order, of files and links that are there
    before and not after.
    """

    base: Hash
    target: Hash
    counts: ChangeCounts
    paths: tuple[str, ...]

    def encode(self) -> bytes:
        """Returns the canonical CBOR payload."""
        counts = [self.counts.added, self.counts.modified, self.counts.deleted]
        return cbor2.dumps(
            [DELETIONS_VERSION, self.base, self.target, counts, list(self.paths)], canonical=True
        )

    @classmethod
    def decode(cls, payload: bytes) -> Deletions:
        """Returns the deletions of a payload.

        Raises CorruptRecord for all but the one valid spelling, and UnsupportedFormat for a newer version.
        """
        try:
            fields = cbor2.loads(payload)
        except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise CorruptRecord("A deletion record is not CBOR.") from error
        if not isinstance(fields, list) or not fields or type(fields[0]) is not int:
            raise CorruptRecord("A deletion record is not of the expected form.")
        if fields[0] != DELETIONS_VERSION:
            raise UnsupportedFormat(
                f"A deletion record has version {fields[0]}; this program reads {DELETIONS_VERSION}."
            )
        deletions = cls._of_fields(fields)
        if deletions is None or deletions.encode() != payload:
            raise CorruptRecord("A deletion record is not of the expected form.")
        return deletions

    @classmethod
    def _of_fields(cls, fields: list[Any]) -> Deletions | None:
        if len(fields) != 5:
            return None
        _, base, target, counts, paths = fields
        hashes = all(type(one) is bytes and len(one) == HASH_SIZE for one in (base, target))
        counted = type(counts) is list and len(counts) == 3
        if not hashes or not counted or type(paths) is not list:
            return None
        if not all(type(one) is int and 0 <= one < 2**63 for one in counts):
            return None
        if not all(type(one) is str for one in paths):
            return None
        return cls(base, target, ChangeCounts(*counts), tuple(paths))


def encode_patch_header(header: FileHeader, base: Hash, target: Hash) -> bytes:
    """Returns the 128 bytes that begin a patch."""
    plain = bytearray(encode_file_header(header)[: FILE_HEADER_SIZE - 8])
    struct.pack_into("<I", plain, 20, PATCH_FLAG)
    plain[56:88], plain[88:120] = base, target
    return bytes(plain) + _CHECKSUM.pack(xxh3_64_intdigest(plain))


def decode_transfer_header(data: bytes, name: str) -> TransferHeader:
    """Returns what the first bytes of a transferred file say."""
    header = decode_file_header(data, name, flags=PATCH_FLAG)
    if not _FLAGS.unpack_from(data)[0]:
        return TransferHeader(header.database_id, header.created_ms)
    base, target = _VERSIONS.unpack_from(data)
    return TransferHeader(header.database_id, header.created_ms, base, target)
