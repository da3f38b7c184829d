"""What the log needs of the medium that it lies on.

``LogStorage`` is one opened log on some medium, ``StorageBackend`` opens it by a URL. The kernel's own
is ``LocalFileStorage``; plugins register others through the hook ``svc_register_storage_backends``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct

from svc.log.lock_waits import HeldUp

__all__ = [
    "CollectableStorage",
    "LogPlace",
    "LogStorage",
    "ObservableLocks",
    "StorageBackend",
    "Writability",
]


class LogPlace(Struct, frozen=True):
    """Where on this machine lies what belongs to a log.

    Attributes:
        state_directory: for what can be rebuilt from the log.
        lock_file: the background process of the database is whoever holds a lock on this file. It is there
            once the log was opened for writing, and should not lie where people clear things away.
    """

    state_directory: Path
    lock_file: Path


class Writability(Enum):
    """Who may write a medium."""

    WRITABLE = "writable"
    FORBIDDEN = "forbidden"
    """The medium takes writes, but not from the user of this process."""
    READ_ONLY = "read-only"
    """The medium takes no writes from anybody."""


@runtime_checkable
class LogStorage(Protocol):
    """The bytes of one log, its shared tail and its locks. Framing and recovery are not its business.

    Every method may block, and may be called from any thread. After ``close``, and in a process that
    was forked after the opening, methods raise ``DatabaseClosed``.

    Attributes:
        name: the log's name for messages and for files beside it.
        header: the first 128 bytes of the log.
        read_only: whether nothing may be written.
        alone: whether nobody else had the log open when it was opened.
        state_directory: local directory for what can be rebuilt from the log. It may be missing when
            the storage is read-only.
        lock_file: as ``LogPlace`` has it.
    """

    name: str
    header: bytes
    read_only: bool
    alone: bool
    state_directory: Path
    lock_file: Path

    def size(self) -> int:
        """Returns how many bytes the medium holds now."""
        ...

    def tail(self) -> int | None:
        """Returns the end of the last whole record as all processes know it; None when nobody knows."""
        ...

    def owns_state(self) -> bool:
        """Returns whether what lies in the state directory was written for this very database.

        It may have been in another boot of the machine, and for another copy of the log.
        """
        ...

    def is_displaced(self) -> bool:
        """Returns whether another log, or none, has this one's name now, or its state directory is gone.

        What is written here is then seen by nobody who opens the log. Costs a microsecond or two.
        """
        ...

    def publish_tail(self, tail: int) -> None:
        """Tells all processes where the last whole record ends; called under the append lock."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Returns bytes; fewer only where the log ends."""
        ...

    def write(self, offset: int, pieces: Sequence[bytes | memoryview], total: int) -> None:
        """Writes at the end, ``offset`` being the size; called under the append lock.

        Args:
            offset: where the first byte goes.
            pieces: what to write, one behind the other.
            total: the sum of their lengths.

        Raises:
            InsufficientStorage: the medium is full; nothing was kept.
            OSError: the write failed; nothing was kept if that could be helped.
        """
        ...

    def sync(self) -> None:
        """Makes what was written durable.

        Raises:
            OSError: it may not be durable, and never will be by trying again.
        """
        ...

    def begin_sync(self, offset: int, length: int) -> None:
        """Lets the medium begin to make a range durable, so that the next ``sync`` has less to wait for.

        A hint: it may do nothing, raises nothing for a medium that fails, and what it began counts only
        once ``sync`` has returned.
        """
        ...

    def save(self, offset: int, *, unfinished: bool = False) -> str:
        """Copies everything from ``offset`` on to a durable place beside the log and names it.

        Args:
            offset: where the copy begins.
            unfinished: whether nothing acknowledged is in it; the name says so.
        """
        ...

    def saved(self) -> Sequence[str]:
        """Returns the names of the copies that ``save`` made and that still are there, in a fixed order.

        Those that were saved as unfinished are not among them.

        Raises:
            OSError: they cannot be looked up.
        """
        ...

    def read_saved(self, name: str, offset: int, length: int) -> bytes:
        """Returns bytes of such a copy; fewer only where it ends.

        Raises:
            OSError: it is gone, or cannot be read.
        """
        ...

    def cut(self, offset: int) -> None:
        """Durably removes everything from ``offset`` on; called under the append lock."""
        ...

    def acquire_append_lock(self) -> None:
        """Excludes every other writer at the end, in this process and others; blocks."""
        ...

    def release_append_lock(self) -> None:
        """Gives the append lock back."""
        ...

    def acquire_commit_lock(self) -> None:
        """Excludes every other commit, in this process and others; blocks."""
        ...

    def try_acquire_commit_lock(self) -> bool:
        """Excludes every other commit if nobody commits now; never blocks; returns whether it does."""
        ...

    def release_commit_lock(self) -> None:
        """Gives the commit lock back; any thread may do so."""
        ...

    def admit_others(self) -> None:
        """Ends the exclusivity of an opening that found nobody else."""
        ...

    def exclude_others(self) -> bool:
        """Takes the log for this opening alone until it is closed; False when others have it open."""
        ...

    def others_present(self) -> bool:
        """Returns whether another opening, in any process, has the log now; never blocks."""
        ...

    def writability(self) -> Writability:
        """Returns whether the medium takes writes, from this process and from others; never blocks."""
        ...

    def disk_space(self) -> tuple[int, int]:
        """Returns (free, total) bytes of the medium."""
        ...

    def close(self) -> None:
        """Gives everything back; closing twice does no harm."""
        ...


@runtime_checkable
class CollectableStorage(Protocol):
    """What a ``LogStorage`` has besides where its garbage can be collected. A medium need not have it.

    Nothing here blocks for longer than the medium takes.
    """

    def hold_generation(self, generation: int) -> None:
        """Tells all other openings that this one holds a generation, until it gives it back or ends."""
        ...

    def release_generation(self, generation: int) -> None:
        """Gives a generation back."""
        ...

    def others_hold_before(self, generation: int) -> bool:
        """Returns whether another opening holds a lower generation."""
        ...

    def highest_held(self) -> int:
        """Returns the greatest generation that another opening holds; -1 where none is held."""
        ...

    def try_acquire_collection(self) -> bool:
        """Excludes other collections; returns whether it does. The end of the opening gives it back."""
        ...

    def release_collection(self) -> None:
        """Lets others collect."""
        ...

    def is_collected_by_others(self) -> bool:
        """Returns whether another opening collects now."""
        ...

    def overwrite(self, offset: int, content: bytes) -> None:
        """Writes over bytes that nobody needs any more; durable once ``sync`` has returned."""
        ...

    def punch(self, offset: int, length: int) -> bool:
        """Gives the space of a range back; what is read there later means nothing. False where none can."""
        ...

    def allocated(self) -> int:
        """Returns how many bytes the log takes on its medium."""
        ...


@runtime_checkable
class ObservableLocks(Protocol):
    """What a ``LogStorage`` has besides where it can say who keeps its locks. A medium need not have it."""

    def held_up(self, *, look: bool = False) -> HeldUp | None:
        """Returns who has kept a lock of the log for long; None where nobody is known to.

        Args:
            look: besides for whom this opening waits, which costs microseconds, look for a process that is
                stopped and holds a lock that writers need; milliseconds where one is held just now.

        Raises:
            LocksUnavailable: the medium has no locks that can be looked at.
        """
        ...


class StorageBackend(Protocol):
    """Opens logs on one kind of medium.

    Attributes:
        scheme: the scheme of the URLs that it opens, such as ``s3``, lower case.
        is_shared: whether other processes that open the same URL find the same log. A server, which has
            several, refuses a backend where they do not.
    """

    scheme: str
    is_shared: bool

    def locate(self, url: str) -> LogPlace:
        """Returns where on this machine lies what belongs to the log of a URL, without opening the log.

        What ``open`` gives names the same places. Neither need be there.
        """
        ...

    def open(self, url: str, *, read_only: bool, create: bool) -> LogStorage:
        """Opens the log that a URL names; blocks until others admit it.

        Raises:
            DatabaseNotFound: there is none, and it was not to be made.
            ForeignFile, UnsupportedFormat, TruncatedFile, CorruptRecord: it is no log that can be read.
            ReadOnly: the medium cannot be written.
            DatabaseBusy: others exclude this opening.
            InsufficientStorage: the medium is full.
        """
        ...
