"""The byte format of the log: the file header and the frame of a record (docs/format/log.md).

Pure functions between bytes and values, without I/O. Everything is little-endian and aligned to
eight bytes; xxh3_64 guards headers and payloads against rot, BLAKE3 names what they hold.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from svc.errors import CorruptRecord, ForeignFile, PayloadTooLarge, TruncatedFile, UnsupportedFormat
from svc.hashing import HASH_SIZE, Hash, ObjectKind

__all__ = [
    "FILE_HEADER",
    "FILE_HEADER_SIZE",
    "FIRST",
    "FORMAT_MAJOR",
    "FORMAT_MINOR",
    "MAXIMUM_STORED_LENGTH",
    "PATCH_FLAG",
    "RECORD_HEADER_SIZE",
    "RECORD_MAGIC",
    "FileHeader",
    "Location",
    "Record",
    "RecordHeader",
    "clean_end_commit",
    "decode_file_header",
    "decode_header",
    "decode_record",
    "encode_clean_end",
    "encode_file_header",
    "encode_record",
    "encode_void",
    "frame_record",
    "frame_records",
    "record_size",
]

Payload = TypeVar("Payload", bound=bytes | bytearray | memoryview)

FILE_MAGIC = b"\x89SVC\r\n\x1a\n"
FORMAT_MAJOR = 1
FORMAT_MINOR = 0
BYTE_ORDER_MARK = 0x01020304
HASH_ALGORITHM_BLAKE3 = 1
FILE_HEADER_SIZE = 128
FIRST = FILE_HEADER_SIZE
"""Offset of the first record."""

FILE_HEADER = struct.Struct("<8sHHIII16sB7xQ64x")
"""The file header without its checksum: magic, major, minor, byte order mark, header length, flags,
database id, hash algorithm, created_ms."""

PATCH_FLAG = 1
"""Flag of a file header: the file is a patch between two versions, and no database."""

RECORD_MAGIC = b"SVCR"
RECORD_HEADER_SIZE = 72
MAXIMUM_STORED_LENGTH = 2**32 - 1
SYSTEM_FLAG = 1

RECORD_HEADER = struct.Struct("<IBBBBIIQ32sQQ")
"""A record's header: magic, kind, flags, codec, reserved, stored length, raw length, time_ms, hash,
payload checksum, header checksum."""

_MAGIC = int.from_bytes(RECORD_MAGIC, "little")
_CHECKED_SIZE = RECORD_HEADER_SIZE - 8
_CHECKSUM = struct.Struct("<Q")
_PADDING = tuple(bytes(-count & 7) for count in range(8))
_KINDS: tuple[ObjectKind | None, ...] = tuple(
    ObjectKind(number) if number in set(ObjectKind) else None for number in range(256)
)

_pack_checked = struct.Struct("<IBBBBIIQ32sQ").pack
_pack_checksum = _CHECKSUM.pack
_unpack_header = RECORD_HEADER.unpack_from
_unpack_guards = struct.Struct("<I4xI44xQQ").unpack_from
_HASH = slice(24, 56)
_VOID = int(ObjectKind.VOID)


class Location(NamedTuple):
    """Where a record lies in the log."""

    offset: int
    stored_length: int


class Record(Struct, frozen=True):
    """A record as it is stored."""

    kind: ObjectKind
    system: bool
    codec: int
    hash: Hash
    time_ms: int
    raw_length: int
    payload: bytes


class RecordHeader(NamedTuple):
    """The decoded header of a record; its own checksum has been verified.

    Lengths are in bytes; ``raw_length`` and ``hash`` are of the uncompressed content. ``payload_checksum`` is
    the xxh3_64 of the stored payload; of no meaning for a void.
    """

    kind: ObjectKind
    system: bool
    codec: int
    stored_length: int
    raw_length: int
    time_ms: int
    hash: Hash
    payload_checksum: int

    def accepts(self, payload: bytes | memoryview) -> bool:
        """Whether ``payload`` is what was stored. What lies in a void is of no meaning."""
        return self.kind is ObjectKind.VOID or xxh3_64_intdigest(payload) == self.payload_checksum


class FileHeader(Struct, frozen=True):
    """What the first 128 bytes of a log say.

    Every copy of the database has its ``database_id`` (UUID4). A higher ``minor`` than ours can be read.
    """

    database_id: bytes
    created_ms: int
    minor: int = FORMAT_MINOR


def record_size(stored_length: int) -> int:
    """Returns the bytes that a record takes in the log: header, payload and padding."""
    return (RECORD_HEADER_SIZE + stored_length + 7) & ~7


def encode_record(
    kind: ObjectKind | int,
    hash: Hash,
    payload: bytes | bytearray | memoryview,
    *,
    codec: int = 0,
    raw_length: int | None = None,
    time_ms: int,
    system: bool = False,
) -> bytes:
    """Returns a complete framed record, padding included; a ``raw_length`` of None is the payload's own.

    ``PayloadTooLarge``: the payload or the content has more than 2**32 - 1 bytes. ``ValueError``: the hash is
    not 32 bytes, or another argument does not fit its field.
    """
    if raw_length is None:
        raw_length = len(payload)
    return b"".join(
        frame_record(kind, hash, payload, codec=codec, raw_length=raw_length, time_ms=time_ms, system=system)
    )


def frame_record(
    kind: ObjectKind | int,
    hash: Hash,
    payload: Payload,
    *,
    codec: int,
    raw_length: int,
    time_ms: int,
    system: bool,
) -> tuple[bytes | Payload, ...]:
    """As ``encode_record``, but gives header, payload and padding (if any) one by one, uncopied."""
    length = len(payload)
    if len(hash) != HASH_SIZE:
        raise ValueError(f"A hash has {HASH_SIZE} bytes, not {len(hash)}.")
    if length > MAXIMUM_STORED_LENGTH or raw_length > MAXIMUM_STORED_LENGTH:
        raise PayloadTooLarge(
            f"A record holds at most {MAXIMUM_STORED_LENGTH} bytes.", limit=MAXIMUM_STORED_LENGTH
        )
    try:
        checked = _pack_checked(
            _MAGIC, kind, system, codec, 0, length, raw_length, time_ms, hash, xxh3_64_intdigest(payload)
        )
    except struct.error as error:
        raise ValueError(f"A field of a record is out of range: {error}.") from None
    header = checked + _pack_checksum(xxh3_64_intdigest(checked))
    padding = _PADDING[length & 7]
    return (header, payload, padding) if padding else (header, payload)


def frame_records(
    kind: int,
    hashes: Sequence[Hash],
    payloads: Sequence[bytes],
    raw_lengths: Sequence[int],
    codecs: Sequence[int],
    *,
    time_ms: int,
) -> list[bytes]:
    """As ``frame_record`` for many records of the user tree: header, payload and padding of each in turn.

    Hashes and ``raw_lengths`` are of uncompressed contents; codecs: 0 raw, 1 zstd; payloads: below 4 GiB.
    """
    checksum, pack_checked, pack_checksum = xxh3_64_intdigest, _pack_checked, _pack_checksum
    pieces: list[bytes] = []
    for hash, payload, raw_length, codec in zip(hashes, payloads, raw_lengths, codecs, strict=True):
        length = len(payload)
        checked = pack_checked(
            _MAGIC, kind, 0, codec, 0, length, raw_length, time_ms, hash, checksum(payload)
        )
        pieces += (checked + pack_checksum(checksum(checked)), payload, _PADDING[length & 7])
    return pieces


def encode_void(stored_length: int, *, time_ms: int) -> bytes:
    """Returns the 72 bytes of a void's header; its payload means nothing, and may be a hole in the file."""
    if stored_length > MAXIMUM_STORED_LENGTH:
        raise PayloadTooLarge(
            f"A record holds at most {MAXIMUM_STORED_LENGTH} bytes.", limit=MAXIMUM_STORED_LENGTH
        )
    checked = _pack_checked(
        _MAGIC, ObjectKind.VOID, 0, 0, 0, stored_length, stored_length, time_ms, bytes(HASH_SIZE), 0
    )
    return checked + _pack_checksum(xxh3_64_intdigest(checked))


def encode_clean_end(hash: Hash, *, database_id: bytes, offset: int, time_ms: int) -> bytes:
    """Returns a clean-end mark: a void without a payload that names the last commit before it.

    Where it is found, everything before it was durable, and that commit was the last one. ``offset`` is where
    in the log the mark will stand: elsewhere, as a part of a content, it means nothing.
    """
    checked = _pack_checked(
        _MAGIC, ObjectKind.VOID, 0, 0, 0, 0, 0, time_ms, hash, _clean_end_proof(database_id, offset)
    )
    return checked + _pack_checksum(xxh3_64_intdigest(checked))


def clean_end_commit(data: bytes, *, database_id: bytes, offset: int) -> Hash | None:
    """Returns the identity of the commit that a clean-end mark names; None when no mark stands there."""
    if len(data) < RECORD_HEADER_SIZE:
        return None
    magic, kind, _, _, _, stored, _, _, hash, proof, checksum = _unpack_header(data)
    if (magic, kind, stored) != (_MAGIC, _VOID, 0):
        return None
    if xxh3_64_intdigest(data[:_CHECKED_SIZE]) != checksum or proof != _clean_end_proof(database_id, offset):
        return None
    return bytes(hash)


def _clean_end_proof(database_id: bytes, offset: int) -> int:
    return xxh3_64_intdigest(database_id + _pack_checksum(offset))


def decode_header(buffer: bytes | memoryview, position: int = 0, offset: int = 0) -> RecordHeader | None:
    """Returns the record header at ``position`` of a buffer, or None when no valid one stands there.

    ``offset`` is its place in the log, for messages. ``UnsupportedFormat``: a valid one of an unknown kind.
    """
    magic, kind, flags, codec, _, stored, raw, time_ms, hash, payload_checksum, checksum = _unpack_header(
        buffer, position
    )
    if magic != _MAGIC or xxh3_64_intdigest(buffer[position : position + _CHECKED_SIZE]) != checksum:
        return None
    known = _KINDS[kind]
    if known is None:
        raise UnsupportedFormat(
            f"The record at offset {offset} is of kind {kind}, which this program does not know; "
            "a newer version wrote it.",
            offset=offset,
        )
    return RecordHeader(known, flags & SYSTEM_FLAG == 1, codec, stored, raw, time_ms, hash, payload_checksum)


def decode_record(data: bytes, offset: int, stored_length: int) -> Record:
    """Returns the record of ``data``, both checksums verified.

    ``data`` may be shorter than 72 + ``stored_length`` bytes where the log ends before: ``TruncatedFile``.
    ``CorruptRecord``: a checksum fails, or another record stands there. ``UnsupportedFormat``: unknown kind.
    """
    payload = verified_payload(data, offset, stored_length)
    header = decode_header(data, 0, offset)
    if header is None:
        raise _header_damage(offset)
    return Record(
        header.kind,
        header.system,
        header.codec,
        header.hash,
        header.time_ms,
        header.raw_length,
        payload,
    )


def verified_payload(data: bytes, offset: int, stored_length: int, hash: Hash | None = None) -> bytes:
    """Returns a framed record's payload, as in ``decode_record``; a ``hash`` of None takes any.

    This is the path of every read: one unpack of the guards alone.
    """
    size = RECORD_HEADER_SIZE + stored_length
    if len(data) < size:
        raise TruncatedFile(
            f"The log ends within the record at offset {offset}: {len(data)} of {size} bytes are there.",
            offset=offset,
        )
    magic, stored, payload_checksum, checksum = _unpack_guards(data)
    payload = data[RECORD_HEADER_SIZE:size]
    if magic != _MAGIC or xxh3_64_intdigest(data[:_CHECKED_SIZE]) != checksum:
        raise _header_damage(offset)
    if stored != stored_length:
        raise CorruptRecord(
            f"The record at offset {offset} has {stored} bytes where {stored_length} were expected.",
            offset=offset,
        )
    if hash is not None and data[_HASH] != hash:
        raise CorruptRecord(f"The record at offset {offset} is another one than was expected.", offset=offset)
    if xxh3_64_intdigest(payload) != payload_checksum and data[4] != _VOID:
        raise payload_damage(offset)
    return payload


def payload_damage(offset: int) -> CorruptRecord:
    """The error that reports a payload whose checksum fails."""
    return CorruptRecord(f"The payload of the record at offset {offset} fails its checksum.", offset=offset)


def encode_file_header(header: FileHeader) -> bytes:
    """Returns the 128 bytes that begin a log."""
    checked = FILE_HEADER.pack(
        FILE_MAGIC,
        FORMAT_MAJOR,
        header.minor,
        BYTE_ORDER_MARK,
        FILE_HEADER_SIZE,
        0,
        header.database_id,
        HASH_ALGORITHM_BLAKE3,
        header.created_ms,
    )
    return checked + _pack_checksum(xxh3_64_intdigest(checked))


def decode_file_header(data: bytes, name: str, *, flags: int = 0) -> FileHeader:
    """Returns what the first bytes of a file say; refuses, as ``LocalFileStorage.open``, what is no log."""
    if not data:
        raise ForeignFile(f"{name} is empty; it is not an svc database.")
    if data[:8] != FILE_MAGIC[: len(data)]:
        raise ForeignFile(f"{name} is not an svc database.")
    if len(data) < FILE_HEADER_SIZE:
        raise TruncatedFile(
            f"{name} has only {len(data)} of the {FILE_HEADER_SIZE} bytes of an svc database's header.",
            offset=0,
        )
    _, major, minor, mark, length, stated, database_id, algorithm, created_ms = FILE_HEADER.unpack_from(data)
    if mark == int.from_bytes(BYTE_ORDER_MARK.to_bytes(4, "little"), "big"):
        raise ForeignFile(
            f"{name} was written in another byte order (big-endian); this program reads little-endian."
        )
    if major > FORMAT_MAJOR:
        raise UnsupportedFormat(
            f"{name} has format version {major}.{minor}; this program reads version "
            f"{FORMAT_MAJOR}.{FORMAT_MINOR}. Use a newer svc."
        )
    (checksum,) = _CHECKSUM.unpack_from(data, FILE_HEADER_SIZE - 8)
    if xxh3_64_intdigest(data[: FILE_HEADER_SIZE - 8]) != checksum:
        raise CorruptRecord(f"The header of {name} fails its checksum.", offset=0)
    known = (major, mark, length, algorithm) == (
        FORMAT_MAJOR,
        BYTE_ORDER_MARK,
        FILE_HEADER_SIZE,
        HASH_ALGORITHM_BLAKE3,
    )
    if known and stated == PATCH_FLAG and not flags:
        raise UnsupportedFormat(
            f"{name} is a patch between two versions (flags {stated:#x}), not a database: "
            "'svc import' applies it to one."
        )
    if not known or stated & ~flags:
        raise UnsupportedFormat(
            f"{name} has format version {major}.{minor}, header length {length}, flags {stated:#x} and hash "
            f"algorithm {algorithm}; this program reads version {FORMAT_MAJOR}.{FORMAT_MINOR}, header length "
            f"{FILE_HEADER_SIZE}, no flags and hash algorithm {HASH_ALGORITHM_BLAKE3} (BLAKE3)."
        )
    return FileHeader(database_id, created_ms, minor)


def _header_damage(offset: int) -> CorruptRecord:
    return CorruptRecord(f"No valid record stands at offset {offset} of the log.", offset=offset)
