"""Walking the log from record to record, in large reads; payloads that nobody wants are not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from xxhash import xxh3_64

from svc.errors import CorruptRecord, TruncatedFile
from svc.hashing import Hash, ObjectKind
from svc.log.framing import (
    RECORD_HEADER_SIZE,
    RECORD_MAGIC,
    RecordHeader,
    decode_header,
    payload_damage,
)

__all__ = [
    "DamagedRegion",
    "ReadBytes",
    "ScannedRecord",
    "find_header",
    "payload_is_whole",
    "scan_records",
    "scan_tolerant",
]

ReadBytes = Callable[[int, int], bytes]
"""Reads (offset, length) of the log; fewer bytes come back only where it ends."""

WINDOW = 1 << 20
STEP_WINDOW = 1 << 14


class ScannedRecord(NamedTuple):
    """A record as a scan meets it, and where it ends; ``payload`` is None unless payloads were asked for."""

    offset: int
    end: int
    kind: ObjectKind
    system: bool
    codec: int
    hash: Hash
    time_ms: int
    stored_length: int
    raw_length: int
    payload: bytes | None


def scan_records(
    read: ReadBytes, start: int, end: int, *, payloads: bool = False, verify: bool = False
) -> Iterator[ScannedRecord]:
    """Yields the records between two offsets; memory is bounded unless payloads are asked for.

    Headers are always checked, payloads where ``verify`` says so. Damage raises ``CorruptRecord`` with
    ``details["offset"]``, an end before ``end`` ``TruncatedFile``, an unknown kind ``UnsupportedFormat``.
    """
    buffer = b""
    base = offset = start
    window = WINDOW
    contents = payloads or verify
    while offset < end:
        position = offset - base
        if position + RECORD_HEADER_SIZE > len(buffer):
            # After a step over a large payload little is read; records in a row bring the window back.
            stepped = position > len(buffer) and not contents
            window = STEP_WINDOW if stepped else min(window * 4, WINDOW)
            base, position = offset, 0
            buffer = read(offset, min(window, end - offset))
            if len(buffer) < RECORD_HEADER_SIZE:
                raise _ends_within(offset)
        header = decode_header(buffer, position, offset)
        if header is None:
            raise CorruptRecord(f"No valid record stands at offset {offset} of the log.", offset=offset)
        kind, system, codec, stored, raw, time_ms, hash, _ = header
        following = offset + ((RECORD_HEADER_SIZE + stored + 7) & ~7)
        if following > end:
            raise _ends_within(offset)
        payload = None
        if contents:
            if position and following > base + len(buffer) and stored < WINDOW // 2:
                base, position = offset, 0
                buffer = read(offset, min(WINDOW, end - offset))
            if payloads:
                payload = _payload(read, buffer, position, offset, stored)
            if verify and not _verified(read, buffer, position, offset, header, payload):
                raise payload_damage(offset)
        yield ScannedRecord(offset, following, kind, system, codec, hash, time_ms, stored, raw, payload)
        offset = following


class DamagedRegion(NamedTuple):
    """Bytes of the log between two records in which no record can be read."""

    offset: int
    end: int


def scan_tolerant(read: ReadBytes, start: int, end: int) -> Iterator[ScannedRecord | DamagedRegion]:
    """Yields the records between two offsets, and damaged regions: each up to the next valid header.

    Payloads are not looked at. A record that reaches beyond the end is damaged up to there.
    """
    position = start
    while position < end:
        try:
            for record in scan_records(read, position, end):
                position = record.end
                yield record
        except TruncatedFile:
            yield DamagedRegion(position, end)
            return
        except CorruptRecord:
            following = find_header(read, position + 8, end)
            region = DamagedRegion(position, end if following is None else following)
            position = region.end
            yield region


def payload_is_whole(read: ReadBytes, offset: int, header: RecordHeader) -> bool:
    """Whether the payload of the record at ``offset`` is there and what was stored; bounded memory."""
    if header.kind is ObjectKind.VOID:
        return True
    digest = xxh3_64()
    position = offset + RECORD_HEADER_SIZE
    left = header.stored_length
    while left:
        piece = read(position, min(left, WINDOW))
        if not piece:
            return False
        digest.update(piece)
        position += len(piece)
        left -= len(piece)
    return digest.intdigest() == header.payload_checksum


def find_header(read: ReadBytes, start: int, end: int) -> int | None:
    """Returns the first offset from ``start`` on, in steps of eight, where a valid header stands."""
    offset = (start + 7) & ~7
    while offset + RECORD_HEADER_SIZE <= end:
        buffer = read(offset, min(WINDOW, end - offset))
        if len(buffer) < RECORD_HEADER_SIZE:
            return None
        position = buffer.find(RECORD_MAGIC)
        while 0 <= position <= len(buffer) - RECORD_HEADER_SIZE:
            if position & 7 == 0 and decode_header(buffer, position, offset + position) is not None:
                return offset + position
            position = buffer.find(RECORD_MAGIC, position + 1)
        # The last bytes are looked at again: a header may begin there and go on in the next window.
        offset += (len(buffer) - RECORD_HEADER_SIZE + 8) & ~7
    return None


def _payload(read: ReadBytes, buffer: bytes, position: int, offset: int, stored: int) -> bytes:
    first = position + RECORD_HEADER_SIZE
    payload = buffer[first : first + stored]
    if len(payload) < stored:
        payload += read(offset + RECORD_HEADER_SIZE + len(payload), stored - len(payload))
        if len(payload) < stored:
            raise _ends_within(offset)
    return payload


def _verified(
    read: ReadBytes, buffer: bytes, position: int, offset: int, header: RecordHeader, payload: bytes | None
) -> bool:
    first = position + RECORD_HEADER_SIZE
    if payload is None and first + header.stored_length <= len(buffer):
        payload = buffer[first : first + header.stored_length]
    return payload_is_whole(read, offset, header) if payload is None else header.accepts(payload)


def _ends_within(offset: int) -> TruncatedFile:
    return TruncatedFile(f"The log ends within the record at offset {offset}.", offset=offset)
