"""Files of this machine that are to be stored: opened safely, read whole or in pieces."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from svc.plugin import Hash, Path, content_hasher

__all__ = [
    "SMALL_FILE",
    "ByteReader",
    "DescriptorReader",
    "SourceFile",
    "SourceUnreadable",
    "hash_source",
    "is_clamped",
    "is_unchanged",
    "open_source",
    "read_source",
    "status_of",
    "time_in_ms",
]

SMALL_FILE = 64 * 1024
"""Files up to this size are one chunk; they are read in one call and travel in groups."""

_PIECE = 1024 * 1024
_LATEST_MS = 253_402_300_799_999

# A name that became a FIFO or a link since it was listed neither blocks nor leads elsewhere.
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class ByteReader(Protocol):
    """Something bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Returns at most ``size`` bytes; nothing at the end. -1 leaves the number to the reader."""


class SourceUnreadable(Exception):
    """A file could not be read to its end; the text says why, in words for a person."""


class SourceFile(msgspec.Struct, frozen=True, gc=False):
    """A regular file on the disk, as it was when it was listed, and its ``path`` in the database.

    Without a ``content_type`` its content and its name decide.
    """

    path: Path
    location: str
    size: int
    mtime_ns: int
    content_type: str | None = None

    @property
    def time_ms(self) -> int:
        """The time of its last modification in Unix milliseconds."""
        return time_in_ms(self.mtime_ns)


def time_in_ms(nanoseconds: int) -> int:
    """Unix nanoseconds as whole Unix milliseconds, from 1970 to the end of the year 9999."""
    return min(max(0, nanoseconds // 1_000_000), _LATEST_MS)


def is_clamped(nanoseconds: int) -> bool:
    """Whether ``time_in_ms`` gives the nearest time that can be kept, which is not the file's own."""
    return not 0 <= nanoseconds // 1_000_000 <= _LATEST_MS


class DescriptorReader:
    """Reads a file descriptor, which stays the caller's, without a buffer of its own.

    ``limit``: bytes after which the reader ends although the file may not; ``location`` names the file in
    errors.
    """

    __slots__ = ("_descriptor", "_left", "_location")

    def __init__(self, descriptor: int, location: str, limit: int | None = None) -> None:
        self._descriptor = descriptor
        self._location = location
        self._left = limit

    def rewind(self) -> None:
        """Goes back to the file's first byte, for a body that has to be sent again."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)

    def read(self, size: int = -1, /) -> bytes:
        """Returns at most ``size`` bytes (at most 1 MiB at once); nothing at the end.

        Raises SourceUnreadable also where the file ended before its limit.
        """
        wanted = _PIECE if size < 0 else size
        if self._left is not None:
            wanted = min(wanted, self._left)
        if not wanted:
            return b""
        try:
            piece = os.read(self._descriptor, wanted)
        except OSError as error:
            raise SourceUnreadable(_reason(error)) from error
        if self._left is not None:
            if not piece:
                raise SourceUnreadable("it became shorter while it was read")
            self._left -= len(piece)
        return piece


@contextmanager
def open_source(location: str) -> Iterator[tuple[int, os.stat_result]]:
    """Opens a regular file and yields its descriptor and status; SourceUnreadable for anything else."""
    try:
        descriptor = os.open(location, _OPEN_FLAGS)
    except OSError as error:
        raise SourceUnreadable(_reason(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SourceUnreadable("it is not a regular file any more")
        yield descriptor, status
    finally:
        os.close(descriptor)


def read_source(location: str, expected_size: int) -> tuple[bytes, os.stat_result]:
    """Returns the content of a small file, all of it, and its status behind that; in few system calls."""
    try:
        descriptor = os.open(location, _OPEN_FLAGS)
    except OSError as error:
        raise SourceUnreadable(_reason(error)) from error
    try:
        content = os.read(descriptor, expected_size + 1)
        if content and len(content) == expected_size:
            return content, os.fstat(descriptor)
        if not content and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SourceUnreadable("it is not a regular file any more")
        pieces = [content]
        while piece := os.read(descriptor, _PIECE):
            pieces.append(piece)
        return b"".join(pieces), os.fstat(descriptor)
    except OSError as error:
        raise SourceUnreadable(_reason(error)) from error
    finally:
        os.close(descriptor)


def is_unchanged(file: SourceFile, status: os.stat_result) -> bool:
    """Whether a file is, behind its last byte, as when it was listed: else what was read may be torn."""
    return (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)


def status_of(location: str) -> os.stat_result:
    """Returns the status of a file; SourceUnreadable where it is gone."""
    try:
        return os.stat(location)
    except OSError as error:
        raise SourceUnreadable(_reason(error)) from error


def hash_source(location: str) -> Hash:
    """Returns the content hash of a file."""
    hasher = content_hasher()
    with open_source(location) as (descriptor, _):
        reader = DescriptorReader(descriptor, location)
        while piece := reader.read(_PIECE):
            hasher.update(piece)
    return hasher.digest()


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it vanished while the tree was read"
    return (error.strerror or str(error)).lower()
