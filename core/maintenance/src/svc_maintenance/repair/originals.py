"""Overwriting bytes of a log: what stood there is saved beside the file before anything is changed."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from xxhash import xxh3_64_intdigest

from svc.errors import CorruptRecord
from svc.log.creation import open_error, sync_directory
from svc.log.file_operations import FileOperations

__all__ = ["Overwriter", "saved_originals"]

_MAGIC = b"SVCSAVE1"
_ENTRY = struct.Struct("<QQQ")
"""Offset, length and xxh3_64 of the bytes that follow, padded to eight."""

_MOST_WAITING = 256
_MOST_WAITING_BYTES = 16 << 20


class Overwriter:
    """Changes bytes of a file in place. Changes wait until ``flush``; ``read`` shows them already.

    What stood there is saved in ``<path>.repaired-<number>``, which ``saved_to`` names once there is one.
    """

    def __init__(self, path: Path, operations: FileOperations | None = None) -> None:
        self._path = Path(os.path.realpath(path))
        self._calls = operations if operations is not None else FileOperations()
        self._waiting: list[tuple[int, bytes]] = []
        self._waiting_bytes = 0
        self._copy = -1
        self.saved_to: Path | None = None
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise open_error(error, path) from error

    def size(self) -> int:
        """Returns the bytes of the file."""
        return os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Returns bytes as they will be after ``flush``; fewer only where the file ends."""
        data = self._calls.pread(self._fd, length, offset)
        for at, waiting in self._waiting:
            if at < offset + len(data) and offset < at + len(waiting):
                first, last = max(at, offset), min(at + len(waiting), offset + len(data))
                data = data[: first - offset] + waiting[first - at : last - at] + data[last - offset :]
        return data

    def write(self, offset: int, data: bytes) -> None:
        """Lets bytes stand at an offset; those that stand there already are not touched."""
        before = self.read(offset, len(data))
        first, last = 0, len(data)
        if len(before) == len(data):
            while first < last and before[first] == data[first]:
                first += 1
            while last > first and before[last - 1] == data[last - 1]:
                last -= 1
        if first < last:
            self._waiting.append((offset + first, data[first:last]))
            self._waiting_bytes += last - first
        if len(self._waiting) >= _MOST_WAITING or self._waiting_bytes >= _MOST_WAITING_BYTES:
            self.flush()

    def cut(self, offset: int) -> None:
        """Makes the file end at an offset; what stood behind it is saved."""
        self.flush()
        self._save(offset, self.size() - offset)
        self._calls.ftruncate(self._fd, offset)
        self._calls.fsync(self._fd)

    def flush(self) -> None:
        """Saves what stands there, makes the copy durable, and then changes the file, durably.

        After ``InsufficientStorage`` nothing was changed; after an OSError, what is changed was saved.
        """
        if not self._waiting:
            return
        for offset, data in self._waiting:
            self._save(offset, len(data), sync=False)
        self._calls.fsync(self._copy)
        for offset, data in self._waiting:
            written = 0
            while written < len(data):
                written += self._calls.pwritev(self._fd, [data[written:]], offset + written)
        self._calls.fdatasync(self._fd)
        self._waiting.clear()
        self._waiting_bytes = 0

    def close(self) -> None:
        """Closes the file; what waits is forgotten."""
        os.close(self._fd)
        if self._copy >= 0:
            os.close(self._copy)

    def _save(self, offset: int, length: int, *, sync: bool = True) -> None:
        try:
            if self._copy < 0:
                self._open_copy()
            while length > 0:
                data = self._calls.pread(self._fd, min(length, 1 << 20), offset)
                if not data:
                    break
                padding = bytes(-len(data) & 7)
                entry = _ENTRY.pack(offset, len(data), xxh3_64_intdigest(data)) + data + padding
                while entry:
                    entry = entry[os.write(self._copy, entry) :]
                offset += len(data)
                length -= len(data)
            if sync:
                self._calls.fsync(self._copy)
        except OSError as error:
            raise open_error(error, self.saved_to or self._path) from error

    def _open_copy(self) -> None:
        for number in range(1, 10_000):
            name = self._path.with_name(f"{self._path.name}.repaired-{number}")
            try:
                self._copy = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                continue
            self.saved_to = name
            os.write(self._copy, _MAGIC)
            sync_directory(name.parent, self._calls)
            return
        raise FileExistsError(f"{self._path.name}.repaired-* are too many; move them away.")


def saved_originals(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields (offset, bytes) that a repair overwrote, in order; written back in reverse they undo it."""
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise CorruptRecord(f"{path} is no copy of what a repair has overwritten.")
        while len(head := file.read(_ENTRY.size)) == _ENTRY.size:
            offset, length, checksum = _ENTRY.unpack(head)
            data = file.read(length)
            if len(data) < length:
                return
            if xxh3_64_intdigest(data) != checksum:
                raise CorruptRecord(f"{path} is damaged.", offset=offset)
            yield offset, data
            file.seek(-length & 7, os.SEEK_CUR)
