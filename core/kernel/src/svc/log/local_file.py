"""The log on a file of this machine: ``x.svcdb``, with what can be rebuilt beside it in ``x.svcdb.d``.

Several processes, and several openings in one, may hold the same file at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from svc.errors import (
    DatabaseBusy,
    DatabaseClosed,
    DatabaseNotFound,
    InsufficientStorage,
    ReadOnly,
)
from svc.log.byte_locks import (
    APPEND,
    COMMIT,
    PRESENCE,
    LocksUnavailable,
    is_locked,
    lock_exclusive,
    lock_shared,
    try_exclusive,
    unlock,
)
from svc.log.collectable_file import CollectableFile
from svc.log.creation import (
    FULL,
    create_file,
    make_state_directory,
    open_error,
    refuse_irregular,
    sync_directory,
)
from svc.log.file_operations import FileOperations
from svc.log.framing import FILE_HEADER_SIZE, decode_file_header
from svc.log.lock_waits import HeldUp, holder_of, is_stopped, long_wait
from svc.log.shared_cell import SharedCell, boot_id
from svc.log.storage import Writability
from svc.native_locks import native_lock

__all__ = ["LocalFileStorage", "lock_file_of", "state_directory_of"]

_TAIL = struct.Struct("<Q")
_IDENTITY = struct.Struct("<16s16sQQ")
_MANY = 256
_COPY_PIECE = 1 << 20
_ATTEMPTS = 16
_UNFINISHED = ".unfinished"

_opened: weakref.WeakSet[LocalFileStorage] = weakref.WeakSet()


class LocalFileStorage(CollectableFile):
    """One opening of a log file. Attributes and methods as in ``LogStorage``; built by ``open``."""

    def __init__(
        self, fd: int, path: Path, header: bytes, *, read_only: bool, alone: bool, operations: FileOperations
    ) -> None:
        self.path = path
        self.name = path.name
        self.header = header
        self.read_only = read_only
        self.alone = alone
        self.operations = operations
        self.state_directory = state_directory_of(path)
        self.lock_file = lock_file_of(path)
        self._fd = -1
        self._pid = os.getpid()
        self._forked = False
        self._failed_sync: int | None = None
        self._sync_lock = native_lock()
        self._append_lock = native_lock()
        self._commit_lock = native_lock()
        if not read_only:
            make_state_directory(self.state_directory)
        self._cell = SharedCell(
            self.state_directory / "tail", _TAIL.size + _IDENTITY.size, read_only=read_only
        )
        found = os.fstat(fd)
        database_id = decode_file_header(header, self.name).database_id
        self._database_id = database_id
        self._identity = _IDENTITY.pack(boot_id(), database_id, found.st_dev, found.st_ino)
        # Last: until here the caller closes the descriptor when anything fails.
        self._fd = fd
        _opened.add(self)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        timeout: float | None = None,
        operations: FileOperations | None = None,
    ) -> LocalFileStorage:
        """Opens a log file, making it first if it is missing. Blocks while another opening recovers.

        ``timeout`` is in seconds; None waits without end.

        Raises:
            DatabaseNotFound: there is no file, or no directory for one.
            ForeignFile: it is empty, not an svc database, or of another byte order.
            UnsupportedFormat: its format version, features or hash algorithm are not this program's.
            TruncatedFile: it ends within its header.
            CorruptRecord: its header fails its checksum.
            ReadOnly: it cannot be written, or its filesystem has no locks.
            Forbidden: there is no permission to read it.
            DatabaseBusy: the timeout passed.
            InsufficientStorage: there is no space to make it.
        """
        place = Path(path)
        calls = operations if operations is not None else FileOperations()
        for _ in range(_ATTEMPTS):
            fd = _open_descriptor(place, read_only=read_only, create=create, operations=calls)
            try:
                header = calls.pread(fd, FILE_HEADER_SIZE, 0)
                decode_file_header(header, str(place))
                alone = _announce(fd, place, read_only=read_only, timeout=timeout)
                if not _is_at(fd, place):
                    os.close(fd)
                    continue
                return cls(fd, place, header, read_only=read_only, alone=alone, operations=calls)
            except OSError as error:
                os.close(fd)
                raise open_error(error, place) from error
            except BaseException:
                os.close(fd)
                raise
        raise DatabaseBusy(f"{place} is being replaced again and again.")

    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self._descriptor()).st_size

    def tail(self) -> int | None:
        """The shared tail, if it was published since the machine started, for this very file."""
        if self._fd < 0:
            raise self._unusable()
        try:
            payload = self._cell.read()
        except ValueError:
            raise self._unusable() from None
        if payload is None or payload[8:] != self._identity:
            return None
        return int.from_bytes(payload[:8], "little")

    def owns_state(self) -> bool:
        """Whether the shared tail was last published for this database: in any boot, at any place."""
        payload = self._cell.read()
        return payload is not None and _IDENTITY.unpack_from(payload, 8)[1] == self._database_id

    def is_displaced(self) -> bool:
        """Whether the file was moved, removed or replaced since, or the directory beside it was."""
        return self._fd >= 0 and (not _is_at(self._fd, self.path) or self._cell.orphaned)

    def publish_tail(self, tail: int) -> None:
        """Tells all processes where the last whole record ends."""
        self._cell.write(_TAIL.pack(tail) + self._identity)

    def read(self, offset: int, length: int) -> bytes:
        """One ``pread``."""
        try:
            return self.operations.pread(self._fd, length, offset)
        except OSError as error:
            if error.errno == errno.EBADF:
                raise self._unusable() from None
            raise

    def write(self, offset: int, pieces: Sequence[bytes | memoryview], total: int) -> None:
        """One ``pwritev``, more only where the system writes less than asked."""
        fd = self._descriptor()
        batch = pieces if len(pieces) <= _MANY else [b"".join(pieces)]
        try:
            written = self.operations.pwritev(fd, batch, offset)
            if written != total:
                self._write_rest(fd, batch, offset, written)
        except OSError as error:
            # What cannot be taken back now is cut by the next appender, who finds the tail before it.
            with contextlib.suppress(OSError):
                self.operations.ftruncate(fd, offset)
            if error.errno in FULL:
                raise InsufficientStorage(
                    "The disk is full: this was not committed. A garbage collection frees what it appended."
                ) from error
            raise

    def sync(self) -> None:
        """One ``fdatasync``. One that failed, here or in ``cut``, is told again and again."""
        self._sync_by(self.operations.fdatasync)

    def begin_sync(self, offset: int, length: int) -> None:
        """Starts the writing of a range, and waits for none of it."""
        self.operations.begin_writeback(self._descriptor(), offset, length)

    def save(self, offset: int, *, unfinished: bool = False) -> str:
        """Copies the end to ``x.svcdb.cut-<offset>`` and returns that path; ``unfinished`` ends its name."""
        fd = self._descriptor()
        target, copy = self._saving_place(offset, _UNFINISHED if unfinished else "")
        try:
            position = offset
            while piece := self.operations.pread(fd, _COPY_PIECE, position):
                view = memoryview(piece)
                while view:
                    view = view[os.write(copy, view) :]
                position += len(piece)
            self.operations.fsync(copy)
            sync_directory(target.parent, self.operations)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(target)
            raise open_error(error, target) from error
        finally:
            os.close(copy)
        return str(target)

    def saved(self) -> list[str]:
        """The paths of such copies, without the unfinished ones."""
        real = os.path.realpath(self.path)
        folder, prefix = os.path.dirname(real), os.path.basename(real) + ".cut-"
        names = [name for name in os.listdir(folder) if name.startswith(prefix)]
        return [os.path.join(folder, name) for name in sorted(names) if not name.endswith(_UNFINISHED)]

    def read_saved(self, name: str, offset: int, length: int) -> bytes:
        """Bytes of a copy."""
        with open(name, "rb", buffering=0) as copy:
            copy.seek(offset)
            return copy.read(length)

    def cut(self, offset: int) -> None:
        """Makes the file end at ``offset``, durably."""
        self.operations.ftruncate(self._descriptor(), offset)
        self._sync_by(self.operations.fsync)

    def acquire_append_lock(self) -> None:
        """Excludes other writers at the end; blocks."""
        self._descriptor()
        self._append_lock.acquire()
        try:
            lock_exclusive(self._descriptor(), APPEND)
        except BaseException:
            self._append_lock.release()
            raise

    def release_append_lock(self) -> None:
        """Gives the append lock back."""
        try:
            unlock(self._descriptor(), APPEND)
        finally:
            self._append_lock.release()

    def acquire_commit_lock(self) -> None:
        """Excludes other commits; blocks."""
        self._descriptor()
        self._commit_lock.acquire()
        try:
            lock_exclusive(self._descriptor(), COMMIT)
        except BaseException:
            self._commit_lock.release()
            raise

    def try_acquire_commit_lock(self) -> bool:
        """Excludes other commits if nobody commits now; never blocks. Returns whether it does."""
        self._descriptor()
        if not self._commit_lock.acquire(False):
            return False
        try:
            acquired = try_exclusive(self._descriptor(), COMMIT)
        except BaseException:
            self._commit_lock.release()
            raise
        if not acquired:
            self._commit_lock.release()
        return acquired

    def release_commit_lock(self) -> None:
        """Gives the commit lock back; any thread may do so, also after ``close``."""
        try:
            if self._fd >= 0:
                unlock(self._descriptor(), COMMIT)
        finally:
            self._commit_lock.release()

    def held_up(self, *, look: bool = False) -> HeldUp | None:
        """For whom this opening waits; with a look, who is stopped and holds what writers need."""
        fd = self._descriptor()
        found = long_wait(fd)
        if found is None and look:
            for byte in (COMMIT, APPEND):
                holder = holder_of(fd, byte) if is_locked(fd, byte) else None
                if holder is not None and is_stopped(holder):
                    return HeldUp(None, holder)
        return found

    def admit_others(self) -> None:
        """Turns the exclusive presence of an opening that was alone into a shared one."""
        if self.alone:
            lock_shared(self._descriptor(), PRESENCE)

    def exclude_others(self) -> bool:
        """Takes the file for this opening alone until it is closed, if nobody else has it; never blocks."""
        return try_exclusive(self._descriptor(), PRESENCE)

    def others_present(self) -> bool:
        """Whether another opening has the file, in this process or another; never blocks."""
        try:
            return is_locked(self._descriptor(), PRESENCE)
        except LocksUnavailable:
            return False

    def writability(self) -> Writability:
        """By the permissions of the file, and by how its filesystem is mounted."""
        if os.access(self.path, os.W_OK):
            return Writability.WRITABLE
        try:
            if os.fstatvfs(self._descriptor()).f_flag & os.ST_RDONLY:
                return Writability.READ_ONLY
            # Nobody's: whoever serves it may be nobody else.
            return Writability.FORBIDDEN if os.stat(self.path).st_mode & 0o222 else Writability.READ_ONLY
        except OSError:
            return Writability.READ_ONLY

    def disk_space(self) -> tuple[int, int]:
        """Free and total bytes of the file's filesystem, as an ordinary user may use them."""
        found = os.fstatvfs(self._descriptor())
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def close(self) -> None:
        """Closes the file, and with it gives all locks back; waits for an append under way."""
        if self._forked or os.getpid() != self._pid:
            return
        with contextlib.ExitStack() as stack:
            self._append_lock.acquire()
            stack.callback(self._append_lock.release)
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)
                self._cell.close()
        _opened.discard(self)

    def _sync_by(self, call: Callable[[int], None]) -> None:
        """Makes one sync after the other: of two at once the system reports lost pages to only one."""
        fd = self._descriptor()
        self._sync_lock.acquire()
        try:
            if self._failed_sync is None:
                try:
                    call(fd)
                    return
                except OSError as error:
                    self._failed_sync = error.errno or errno.EIO
        finally:
            self._sync_lock.release()
        # Told once, such pages count as written: no later success is worth anything.
        raise OSError(self._failed_sync, os.strerror(self._failed_sync))

    def _descriptor(self) -> int:
        fd = self._fd
        if fd < 0:  # so it is in a child that was forked
            raise self._unusable()
        return fd

    def _unusable(self) -> DatabaseClosed:
        if self._forked or os.getpid() != self._pid:
            return DatabaseClosed(
                "The database was opened before this process was forked; open it after the fork."
            )
        return DatabaseClosed("The database is closed.")

    def _write_rest(self, fd: int, pieces: Sequence[bytes | memoryview], offset: int, written: int) -> None:
        rest = memoryview(b"".join(pieces))[written:]
        while rest:
            count = self.operations.pwritev(fd, [rest], offset + written)
            if count == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += count
            rest = rest[count:]

    def _saving_place(self, offset: int, ending: str) -> tuple[Path, int]:
        real = Path(os.path.realpath(self.path))
        suffixes = ("", *(f"-{count}" for count in range(2, 1000)))
        for suffix in suffixes:
            target = real.with_name(f"{real.name}.cut-{offset}{suffix}{ending}")
            try:
                return target, os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                continue
            except OSError as error:
                raise open_error(error, target) from error
        raise DatabaseBusy(f"{real.name}.cut-{offset} has been saved too often; move those files away.")

    def _abandon(self) -> None:
        """In a forked child: gives up the descriptor, so that the parent's locks end with the parent."""
        fd, self._fd = self._fd, -1
        self._forked = True
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


def _abandon_all() -> None:
    for storage in list(_opened):
        storage._abandon()


os.register_at_fork(after_in_child=_abandon_all)


def state_directory_of(path: Path) -> Path:
    """Returns the directory beside the file itself, by whatever symbolic link it was named."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + ".d")


def lock_file_of(path: Path) -> Path:
    """Returns the file itself, by the name that it was given."""
    return path


def _open_descriptor(path: Path, *, read_only: bool, create: bool, operations: FileOperations) -> int:
    try:
        refuse_irregular(path)
    except DatabaseNotFound:
        if read_only or not create:
            raise
        create_file(Path(os.path.realpath(path)), operations)
        refuse_irregular(path)
    flags = os.O_CLOEXEC | (os.O_RDONLY if read_only else os.O_RDWR)
    try:
        return os.open(path, flags)
    except OSError as error:
        readable = not read_only and os.access(path, os.R_OK)
        raise open_error(error, path, readable=readable) from error


def _announce(fd: int, path: Path, *, read_only: bool, timeout: float | None) -> bool:
    """Locks the presence byte; returns whether nobody else had it."""
    try:
        if not read_only and try_exclusive(fd, PRESENCE):
            return True
        if not lock_shared(fd, PRESENCE, timeout):
            raise DatabaseBusy(f"{path} is being recovered by another process; try again.")
    except LocksUnavailable as error:
        if not read_only:
            raise ReadOnly(
                f"{path} cannot be written: its filesystem has no byte-range locks. "
                "It can be opened for reading only."
            ) from error
    return False


def _is_at(fd: int, path: Path) -> bool:
    opened = os.fstat(fd)
    try:
        named = os.stat(path)
    except OSError:
        return False
    return (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)
