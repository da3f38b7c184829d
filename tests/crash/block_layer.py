"""A block layer that remembers every write and sync of a log, and makes what a power cut may leave of it.

The system calls of a log flow in, while it is worked on; images of the file flow out. The rule of an
image: what a completed sync covers is there; each 4 KiB page that was written since may stand as it was at
any moment between that sync and the cut, each of its 512-byte sectors may, and the file may have any length
between.
A sync that failed leaves its pages clean and lost: no later sync brings them to the disk.
"""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from svc.log import FileOperations

__all__ = ["Recording", "Sync", "Truncation", "Write", "record"]

PAGE = 4096
SECTOR = 512


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes that were written at an offset."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncation:
    """The file was given a length."""

    length: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync that was completed here; it covers the events before number ``covers``."""

    covers: int
    failed: bool = False


@dataclass(slots=True)
class Recording:
    """What happened to one file.

    Attributes:
        base: its content when the recording began; all of it on the disk.
        events: writes, truncations and syncs, and between them whatever ``note`` was told.
        failing_sync: which sync fails with EIO, counted from 1; 0 for none.
        syncs: how many syncs there were.
    """

    base: bytes
    events: list[Any] = field(default_factory=list)
    failing_sync: int = 0
    syncs: int = 0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def note(self, event: Any) -> None:
        """Puts something of the caller's between the events: what was begun, what was acknowledged."""
        with self._mutex:
            self.events.append(event)

    def operations(self, inode: int) -> type[FileOperations]:
        """Returns the system calls that record what they do to the file of this inode."""
        recording = self

        class Recorded(FileOperations):
            @staticmethod
            def pwritev(fd: int, buffers: Sequence[bytes], offset: int) -> int:
                if os.fstat(fd).st_ino != inode:
                    return os.pwritev(fd, buffers, offset)
                with recording._mutex:
                    count = os.pwritev(fd, buffers, offset)
                    recording.events.append(Write(offset, b"".join(buffers)[:count]))
                    return count

            @staticmethod
            def punch_hole(fd: int, offset: int, length: int) -> None:
                if os.fstat(fd).st_ino != inode:
                    FileOperations.punch_hole(fd, offset, length)
                    return
                with recording._mutex:
                    FileOperations.punch_hole(fd, offset, length)
                    recording.events.append(Write(offset, bytes(length)))

            @staticmethod
            def ftruncate(fd: int, length: int) -> None:
                with recording._mutex:
                    os.ftruncate(fd, length)
                    if os.fstat(fd).st_ino == inode:
                        recording.events.append(Truncation(length))

            @staticmethod
            def fdatasync(fd: int) -> None:
                if os.fstat(fd).st_ino == inode:
                    recording.sync()

            fsync = fdatasync

        return Recorded

    def sync(self) -> None:
        """What stands for a sync: a short wait, so that work gathers meanwhile as behind a real one."""
        with self._mutex:
            covers = len(self.events)
            self.syncs += 1
            failed = self.syncs == self.failing_sync
        time.sleep(0.001)
        with self._mutex:
            self.events.append(Sync(covers, failed))
        if failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def image(self, moment: int, chance: random.Random) -> bytes:
        """Returns one of the files that a power cut after the first ``moment`` events may leave."""
        medium = _Medium(bytearray(self.base), bytearray(self.base))
        for place, event in enumerate(self.events[:moment]):
            medium.take(place, event)
        return medium.image(chance)

    def whole(self, moment: int) -> bytes:
        """Returns the file as every process saw it after the first ``moment`` events: what a kill leaves."""
        content = bytearray(self.base)
        for event in self.events[:moment]:
            _apply(content, event)
        return bytes(content)


@dataclass(slots=True)
class _Medium:
    """A disk, and the page cache above it.

    Attributes:
        disk: what is on the disk for certain.
        cache: what every process sees.
        dirty: for each page, what it has held since it was last written to the disk, by event number.
    """

    disk: bytearray
    cache: bytearray
    dirty: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    sizes: list[tuple[int, int]] = field(default_factory=list)

    def take(self, place: int, event: Any) -> None:
        """Lets an event happen."""
        if isinstance(event, Write):
            _apply(self.cache, event)
            self._dirty_pages(place, event.offset, event.offset + len(event.data))
        elif isinstance(event, Truncation):
            _apply(self.cache, event)
            del self.disk[event.length :]
            first = event.length // PAGE
            self.dirty = {page: versions for page, versions in self.dirty.items() if page < first}
            if event.length % PAGE:
                self._dirty_pages(place, event.length - 1, event.length)
        elif isinstance(event, Sync):
            self._sync(event)

    def image(self, chance: random.Random) -> bytes:
        """Returns one of the files that may be found when the power fails now."""
        content = bytearray(self.disk)
        least, most = len(self.disk), max(len(self.disk), len(self.cache))
        lost = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        torn = chance.choice((0.0, 0.3, 1.0))
        for page, pending in self.dirty.items():
            before = bytes(self.disk[page * PAGE : (page + 1) * PAGE])
            states = [before + bytes(PAGE - len(before)), *(version for _, version in pending)]
            if chance.random() < torn:
                for start in range(0, PAGE, SECTOR):
                    _place(content, page * PAGE + start, _pick(states, lost, chance)[start : start + SECTOR])
            else:
                _place(content, page * PAGE, _pick(states, lost, chance))
        size = _choose_size(least, most, [size for _, size in self.sizes if least <= size <= most], chance)
        del content[size:]
        content.extend(bytes(size - len(content)))
        return bytes(content)

    def _dirty_pages(self, place: int, start: int, end: int) -> None:
        for page in range(start // PAGE, -(-end // PAGE)):
            version = bytes(self.cache[page * PAGE : (page + 1) * PAGE])
            self.dirty.setdefault(page, []).append((place, version + bytes(PAGE - len(version))))
        self.sizes.append((place, len(self.cache)))

    def _sync(self, sync: Sync) -> None:
        size = max((size for place, size in self.sizes if place < sync.covers), default=len(self.disk))
        for page, versions in list(self.dirty.items()):
            covered = [version for place, version in versions if place < sync.covers]
            if covered and not sync.failed:
                _place(self.disk, page * PAGE, covered[-1])
            self.dirty[page] = [(place, version) for place, version in versions if place >= sync.covers]
            if not self.dirty[page]:
                del self.dirty[page]
        if not sync.failed:
            size = min(size, len(self.cache))
            del self.disk[size:]
            self.disk.extend(bytes(size - len(self.disk)))
            self.sizes = [(place, one) for place, one in self.sizes if place >= sync.covers]


def _apply(content: bytearray, event: Any) -> None:
    if isinstance(event, Write):
        _place(content, event.offset, event.data)
    elif isinstance(event, Truncation):
        del content[event.length :]
        content.extend(bytes(event.length - len(content)))


def _place(content: bytearray, offset: int, data: bytes) -> None:
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _pick(states: list[bytes], lost: float, chance: random.Random) -> bytes:
    if chance.random() < lost:
        return states[0]
    return states[-1] if chance.random() < 0.5 else chance.choice(states)


def _choose_size(least: int, most: int, between: list[int], chance: random.Random) -> int:
    kind = chance.random()
    if kind < 0.35:
        return most
    if kind < 0.5:
        return least
    if kind < 0.75 and between:
        return chance.choice(between)
    return chance.randint(least, most)


@contextmanager
def record(path: Path, *, failing_sync: int = 0, unsynced_from: int | None = None) -> Iterator[Recording]:
    """Records what this process does to a log from here on; openings made inside the block are recorded.

    Args:
        path: the file; it must exist.
        failing_sync: which sync shall fail, counted from 1.
        unsynced_from: from which offset on the file is not on the disk yet; None when all of it is.
    """
    content = path.read_bytes()
    recording = Recording(content[:unsynced_from], failing_sync=failing_sync)
    if unsynced_from is not None:
        recording.note(Write(unsynced_from, content[unsynced_from:]))
    with mock.patch("svc.log.local_file.FileOperations", recording.operations(path.stat().st_ino)):
        yield recording
