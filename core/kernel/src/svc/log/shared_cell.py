"""A small value in memory that all processes share, and that survives the death of any of them.

One writer at a time stores bytes of a fixed size; any number of readers take them without a lock, in about a
microsecond. Two slots take turns, each with counter and checksum: a killed writer leaves one as it was.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import mmap
import os
import struct
import uuid
from pathlib import Path

from xxhash import xxh3_64_intdigest

from svc.log.creation import open_error

__all__ = ["SharedCell", "boot_id"]

_HEADER = struct.Struct("<8sII")
_MAGIC = b"SVCCELL\x01"
_SLOTS = 64
_CONTENT = slice(_SLOTS, None)
_COUNTER = struct.Struct("<Q")
_LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0)
_UNLOCK = struct.pack("hhqqi4x", fcntl.F_UNLCK, 0, 0, 1, 0)
_ATTEMPTS = 64


@functools.cache
def boot_id() -> bytes:
    """Returns the 16 bytes that name this boot of the machine.

    Where the kernel does not tell, they are random: a cell of another process is then not believed.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return uuid.UUID(file.read().strip()).bytes
    except (OSError, ValueError):
        return uuid.uuid4().bytes


class SharedCell:
    """One value in a memory-mapped file.

    Writers exclude each other by means of their own (a lock of the log); readers need none.

    The file is made when it is missing, and emptied when it is of another shape; where it may only be
    read it then holds no value. ``ReadOnly``, ``Forbidden``, ``InsufficientStorage``: it cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str], payload_size: int, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.payload_size = payload_size
        self.read_only = read_only
        stride = (8 + payload_size + 8 + 63) & ~63
        # Offsets behind the header of the file.
        self._first = 0
        self._second = stride
        self._checked = 8 + payload_size
        self._counters = struct.Struct(f"<Q{stride - 8}xQ").unpack_from
        self._size = _SLOTS + 2 * stride
        self._shape = _HEADER.pack(_MAGIC, payload_size, 0)
        self._map: mmap.mmap | None = None
        self._identity = (0, 0)
        self._closed = False
        # Both slots as they were last verified, and the newest payload: one attribute, so that threads
        # see a pair.
        self._seen = (b"", b"")
        # Both slots as the last write here left them, where the next one goes, and its counter.
        self._next = (b"", self._first, 1)
        if not read_only:
            try:
                self._map = self._open_writable()
            except OSError as error:
                raise open_error(error, self.path, readable=True) from error

    def read(self) -> bytes | None:
        """Returns the newest value that was written whole, or None when there is none. Never blocks."""
        memory = self._map
        if memory is None:
            memory = self._open_readable()
            if memory is None:
                return None
        content = memory[_CONTENT]
        seen, payload = self._seen
        return payload if content == seen else self._newest(memory)

    def _newest(self, memory: mmap.mmap) -> bytes | None:
        """As ``read``, where something else stands there than was seen last."""
        for _ in range(_ATTEMPTS):
            content = memory[_CONTENT]
            one, two = self._counters(content)
            if not (one or two):
                return None
            newest, other = (self._first, self._second) if one > two else (self._second, self._first)
            # Where the newest slot is not whole, it is being written, or its writer was killed.
            found = self._slot(content, newest)
            if found is None:
                found = self._slot(content, other)
            if found is not None:
                self._seen = (content, found)
                return found
        return None

    def write(self, payload: bytes) -> None:
        """Replaces the value. Only one writer may be at work at a time; never blocks.

        ``ValueError``: the payload has not the cell's size, or the cell is read-only or closed.
        """
        memory = self._map
        if memory is None or self.read_only:
            raise ValueError("The cell is not open for writing.")
        if len(payload) != self.payload_size:
            raise ValueError(f"The cell holds {self.payload_size} bytes, not {len(payload)}.")
        present = memory[_CONTENT]
        left, target, counter = self._next
        if present != left:
            target, counter = self._next_slot(present)
        content = _COUNTER.pack(counter) + payload
        slot = content + _COUNTER.pack(xxh3_64_intdigest(content))
        end = target + len(slot)
        memory[_SLOTS + target : _SLOTS + end] = slot
        # What stands there now, should nobody else write meanwhile: it need not be verified.
        left = present[:target] + slot + present[end:]
        self._next = (left, self._second if target == self._first else self._first, counter + 1)
        self._seen = (left, payload)

    def sync(self) -> None:
        """Makes what was written durable; blocks. Only a withdrawal needs it: other values may be lost."""
        if self._map is not None:
            self._map.flush()

    @property
    def orphaned(self) -> bool:
        """Whether the file was deleted or replaced since: others then no longer see this cell."""
        if self._map is None:
            return False
        try:
            found = os.stat(self.path)
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != self._identity

    def close(self) -> None:
        """Lets go of the memory; closing twice does no harm."""
        memory, self._map = self._map, None
        self._closed = True
        if memory is not None:
            memory.close()

    def _next_slot(self, present: bytes) -> tuple[int, int]:
        """Where the next write goes, and its counter: never into the newest slot that is whole."""
        one, two = self._counters(present)
        # A slot that its writer left half written counts as the oldest, whatever its counter says.
        if one > two:
            one, two = (one, two) if self._slot(present, self._first) is not None else (0, two)
        elif two:
            one, two = (one, two) if self._slot(present, self._second) is not None else (one, 0)
        return self._second if one > two else self._first, max(one, two) + 1

    def _slot(self, slots: bytes, start: int) -> bytes | None:
        """The payload of a slot if it is whole."""
        content = slots[start : start + self._checked + 8]
        checked = content[: self._checked]
        if xxh3_64_intdigest(checked) != int.from_bytes(content[self._checked :], "little"):
            return None
        return checked[8:]

    def _open_writable(self) -> mmap.mmap:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, _LOCK)
            if not self._has_shape(fd):
                # Written out in full: a hole in the file could turn a full disk into a fatal signal.
                # Never made shorter: another process may have it mapped.
                content = self._shape + bytes(self._size - len(self._shape))
                if os.pwrite(fd, content, 0) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(self.path))
            memory = self._mapped(fd, mmap.ACCESS_WRITE)
            # The mapping keeps a duplicate of the descriptor, and with it the lock.
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _UNLOCK)
            return memory
        finally:
            os.close(fd)

    def _open_readable(self) -> mmap.mmap | None:
        if self._closed:
            return None
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if self._has_shape(fd):
                self._map = self._mapped(fd, mmap.ACCESS_READ)
        except OSError:
            return None
        finally:
            os.close(fd)
        return self._map

    def _has_shape(self, fd: int) -> bool:
        return os.pread(fd, len(self._shape), 0) == self._shape and os.fstat(fd).st_size >= self._size

    def _mapped(self, fd: int, access: int) -> mmap.mmap:
        found = os.fstat(fd)
        self._identity = (found.st_dev, found.st_ino)
        return mmap.mmap(fd, self._size, access=access)
