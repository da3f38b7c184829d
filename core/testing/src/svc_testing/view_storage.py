"""A view's storage in memory, and one that breaks off in the middle of its writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

__all__ = ["InterruptedStorage", "MemoryViewStorage", "StorageInterrupted"]


class StorageInterrupted(Exception):
    """Raised in the place of a write that a crash prevented."""


class MemoryViewStorage:
    """Ordered byte keys and values in a dictionary; takes the place of a ``ViewStorage``.

    Args:
        contents: what it holds at first; copied.
        directory: of a view that keeps files.

    Attributes:
        horizon: nothing was collected where it stands.
    """

    horizon = 0

    def __init__(self, contents: dict[bytes, bytes] | None = None, directory: Path | None = None) -> None:
        self.contents = dict(contents or {})
        self.directory = directory

    def copy(self, directory: Path | None, writes: int | None = None) -> MemoryViewStorage:
        """Returns a storage with the same data, and with the same files in another directory.

        Args:
            directory: an empty directory; None for a view that keeps no files.
            writes: how many writes succeed; None for all.
        """
        if directory is not None and self.directory is not None:
            shutil.copytree(self.directory, directory, dirs_exist_ok=True)
        if writes is None:
            return MemoryViewStorage(self.contents, directory)
        return InterruptedStorage(self.contents, writes, directory)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        return self.contents.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a key."""
        self.contents[bytes(key)] = bytes(value)

    def delete(self, key: bytes) -> bool:
        """Removes a key and says whether it was there."""
        return self.contents.pop(bytes(key), None) is not None

    def scan(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yields keys and values in key order, behind ``after``, while keys begin with ``prefix``."""
        for key in sorted(self.contents):
            if key.startswith(prefix) and (after is None or key > after):
                yield key, self.contents[key]


class InterruptedStorage(MemoryViewStorage):
    """A storage whose writes stop working after some.

    Args:
        contents: what it holds at first; copied.
        writes: how many writes succeed before ``StorageInterrupted`` is raised.
        directory: of a view that keeps files.
    """

    def __init__(self, contents: dict[bytes, bytes], writes: int, directory: Path | None = None) -> None:
        super().__init__(contents, directory)
        self._left = writes

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a key, unless the crash has come."""
        self._count()
        super().put(key, value)

    def delete(self, key: bytes) -> bool:
        """Removes a key, unless the crash has come."""
        self._count()
        return super().delete(key)

    def _count(self) -> None:
        if self._left == 0:
            raise StorageInterrupted
        self._left -= 1
