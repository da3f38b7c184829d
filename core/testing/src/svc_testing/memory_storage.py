"""The storage backend ``mem``: logs in the memory of one process, for tests.

``mem://name`` is the same log for every opening in a process, until ``forget_memory`` or the process ends. No
distribution of svc has an entry point for it: ``install_memory_storage`` makes one on the spot, and
``Database("mem://name", backends=MEMORY_BACKENDS)`` needs none.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from svc.clock import now_ms
from svc.errors import DatabaseClosed, DatabaseNotFound, InvalidInput
from svc.log import LogPlace, LogStorage, StorageBackend, Writability
from svc.log.framing import FileHeader, encode_file_header
from svc.plugins import NamedRegistry, PluginDescriptor, hookimpl
from svc_testing.distributions import DistributionFactory

__all__ = [
    "MEMORY_BACKENDS",
    "MEMORY_STORAGE",
    "MemoryBackend",
    "forget_memory",
    "install_memory_storage",
    "svc_register_storage_backends",
]

MEMORY_STORAGE = "storage.memory"
"""Id of the plugin that brings the backend."""

PLUGIN = PluginDescriptor(
    id=MEMORY_STORAGE,
    version="1.0",
    summary="Logs in the memory of one process; in no distribution",
    api=(1, 1),
    implementation="svc_testing.memory_storage",
)

_SCHEME = "mem"


class _Medium:
    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.content = bytearray(encode_file_header(FileHeader(uuid.uuid4().bytes, now_ms())))
        self.header = bytes(self.content)
        self.place = LogPlace(directory / f"{name}.d", directory / "election")
        self.tail: int | None = None
        self.saved: dict[str, bytes] = {}
        self.append_lock = threading.Lock()
        self.commit_lock = threading.Lock()
        self.presence = threading.Condition()
        self.openings: set[MemoryStorage] = set()
        self.exclusive: MemoryStorage | None = None

    def enter(self, opening: MemoryStorage) -> bool:
        """Waits until others admit an opening, and returns whether it is alone."""
        with self.presence:
            while self.exclusive is not None:
                self.presence.wait()
            alone = not (self.openings or opening.read_only)
            self.openings.add(opening)
            if alone:
                self.exclusive = opening
            return alone

    def exclude(self, opening: MemoryStorage) -> bool:
        with self.presence:
            if self.openings != {opening}:
                return False
            self.exclusive = opening
            return True

    def admit(self, opening: MemoryStorage) -> None:
        with self.presence:
            if self.exclusive is opening:
                self.exclusive = None
                self.presence.notify_all()

    def leave(self, opening: MemoryStorage) -> None:
        with self.presence:
            self.openings.discard(opening)
        self.admit(opening)


_media: dict[str, _Medium] = {}
_mutex = threading.Lock()
_root: tuple[int, Path] | None = None


class MemoryStorage:
    """One opening of a log in memory. Attributes and methods as in ``LogStorage``."""

    def __init__(self, medium: _Medium, *, read_only: bool) -> None:
        self._medium: _Medium | None = medium
        self._process = os.getpid()
        self._commits = False
        self.name = medium.name
        self.header = medium.header
        self.read_only = read_only
        self.state_directory = medium.place.state_directory
        self.lock_file = medium.place.lock_file
        if not read_only:
            self.state_directory.mkdir(mode=0o700, exist_ok=True)
            self.lock_file.touch()
        self.alone = medium.enter(self)

    def size(self) -> int:
        """Bytes of the log."""
        return len(self._open().content)

    def tail(self) -> int | None:
        """The tail that was published last."""
        return self._open().tail

    def owns_state(self) -> bool:
        """Whether a tail was ever published."""
        return self._open().tail is not None

    def is_displaced(self) -> bool:
        """Whether the log was forgotten, or its state directory is gone."""
        medium = self._open()
        return _media.get(self.name) is not medium or not self.state_directory.is_dir()

    def publish_tail(self, tail: int) -> None:
        """Tells all openings where the last whole record ends."""
        self._open().tail = tail

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the log."""
        return bytes(self._open().content[offset : offset + length])

    def write(self, offset: int, pieces: Sequence[bytes | memoryview], total: int) -> None:
        """Writes at the end."""
        content = self._open().content
        content[offset:] = b"".join(pieces)
        assert len(content) == offset + total

    def sync(self) -> None:
        """Nothing outlives the process."""
        self._open()

    def begin_sync(self, offset: int, length: int) -> None:
        """Does nothing."""
        self._open()

    def save(self, offset: int, *, unfinished: bool = False) -> str:
        """Copies the end of the log, in memory as well."""
        medium = self._open()
        ending = ".unfinished" if unfinished else ""
        number = 1
        while (
            name := f"{self.name}.cut-{offset}{f'-{number}' if number > 1 else ''}{ending}"
        ) in medium.saved:
            number += 1
        medium.saved[name] = bytes(medium.content[offset:])
        return name

    def saved(self) -> list[str]:
        """The names of such copies."""
        return sorted(name for name in self._open().saved if not name.endswith(".unfinished"))

    def read_saved(self, name: str, offset: int, length: int) -> bytes:
        """Bytes of a copy."""
        copy = self._open().saved.get(name)
        if copy is None:
            raise FileNotFoundError(name)
        return copy[offset : offset + length]

    def cut(self, offset: int) -> None:
        """Removes the end of the log."""
        del self._open().content[offset:]

    def acquire_append_lock(self) -> None:
        """Excludes other writers at the end; blocks."""
        self._open().append_lock.acquire()

    def release_append_lock(self) -> None:
        """Gives the append lock back."""
        self._open().append_lock.release()

    def acquire_commit_lock(self) -> None:
        """Excludes other commits; blocks."""
        self._open().commit_lock.acquire()
        self._commits = True

    def try_acquire_commit_lock(self) -> bool:
        """Excludes other commits if nobody commits now."""
        acquired = self._open().commit_lock.acquire(blocking=False)
        self._commits = self._commits or acquired
        return acquired

    def release_commit_lock(self) -> None:
        """Gives the commit lock back; after ``close`` there is none to give back."""
        if self._commits:
            self._commits = False
            assert self._medium is not None
            self._medium.commit_lock.release()

    def admit_others(self) -> None:
        """Ends the exclusivity of an opening that was alone."""
        self._open().admit(self)

    def exclude_others(self) -> bool:
        """Takes the log for this opening alone if nobody else has it."""
        return self._open().exclude(self)

    def others_present(self) -> bool:
        """Whether there is another opening."""
        return bool(self._open().openings - {self})

    def writability(self) -> Writability:
        """Memory takes writes."""
        return Writability.WRITABLE

    def disk_space(self) -> tuple[int, int]:
        """What the filesystem of the state directory has."""
        found = os.statvfs(self.state_directory.parent)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def close(self) -> None:
        """Gives everything back."""
        if self._medium is None or os.getpid() != self._process:
            return
        self.release_commit_lock()
        medium, self._medium = self._medium, None
        medium.leave(self)

    def _open(self) -> _Medium:
        if self._medium is None or os.getpid() != self._process:
            raise DatabaseClosed("The database is closed, or was opened before this process was forked.")
        return self._medium


class MemoryBackend:
    """Opens ``mem://name``."""

    scheme = _SCHEME
    is_shared = False

    def open(self, url: str, *, read_only: bool, create: bool) -> LogStorage:
        """Opens a log in memory; blocks until others admit it.

        Raises:
            DatabaseNotFound: there is none, and it was not to be made.
            InvalidInput: the URL has no name, or more than one.
        """
        name = _name_in(url)
        with _mutex:
            medium = _media.get(name)
            if medium is None:
                if read_only or not create:
                    raise DatabaseNotFound(f"There is no database {url} in this process.")
                medium = _media[name] = _Medium(name, _directory_of(name))
        return MemoryStorage(medium, read_only=read_only)

    def locate(self, url: str) -> LogPlace:
        """Returns where the state directory is: below a temporary directory of this process."""
        name = _name_in(url)
        directory = _directory_of(name)
        return LogPlace(directory / f"{name}.d", directory / "election")


MEMORY_BACKENDS: Mapping[str, StorageBackend] = MappingProxyType({_SCHEME: MemoryBackend()})
"""For ``Database(..., backends=MEMORY_BACKENDS)``."""


def forget_memory(*names: str) -> None:
    """Forgets logs in memory, all of them when none is named; whoever has one open goes on with it."""
    with _mutex:
        for name in names or tuple(_media):
            medium = _media.pop(name, None)
            if medium is not None:
                shutil.rmtree(medium.place.lock_file.parent, ignore_errors=True)


@hookimpl
def svc_register_storage_backends(storage_backends: NamedRegistry[StorageBackend]) -> None:
    """Adds ``mem://name``."""
    storage_backends.add(MEMORY_BACKENDS[_SCHEME])


def install_memory_storage(distributions: DistributionFactory) -> None:
    """Installs a distribution that consists of the entry point of the plugin ``storage.memory``.

    Args:
        distributions: where; it says which processes see the plugin, and for how long.
    """
    distributions.install(
        "svc-storage-memory",
        modules={},
        entry_points={MEMORY_STORAGE: "svc_testing.memory_storage:PLUGIN"},
    )


def _name_in(url: str) -> str:
    name = url.partition("://")[2]
    if not name or "/" in name or name in (".", ".."):
        raise InvalidInput(f"{url!r:.200} is not of the form mem://name.", field="database")
    return name


def _directory_of(name: str) -> Path:
    """The directory of a log's state directory; made when it is missing."""
    global _root
    if _root is None or _root[0] != os.getpid():
        _root = (os.getpid(), Path(tempfile.mkdtemp(prefix="svc-memory-")))
        atexit.register(_remove, *_root)
    directory = _root[1] / name
    directory.mkdir(exist_ok=True)
    return directory


def _remove(process: int, root: Path) -> None:
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)
