"""Compacting: replaces the log by a copy without the blocks of its voids.

For file systems that cannot free a part of a file. Every record keeps its offset, so nothing else has to be
rebuilt; in the copy the bytes of voids are a hole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from svc.errors import CorruptRecord, DatabaseBusy, InsufficientStorage, InvalidInput
from svc.hashing import ObjectKind
from svc.log import FIRST, RECORD_HEADER_SIZE, Log
from svc.log.creation import open_error, sync_directory
from svc.log.file_operations import FileOperations

__all__ = ["CompactReport", "compact"]

_PIECE = 1 << 20
_BLOCK = 4096
_LEAST_GAIN = 64 * 1024


class CompactReport(Struct, frozen=True):
    """Bytes on disk before and after, and whether a copy replaced the file: not if nothing would be won."""

    allocated_before: int
    allocated_after: int
    replaced: bool


def compact(
    path: str | os.PathLike[str], progress: Callable[[int, int], None] | None = None
) -> CompactReport:
    """Writes a copy of a database file without what its voids take, and puts it in its place. Blocks.

    Nobody else may have the database open. The copy is compared with the file, byte by byte, before it takes
    its place; whatever ends this leaves the one or the other, whole. Run a collection before.

    Args:
        path: the file.
        progress: called with (bytes done, bytes in all).

    Raises:
        DatabaseBusy: somebody has the database open.
        InsufficientStorage: there is no room for the copy; the file is as before.
        CorruptRecord: the log is damaged: repair it first.
        SvcError: as opening a database.
    """
    from svc.database.database import Database

    with Database(path, create=False) as opened:  # finishes what a crash has left
        place = Path(os.path.realpath(opened.path))
    with Log.open(place, create=False) as log:
        if not log.exclude_others():
            raise DatabaseBusy(f"{place.name} is open elsewhere: stop the server first.")
        size = log.storage.size()
        if log.tail != size:
            raise InvalidInput(f"{place.name} is not at rest; open it once and try again.")
        before = place.stat()
        copy = place.with_name(f".{place.name}.compact-{os.getpid()}")
        try:
            _copy(log, copy, size, before.st_mode & 0o777, progress or (lambda done, total: None))
            after = copy.stat()
            if after.st_blocks * 512 + _LEAST_GAIN > before.st_blocks * 512:
                return CompactReport(before.st_blocks * 512, before.st_blocks * 512, False)
            if os.geteuid() == 0:
                os.chown(copy, before.st_uid, before.st_gid)
            os.replace(copy, place)
            sync_directory(place.parent, FileOperations())
        except OSError as error:
            raise open_error(error, place) from error
        finally:
            with suppress(FileNotFoundError):
                copy.unlink()
    return CompactReport(before.st_blocks * 512, place.stat().st_blocks * 512, True)


def _copy(log: Log, copy: Path, size: int, mode: int, progress: Callable[[int, int], None]) -> None:
    free, _ = log.disk_space()
    pieces = list(_kept(log, size))
    needed = sum(end - begin for begin, end in pieces)
    if needed > free:
        raise InsufficientStorage(f"There is no room for a copy of {needed:,} bytes; {free:,} are free.")
    target = os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.ftruncate(target, size)
        for begin, end in pieces:
            for offset in range(begin, end, _PIECE):
                content = memoryview(log.read_stretch(offset, min(end, offset + _PIECE)))
                while content:
                    written = os.pwrite(target, content, offset)
                    offset += written  # noqa: PLW2901 - what is left of the piece
                    content = content[written:]
                progress(offset, 2 * size)
        os.fsync(target)
        for begin, end in pieces:
            for offset in range(begin, end, _PIECE):
                length = min(end, offset + _PIECE) - offset
                if os.pread(target, length, offset) != log.read_stretch(offset, offset + length):
                    raise CorruptRecord("The copy is not what was written: the disk fails.", offset=offset)
                progress(size + offset, 2 * size)
    finally:
        os.close(target)


def _kept(log: Log, size: int) -> Iterator[tuple[int, int]]:
    """Yields what is copied: everything but the whole blocks within voids."""
    begin = 0
    for record in log.scan(FIRST, size):
        if record.kind is not ObjectKind.VOID:
            continue
        first = -(-(record.offset + RECORD_HEADER_SIZE) // _BLOCK) * _BLOCK
        last = record.end // _BLOCK * _BLOCK
        if first < last:
            yield begin, first
            begin = last
    yield begin, size
