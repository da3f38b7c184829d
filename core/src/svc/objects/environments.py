"""LMDB environments, opened once a process and directory.

LMDB forbids to open one environment twice in a process: its file locks would be lost when one of the
two is closed. Everything that keeps data in LMDB opens through here and shares.

LMDB runs without syncs here, so a power cut can leave files in which it would fault. A note beside
them names the boot of the machine in which they were last written, or says that they were synced and
not written since; files that neither holds for are discarded before LMDB sees them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import lmdb

from svc.errors import ReadOnly
from svc.log import boot_id

__all__ = [
    "SharedEnvironment",
    "close_environment",
    "destroy_environment",
    "is_full",
    "note_synced",
    "note_written",
    "open_environment",
]

_Key = tuple[int, int, int]
_NOTE = "written-in"
_SYNCED = b"synced"


class SharedEnvironment:
    """An open environment with its named databases, and how many use it.

    Attributes:
        environment: the LMDB environment.
        databases: the named databases, in the order that was asked for.
        users: number of openings that are not closed yet.
    """

    def __init__(
        self, key: _Key, environment: lmdb.Environment, names: Sequence[bytes], create: bool
    ) -> None:
        self.key = key
        self.environment = environment
        self.users = 1
        self.databases = tuple(environment.open_db(name, create=create) for name in names)


_environments: dict[_Key, SharedEnvironment] = {}
_mutex = threading.Lock()


def open_environment(
    directory: Path, map_size: int, names: Sequence[bytes], read_only: bool = False
) -> SharedEnvironment:
    """Opens an environment, or shares the one that this process has open.

    Args:
        directory: where its files are; made when missing.
        map_size: largest size in bytes; address space only.
        names: names of its databases.
        read_only: the directory must hold an environment already; where it can be written, LMDB
            still keeps its table of readers there.

    Raises:
        ReadOnly: the directory cannot be written.
        lmdb.Error: its files are not an environment of this machine.
    """
    with _mutex:
        existing_only = read_only
        read_only = read_only and not os.access(directory, os.W_OK)
        if not read_only:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ReadOnly("The directory beside the database cannot be written.") from error
        data = directory / "data.mdb"
        shared = _environments.get(_key_of(data)) if data.exists() else None
        if shared is not None:
            shared.users += 1
            return shared
        with _locked(directory):
            if not _is_whole(directory):
                if existing_only:
                    raise lmdb.CorruptedError("These files were written before the machine was last started.")
                _begin_anew(directory)
            environment = _new_environment(directory, map_size, len(names), read_only)
        try:
            shared = SharedEnvironment(_key_of(data), environment, names, not read_only)
        except BaseException:
            environment.close()
            raise
        _environments[shared.key] = shared
        return shared


def close_environment(shared: SharedEnvironment) -> None:
    """Ends one use of an environment; the last one closes it."""
    with _mutex:
        shared.users -= 1
        if shared.users == 0:
            _environments.pop(shared.key, None)
            shared.environment.close()


def is_full(error: lmdb.Error) -> bool:
    """Whether LMDB could not write for want of space.

    A write that the system cut short, as on a disk that fills up in the middle of it, is an I/O error to it.
    """
    return isinstance(error, lmdb.DiskError) or os.strerror(errno.EIO) in str(error)


def note_written(directory: Path) -> None:
    """Notes that an environment is written in this boot of the machine; before the first such write.

    Blocks for a sync where the note said that the files were synced.
    """
    present = _note(directory)
    if present != boot_id():
        _set_note(directory, boot_id(), durable=present == _SYNCED)


def note_synced(directory: Path) -> None:
    """Notes that an environment was synced, and that nobody writes to it any more; blocks."""
    _set_note(directory, _SYNCED, durable=True)


def destroy_environment(directory: Path) -> None:
    """Deletes the files of an environment; nobody may have it open."""
    for name in ("data.mdb", "lock.mdb", _NOTE):
        (directory / name).unlink(missing_ok=True)


def _begin_anew(directory: Path) -> None:
    try:
        destroy_environment(directory)
        note_written(directory)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise ReadOnly("The directory beside the database cannot be written.") from error


def _is_whole(directory: Path) -> bool:
    return _note(directory) in (_SYNCED, boot_id())


def _note(directory: Path) -> bytes | None:
    try:
        return (directory / _NOTE).read_bytes()
    except OSError:
        return None


def _set_note(directory: Path, content: bytes, *, durable: bool) -> None:
    temporary = directory / f"{_NOTE}.new"
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(temporary, directory / _NOTE)
    if durable:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Excludes other processes that open an environment in the directory at this moment."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _new_environment(directory: Path, map_size: int, databases: int, read_only: bool) -> lmdb.Environment:
    try:
        environment = lmdb.open(
            str(directory),
            map_size=map_size,
            max_dbs=databases,
            max_readers=1024,
            readonly=read_only,
            create=not read_only,
            lock=not read_only,
            sync=False,
            metasync=False,
            writemap=False,
            readahead=False,
        )
    except lmdb.ReadonlyError as error:
        raise ReadOnly("The directory beside the database cannot be written.") from error
    environment.reader_check()
    return environment


def _key_of(data: Path) -> _Key:
    status = data.stat()
    return os.getpid(), status.st_dev, status.st_ino
