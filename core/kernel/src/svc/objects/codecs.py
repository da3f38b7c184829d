"""How an object's content is stored: raw, or Zstandard (RFC 8878) level 1 where that saves at least 5%."""

from __future__ import annotations

from collections import deque
from enum import IntEnum

import zstandard

from svc.errors import CorruptRecord

__all__ = ["MINIMUM_COMPRESSED_SIZE", "Codec", "CompressionTrial", "compress", "decompress"]

MINIMUM_COMPRESSED_SIZE = 4096
"""Below this many bytes a value is stored raw: the frame and the call cost more than they save."""

_WORTHWHILE = 0.95
_LEVEL = 1
_GIVE_UP_AFTER = 8
_TRY_AGAIN_EVERY = 16

# A compressor may not be used by two threads at once, and making one costs more than using it.
_compressors: deque[zstandard.ZstdCompressor] = deque(maxlen=16)
_decompressors: deque[zstandard.ZstdDecompressor] = deque(maxlen=16)


class Codec(IntEnum):
    """The codec number in a record's header; part of the file format."""

    RAW = 0
    ZSTD = 1


def compress(content: bytes | bytearray | memoryview) -> tuple[Codec, bytes]:
    """Returns the codec and the stored form of a content; a compressed frame states the content's size."""
    size = len(content)
    if size >= MINIMUM_COMPRESSED_SIZE:
        try:
            compressor = _compressors.pop()
        except IndexError:
            compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False)
        stored = compressor.compress(content)
        _compressors.append(compressor)
        if len(stored) <= size * _WORTHWHILE:
            return Codec.ZSTD, stored
    return Codec.RAW, bytes(content)


def decompress(codec: int, stored: bytes, raw_length: int) -> bytes:
    """Returns the content of a stored form.

    No more than ``raw_length`` bytes are ever produced, so a hostile frame cannot exhaust memory. Raises
    CorruptRecord for an unknown codec, a broken frame, or another size than stated.
    """
    if codec == Codec.RAW:
        content = stored
    elif codec == Codec.ZSTD:
        content = _decompress_zstd(stored, raw_length)
    else:
        raise CorruptRecord(f"A record names codec {codec}, which this program does not know.")
    if len(content) != raw_length:
        raise CorruptRecord("A record's content has another size than its header states.")
    return content


class CompressionTrial:
    """Compresses the chunks of one stream, and stops trying while it does not pay, as for video or archives.

    After eight chunks in a row that did not shrink, only every sixteenth is tried until one does.
    """

    def __init__(self) -> None:
        self._failures = 0

    def compress(self, content: bytes | memoryview) -> tuple[Codec, bytes | memoryview]:
        """As the module's ``compress``, but may leave a content raw without a trial, uncopied."""
        if self._failures >= _GIVE_UP_AFTER and (self._failures - _GIVE_UP_AFTER) % _TRY_AGAIN_EVERY:
            self._failures += 1
            return Codec.RAW, content
        codec, stored = compress(content)
        self._failures = 0 if codec is Codec.ZSTD else self._failures + 1
        return codec, stored


def _decompress_zstd(stored: bytes, raw_length: int) -> bytes:
    try:
        decompressor = _decompressors.pop()
    except IndexError:
        decompressor = zstandard.ZstdDecompressor()
    try:
        if zstandard.frame_content_size(stored) != raw_length:
            raise CorruptRecord("A compressed record states another size than its header.")
        return decompressor.decompress(stored, max_output_size=raw_length)
    except zstandard.ZstdError as error:
        raise CorruptRecord("A compressed record cannot be decompressed.") from error
    finally:
        _decompressors.append(decompressor)
