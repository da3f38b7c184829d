"""Finds the original of bytes with one wrong byte or bit, by trying: a checksum of 64 bits identifies it.

A wrong result is as likely as a collision of the checksum: one in some hundred trillions.
"""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from svc.log import RECORD_HEADER_SIZE
from svc.log.framing import FILE_HEADER_SIZE, RECORD_MAGIC

__all__ = ["corrected_file_header", "corrected_header", "corrected_payload"]

MOST_TRIED_BYTES = 16 << 10
"""Larger payloads are not tried: it would take seconds for each."""

_CHECKSUM = 8


def corrected_header(data: bytes) -> bytes | None:
    """Returns a record's header, in which one byte was changed, as it was; None if that explains nothing."""
    if len(data) != RECORD_HEADER_SIZE:
        return None
    found = _with_one_byte(data)
    return found if found is not None and found.startswith(RECORD_MAGIC) else None


def corrected_file_header(data: bytes) -> bytes | None:
    """As ``corrected_header``, for the header of a file."""
    return _with_one_byte(data) if len(data) == FILE_HEADER_SIZE else None


def corrected_payload(payload: bytes, checksum: int) -> bytes | None:
    """Returns a payload in which one bit was changed, as it was; None when that does not explain it."""
    if len(payload) > MOST_TRIED_BYTES:
        return None
    tried = bytearray(payload)
    for at in range(len(tried)):
        for bit in (1, 2, 4, 8, 16, 32, 64, 128):
            tried[at] ^= bit
            if xxh3_64_intdigest(tried) == checksum:
                return bytes(tried)
            tried[at] ^= bit
    return None


def _with_one_byte(data: bytes) -> bytes | None:
    """Tries every change of one byte in ``data``, which ends with the checksum of the rest."""
    checked, stored = bytearray(data[:-_CHECKSUM]), data[-_CHECKSUM:]
    computed = xxh3_64_intdigest(checked).to_bytes(_CHECKSUM, "little")
    if sum(one != other for one, other in zip(computed, stored, strict=True)) <= 1:
        return bytes(checked) + computed
    wanted = int.from_bytes(stored, "little")
    for at in range(len(checked)):
        before = checked[at]
        for value in range(256):
            checked[at] = value
            if xxh3_64_intdigest(checked) == wanted:
                return bytes(checked) + stored
        checked[at] = before
    return None
