"""Checks the records of a stretch of the log: every header, checksum, content and padding, in large reads.

Several processes may share a log (``stretch_worker``), and one that reads slowly can go on where it stopped.
"""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_intdigest

from svc.errors import CorruptRecord, SvcError
from svc.hashing import HASH_SIZE, Hash, ObjectKind, hash_object
from svc.log.framing import RECORD_HEADER_SIZE, RecordHeader, clean_end_commit, decode_header
from svc.log.scanning import ReadBytes, find_header
from svc.objects.codecs import Codec, decompress

__all__ = ["DamagedObject", "EndMark", "Stretch", "check_stretch", "damage_of_content"]

_WINDOW = 4 << 20
_NO_HASH = bytes(HASH_SIZE)
_VOID, _COMMIT = ObjectKind.VOID, ObjectKind.COMMIT
_RAW = Codec.RAW


class DamagedObject(msgspec.Struct, frozen=True, array_like=True):
    """A record whose header is whole and whose content is not."""

    offset: int
    end: int
    hash: Hash
    kind: int


class EndMark(msgspec.Struct, frozen=True, array_like=True):
    """A void that names a commit: ``named``, or None for a clean-end mark of another place.

    ``last_commit`` is the last one before it within the stretch.
    """

    offset: int
    named: Hash | None
    last_commit: Hash | None


class Stretch(msgspec.Struct, array_like=True):
    """What was found between two offsets.

    ``start`` and ``end`` are beginnings of records; the one at ``end`` was not looked at. ``records`` counts
    damaged regions too. ``regions`` are (offset, end) of bytes in which no record can be read; ``padded`` are
    offsets of records behind which the padding is not zero.
    """

    start: int
    end: int
    records: int = 0
    damaged: list[DamagedObject] = []
    regions: list[tuple[int, int]] = []
    padded: list[int] = []
    marks: list[EndMark] = []
    last_commit: Hash | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged; marks are for the caller to compare."""
        return not (self.damaged or self.regions or self.padded)


def check_stretch(read: ReadBytes, start: int, stop: int, limit: int, database_id: bytes) -> Stretch:
    """Checks the records that begin before ``stop``. Memory is that of one record and a few megabytes."""
    found = Stretch(start, start)
    base = offset = start
    buffer = memoryview(b"")
    while offset < stop:
        position = offset - base
        if position + RECORD_HEADER_SIZE > len(buffer):
            base, position = offset, 0
            buffer = memoryview(read(offset, min(_WINDOW, limit - offset)))
        header = (
            decode_header(buffer, position, offset) if position + RECORD_HEADER_SIZE <= len(buffer) else None
        )
        size = 0 if header is None else (RECORD_HEADER_SIZE + header.stored_length + 7) & ~7
        found.records += 1
        if header is None or offset + size > limit:
            following = None if header is not None else find_header(read, offset + 8, limit)
            end = limit if following is None else following
            found.regions.append((offset, end))
            offset = end
            continue
        if header.kind is _VOID:
            if header.hash != _NO_HASH:
                data = bytes(buffer[position : position + RECORD_HEADER_SIZE])
                named = clean_end_commit(data, database_id=database_id, offset=offset)
                found.marks.append(EndMark(offset, named, found.last_commit))
            offset += size
            continue
        if position + size > len(buffer):
            base, position = offset, 0
            buffer = memoryview(read(offset, min(max(_WINDOW, size), limit - offset)))
        begin = position + RECORD_HEADER_SIZE
        end_of_payload = begin + header.stored_length
        if any(buffer[end_of_payload : position + size]):
            found.padded.append(offset)
        if damage_of_content(header, buffer[begin:end_of_payload]) is not None:
            found.damaged.append(DamagedObject(offset, offset + size, header.hash, int(header.kind)))
        if header.kind is _COMMIT:
            found.last_commit = header.hash
        offset += size
    found.end = offset
    return found


def damage_of_content(header: RecordHeader, payload: bytes | memoryview) -> str | None:
    """Says what is wrong with a record's payload: checksum, compression or hash; None for nothing."""
    if len(payload) != header.stored_length or xxh3_64_intdigest(payload) != header.payload_checksum:
        return "The payload fails its checksum."
    content = payload
    if header.codec != _RAW or header.raw_length != header.stored_length:
        try:
            content = memoryview(decompress(header.codec, bytes(payload), header.raw_length))
        except (SvcError, ValueError) as error:
            return (
                error.message if isinstance(error, CorruptRecord) else "The payload cannot be decompressed."
            )
    try:
        identity = hash_object(header.kind, content, header.system)
    except KeyError:
        return "The record is of a kind that has no identity."
    return None if identity == header.hash else "The content does not have its hash."
