"""A ZIP archive as a stream, made while it is sent.

Memory is bounded whatever the archive holds: a file of over 1 MiB passes through piece by piece, and the
central directory waits in a temporary file once it is large. ZIP64 fields appear where sizes, offsets
or counts need them (PKWARE APPNOTE 6.3.10: 4.3.7 to 4.3.16 and 4.5.3).
"""

from __future__ import annotations

import struct
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import IO

from msgspec import Struct

__all__ = ["ZipMember", "stream_zip"]

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END64 = struct.Struct("<IQHHIIQQQQ")
_LOCATOR = struct.Struct("<IIQI")
_END = struct.Struct("<IHHHHIIH")

_UTF8 = 0x0800
_DESCRIPTOR = 0x0008
_STORED, _DEFLATED = 0, 8
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_UNIX_FILE = (0o100644 << 16, 3 << 8)
_UNIX_DIRECTORY = (0o040755 << 16 | 0x10, 3 << 8)

_WHOLE_LIMIT = 1 << 20
_DIRECTORY_MEMORY = 1 << 20
_PIECE = 256 * 1024
# Deflate may add bytes to what it can't shrink; sizes this near the limit get 64-bit fields.
_NEAR_4_GIB = _MAX32 - (1 << 24)


class ZipMember(Struct, frozen=True):
    """One file or directory of an archive.

    Attributes:
        name: path inside the archive, with ``/`` between segments; ends with ``/`` for a directory.
        updated_ms: Unix milliseconds; the archive holds it in UTC, to two seconds.
        pieces: the content; exactly ``size`` bytes, else the stream raises ValueError.
    """

    name: str
    size: int
    updated_ms: int
    pieces: Iterable[bytes] = ()
    compress: bool = True


def stream_zip(members: Iterable[ZipMember | None]) -> Iterator[bytes]:
    """Yields an archive of the members, in pieces of at most about 1 MiB.

    Members are taken one by one, so that they can be made on the way. None stands for work that gave no
    member: an empty piece is yielded, at which whoever sends the archive may stop.
    """
    with tempfile.SpooledTemporaryFile(max_size=_DIRECTORY_MEMORY) as directory:
        offset = 0
        count = 0
        for member in members:
            if member is None:
                yield b""
                continue
            written = _Written()
            yield from _member(member, written)
            directory.write(_central_header(member, written, offset))
            offset += written.length
            count += 1
        size = directory.tell()
        directory.seek(0)
        yield from _pieces_of(directory)
        yield _end(count, size, offset)


class _Written(Struct):
    method: int = _STORED
    flags: int = _UTF8
    crc: int = 0
    compressed: int = 0
    length: int = 0
    wide: bool = False


def _member(member: ZipMember, written: _Written) -> Iterator[bytes]:
    if member.size <= _WHOLE_LIMIT:
        yield _small_member(member, written)
        return
    written.method = _DEFLATED if member.compress else _STORED
    written.flags |= _DESCRIPTOR
    written.wide = member.size >= _NEAR_4_GIB
    head = _local_header(member, written)
    written.length = len(head)
    yield head
    size = 0
    packer = zlib.compressobj(1, zlib.DEFLATED, -15) if member.compress else None
    for piece in member.pieces:
        size += len(piece)
        written.crc = zlib.crc32(piece, written.crc)
        packed = packer.compress(piece) if packer is not None else piece
        written.compressed += len(packed)
        if packed:
            yield packed
    tail = packer.flush() if packer is not None else b""
    written.compressed += len(tail)
    _require_size(member, size)
    descriptor = struct.pack(
        "<IIQQ" if written.wide else "<IIII", 0x08074B50, written.crc, written.compressed, size
    )
    written.length += written.compressed + len(descriptor)
    yield tail + descriptor


def _small_member(member: ZipMember, written: _Written) -> bytes:
    """Head and content in one piece, with sizes and checksum in front: every reader can take that."""
    content = b"".join(member.pieces)
    _require_size(member, len(content))
    written.crc = zlib.crc32(content)
    if member.compress and content:
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        packed = packer.compress(content) + packer.flush()
        if len(packed) < len(content):
            content = packed
            written.method = _DEFLATED
    written.compressed = len(content)
    head = _local_header(member, written)
    written.length = len(head) + len(content)
    return head + content


def _require_size(member: ZipMember, size: int) -> None:
    if size != member.size:
        raise ValueError(f"a member states {member.size} bytes and has {size}")


def _local_header(member: ZipMember, written: _Written) -> bytes:
    name = member.name.encode("utf-8")
    streamed = bool(written.flags & _DESCRIPTOR)
    extra = struct.pack("<HHQQ", 1, 16, 0, 0) if written.wide else b""
    size = _MAX32 if written.wide else (0 if streamed else member.size)
    compressed = _MAX32 if written.wide else (0 if streamed else written.compressed)
    return (
        _LOCAL.pack(
            0x04034B50,
            45 if written.wide else 20,
            written.flags,
            written.method,
            *_dos_time(member.updated_ms),
            0 if streamed else written.crc,
            compressed,
            size,
            len(name),
            len(extra),
        )
        + name
        + extra
    )


def _central_header(member: ZipMember, written: _Written, offset: int) -> bytes:
    name = member.name.encode("utf-8")
    wide = [
        number
        for number, forced in (
            (member.size, written.wide),
            (written.compressed, written.wide),
            (offset, offset >= _MAX32),
        )
        if forced
    ]
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    attributes, system = _UNIX_DIRECTORY if member.name.endswith("/") else _UNIX_FILE
    version = 45 if wide else 20
    return (
        _CENTRAL.pack(
            0x02014B50,
            system | version,
            version,
            written.flags,
            written.method,
            *_dos_time(member.updated_ms),
            written.crc,
            _MAX32 if written.wide else written.compressed,
            _MAX32 if written.wide else member.size,
            len(name),
            len(extra),
            0,
            0,
            0,
            attributes,
            min(offset, _MAX32),
        )
        + name
        + extra
    )


def _end(count: int, size: int, offset: int) -> bytes:
    end = b""
    if count >= _MAX16 or size >= _MAX32 or offset >= _MAX32:
        end = _END64.pack(0x06064B50, 44, 3 << 8 | 45, 45, 0, 0, count, count, size, offset)
        end += _LOCATOR.pack(0x07064B50, 0, offset + size, 1)
    entries = min(count, _MAX16)
    return end + _END.pack(0x06054B50, 0, 0, entries, entries, min(size, _MAX32), min(offset, _MAX32), 0)


def _dos_time(time_ms: int) -> tuple[int, int]:
    seconds = min(max(time_ms // 1000, 315532800), 4354819198)  # 1980-01-01 to 2107-12-31
    moment = time.gmtime(seconds)
    clock = moment.tm_hour << 11 | moment.tm_min << 5 | moment.tm_sec // 2
    date = (moment.tm_year - 1980) << 9 | moment.tm_mon << 5 | moment.tm_mday
    return clock, date


def _pieces_of(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
