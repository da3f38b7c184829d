"""Many small chunks on their way into the log: framed and placed by columns, not one by one.

A bulk import brings thousands of them in each transaction (decision 036).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, repeat

from svc.clock import now_ms
from svc.hashing import Hash, ObjectKind
from svc.log import Log, record_size
from svc.log.framing import frame_records
from svc.objects.codecs import MINIMUM_COMPRESSED_SIZE, Codec, compress
from svc.objects.key_index import PackedPlace, pack_place
from svc.objects.large_content import append_pieces

__all__ = ["append_chunks"]

_CHUNK, _RAW = int(ObjectKind.CHUNK), int(Codec.RAW)


def append_chunks(log: Log, chunks: Mapping[Hash, bytes]) -> dict[Hash, PackedPlace]:
    """Appends chunks of the user tree to the log, unsynced, for a later commit; returns their places.

    None is stored or pending, and none has more than 64 KiB. Where the disk is full, nothing was kept.
    """
    if not chunks:
        return {}
    hashes, contents = list(chunks), list(chunks.values())
    lengths = list(map(len, contents))
    stored, codecs = _stored_forms(contents, lengths)
    stored_lengths = list(map(len, stored))
    pieces = frame_records(_CHUNK, hashes, stored, lengths, codecs, time_ms=now_ms())
    begin = append_pieces(log, [b"".join(pieces)])
    offsets = accumulate(map(record_size, stored_lengths), initial=begin)
    places = map(pack_place, offsets, stored_lengths, lengths, repeat(_CHUNK), repeat(0), codecs)
    return dict(zip(hashes, places, strict=True))


def _stored_forms(contents: list[bytes], lengths: list[int]) -> tuple[list[bytes], list[int]]:
    if max(lengths) < MINIMUM_COMPRESSED_SIZE:
        return contents, [_RAW] * len(contents)
    stored, codecs = contents.copy(), [_RAW] * len(contents)
    for at, length in enumerate(lengths):
        if length >= MINIMUM_COMPRESSED_SIZE:
            codecs[at], stored[at] = compress(contents[at])
    return stored, codecs
