"""Copies stored records out of a log as they are, each verified against its checksums on the way."""

from __future__ import annotations

from collections.abc import Iterator

from svc.errors import CorruptRecord
from svc.hashing import ObjectKind
from svc.log import Log, record_size
from svc.log.framing import RECORD_HEADER_SIZE, decode_header, payload_damage

__all__ = ["copy_records"]

_PIECE = 1 << 20
_GAP = 1 << 14


def copy_records(log: Log, places: Iterator[tuple[int, int]]) -> Iterator[bytes]:
    """Yields stored records in large reads; what lies close together is read at once."""
    span: list[tuple[int, int]] = []
    start = end = 0
    for place in places:
        offset, stored_length = place
        following = offset + record_size(stored_length)
        if span and (not end <= offset <= end + _GAP or following - start > _PIECE):
            yield from _span_copied(log, span, start, end)
            span = []
        if not span:
            start = offset
        span.append(place)
        end = following
    if span:
        yield from _span_copied(log, span, start, end)


def _span_copied(log: Log, span: list[tuple[int, int]], start: int, end: int) -> Iterator[bytes]:
    data = log.storage.read(start, end - start)
    view = memoryview(data)
    begin = position = 0  # of the records in a row that have not been given yet
    for offset, stored_length in span:
        at = offset - start
        payload = view[at + RECORD_HEADER_SIZE : at + RECORD_HEADER_SIZE + stored_length]
        header = decode_header(data, at, offset) if len(data) >= at + RECORD_HEADER_SIZE else None
        # What was collected as garbage since it was planned is a void now, and no checksum would tell.
        if (
            header is None
            or header.kind is ObjectKind.VOID
            or header.stored_length != stored_length
            or len(payload) != stored_length
        ):
            raise CorruptRecord(f"No valid record stands at offset {offset} of the log.", offset=offset)
        if not header.accepts(payload):
            raise payload_damage(offset)
        if at != position:
            yield data[begin:position]
            begin = at
        position = at + record_size(stored_length)
    yield data if not begin and position == len(data) else data[begin:position]
