"""LMDB environments, opened once a process and directory.

LMDB forbids to open one environment twice in a process: its file locks would be lost when one of the two is
closed. Everything that keeps data in LMDB opens through here and shares.

When LMDB cannot write the pages of its file that say which state is the last, it gives the environment up,
for reads too. The file is whole, at the state before that write, and is opened anew for all who share it.

LMDB runs without syncs here, so a power cut can leave files in which it would fault. A note beside them names
the boot of the machine in which they were last written, or says that they were synced and not written since;
files that neither holds for are discarded before LMDB sees them.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import lmdb
from msgspec import Struct

from svc.errors import (
    DatabaseBusy,
    DatabaseClosed,
    InsufficientStorage,
    ReadOnly,
    ServiceUnavailable,
    SvcError,
)
from svc.executor import Executor
from svc.log.creation import FULL
from svc.log.lock_waits import describe_process
from svc.native_locks import held_across_waits, native_lock
from svc.objects.environment_files import end_of, fill_up
from svc.objects.environment_notes import NOTE, is_whole, note_written
from svc.objects.writer_turns import WriterTurns, try_flock

__all__ = [
    "SharedEnvironment",
    "close_environment",
    "destroy_environment",
    "discard_environment",
    "is_damage",
    "is_full",
    "open_environment",
]

logger = logging.getLogger(__name__)

_Key = tuple[int, int, int]
_LONGEST_WAIT_SECONDS = 5.0
_DAMAGE = (
    lmdb.BadDbiError,
    lmdb.BadValsizeError,
    lmdb.CorruptedError,
    lmdb.IncompatibleError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
)
_POLL_SECONDS = 0.001
_READERS = 1024
_LOCK_FILE_BYTES = (_READERS - 1) * 64 + 192
"""As LMDB 0.9 makes it: a line for each reader, and one more of what they share."""


class _Settings(Struct, frozen=True):
    map_size: int
    names: tuple[bytes, ...]
    read_only: bool


class SharedEnvironment:
    """An open environment with its named databases, and how many use it.

    ``databases``, in the order that was asked for, stay the same only while a transaction of ``begin`` lives.
    ``openings`` says how often LMDB has opened it; two writes have the same number only across openings.
    """

    def __init__(self, directory: Path, settings: _Settings, executor: Executor) -> None:
        self.users = 1
        self.openings = 1
        self.directory = directory
        self._settings = settings
        self._executor = executor
        self._environment: lmdb.Environment | None = _new_environment(directory, settings)
        self._data = str(directory / "data.mdb")  # is looked at for each read: a path costs more than that
        self.key = _key_of(self._data)
        self._given_up: lmdb.Environment | None = None
        # Its length is the number of threads that are about to begin a transaction: a lock would cost more.
        self._beginning: list[None] = []
        self._mutex = native_lock()
        self._turns = WriterTurns(self._data)
        try:
            self.databases = self._open_databases(self._environment)
        except BaseException:
            self._environment.close()
            self._turns.close()
            raise

    def begin(self, database: int | None = None, write: bool = False) -> lmdb.Transaction[bytes]:
        """Begins a transaction; opens the environment anew first where LMDB has given it up.

        ``database`` is a position in ``databases``, None the unnamed one. To write waits for another writer's
        end. Raises DatabaseClosed, and ServiceUnavailable where LMDB gave up and it cannot be opened anew
        now.
        """
        beginning = self._beginning
        beginning.append(None)
        environment = self._environment
        try:
            if environment is not None:
                handle = None if database is None else self.databases[database]
                if not write:
                    return environment.begin(handle)
                with self._turns.next():
                    return environment.begin(handle, None, True)
        except lmdb.PanicError:
            pass
        except lmdb.Error:
            if self.users == 0:
                raise DatabaseClosed("The database is closed.") from None
            raise
        finally:
            beginning.pop()
        self._open_anew(environment)
        return self.begin(database, write)

    def get(self, database: int, key: bytes) -> bytes | None:
        """Returns the value of one key, or None: what a transaction of ``begin`` would give, for less."""
        beginning = self._beginning
        beginning.append(None)
        environment = self._environment
        try:
            if environment is not None:
                # Ends when nothing refers to it: that costs less than a with statement.
                return environment.begin(self.databases[database]).get(key)
        except lmdb.Error:
            pass
        finally:
            beginning.pop()
        with self.begin(database) as transaction:
            return transaction.get(key)

    @property
    def is_there(self) -> bool:
        """Whether its directory still has the file that was opened: somebody may have put another there."""
        try:
            return _key_of(self._data) == self.key
        except OSError:
            return False

    def sync(self) -> None:
        """Writes everything to disk; blocks."""
        with held_across_waits(self._mutex):
            if self._environment is None:
                raise lmdb.Error("sync: the environment was given up")
            self._environment.sync(True)

    def close(self) -> None:
        """Closes the environment; nobody may use it any more. Called by ``close_environment``."""
        for environment in (self._environment, self._given_up):
            if environment is not None:
                environment.close()
        self._turns.close()

    def abandon(self) -> None:
        """In a forked child: keeps what the parent has open, and uses it no more."""
        self._of_parent = (self._environment, self._given_up)
        self._environment = self._given_up = None
        self._mutex = native_lock()
        self._turns.close()  # or the child holds what the parent took
        self.users = 0

    def _open_anew(self, failed: lmdb.Environment | None) -> None:
        """Closes an environment that LMDB has given up, once no transaction lives, and opens it again."""
        with held_across_waits(self._mutex):
            if self._environment is not failed:
                return
            if self.users == 0:
                raise DatabaseClosed("The database is closed.")
            if failed is not None:
                logger.warning("%s could not be written and is opened anew", self.directory)
                self._given_up, self._environment = failed, None
            self._wait_until_unused()
            if self._given_up is not None:
                self._given_up.close()
                self._given_up = None
            try:
                with _locked(self.directory):
                    if self.key != _key_of(self.directory / "data.mdb") or not is_whole(self.directory):
                        raise ServiceUnavailable(
                            f"{self.directory} was removed or replaced; start the server anew."
                        )
                    environment = _new_environment(self.directory, self._settings)
                try:
                    self.databases = self._open_databases(environment)
                except BaseException:
                    environment.close()
                    raise
            except (lmdb.Error, OSError) as error:
                raise ServiceUnavailable(
                    f"The disk failed ({error}): the index cannot be read now.", retry_after=1
                ) from error
            self.openings += 1
            self._environment = environment

    def _open_databases(self, environment: lmdb.Environment) -> tuple[lmdb._Database, ...]:
        names = self._settings.names
        if self._settings.read_only:
            return tuple(environment.open_db(name, create=False) for name in names)

        def open_all() -> tuple[lmdb._Database, ...]:
            with self._turns.next(), environment.begin(write=True) as transaction:
                return tuple(environment.open_db(name, transaction) for name in names)

        # Another process may be writing, and ``open_db`` alone would keep all threads waiting for it.
        return self._executor.run_reserved(open_all)

    def _wait_until_unused(self) -> None:
        """Waits for transactions from before LMDB gave up: closing would crash them. No new one can begin."""
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while self._beginning or (self._given_up is not None and _is_read(self._given_up)):
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    "The disk failed; the index is opened anew as soon as nobody reads it.", retry_after=1
                )
            time.sleep(_POLL_SECONDS)


_environments: dict[_Key, SharedEnvironment] = {}
_of_parent: dict[str, SharedEnvironment] = {}
"""By directory what the process has open that this one was forked from. It is never closed here: that would
end transactions of the parent."""
_mutex = native_lock()
_HERE = Executor()


def open_environment(
    directory: Path,
    map_size: int,
    names: Sequence[bytes],
    read_only: bool = False,
    executor: Executor = _HERE,
) -> SharedEnvironment:
    """Opens an environment, or shares the one that this process has open.

    ``map_size`` is address space only. With ``read_only`` the directory must hold an environment already;
    where it can be written, LMDB still keeps its table of readers there. ``executor`` runs what waits for
    another writer.

    Raises ReadOnly, InsufficientStorage, DatabaseBusy when another process has been opening it for seconds or
    the one that this was forked from had it open, and lmdb.Error when its files are not an environment of
    this machine.
    """
    with held_across_waits(_mutex):
        existing_only = read_only
        read_only = read_only and not os.access(directory, os.W_OK)
        if not read_only:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _refusal(error) from error
        if os.path.realpath(directory) in _of_parent:
            raise DatabaseBusy(
                "This process was forked from one that had the database open, and cannot open it. Fork "
                "before it is opened, or start a new program."
            )
        data = directory / "data.mdb"
        shared = _environments.get(_key_of(data)) if data.exists() else None
        if shared is not None:
            shared.users += 1
            return shared
        with _locked(directory):
            if not is_whole(directory) or (not existing_only and not data.exists()):
                if existing_only:
                    raise lmdb.CorruptedError("These files were written before the machine was last started.")
                _begin_anew(directory)
            try:
                shared = SharedEnvironment(directory, _Settings(map_size, tuple(names), read_only), executor)
            except lmdb.Error as error:  # a new one writes its databases
                if not is_full(error):
                    raise
                raise _disk_is_full() from error
        _environments[shared.key] = shared
        return shared


def look_into_environment(directory: Path, map_size: int, key: bytes) -> bytes | None:
    """Returns what stands under a key of the unnamed database, and waits for nobody who writes there.

    To open an environment as ``open_environment`` does takes LMDB's lock of writers, who may hang. Raises
    lmdb.Error as that.
    """
    with held_across_waits(_mutex):
        # LMDB opens a file once in a process.
        shared = _environments.get(_key_of(directory / "data.mdb"))
        if shared is not None:
            with shared.begin() as transaction:
                return transaction.get(key)
        if not is_whole(directory):
            raise lmdb.CorruptedError("These files were written before the machine was last started.")
        with lmdb.open(str(directory), map_size=map_size, readonly=True, max_readers=_READERS) as environment:
            if (directory / "data.mdb").stat().st_size < end_of(environment):
                raise lmdb.CorruptedError("These files were cut short.")
            with environment.begin() as found:
                return found.get(key)


def close_environment(shared: SharedEnvironment) -> None:
    """Ends one use of an environment; the last one closes it."""
    with held_across_waits(_mutex):
        shared.users -= 1
        if shared.users == 0:
            _environments.pop(shared.key, None)
            shared.close()


def _abandon_all() -> None:
    global _mutex
    _mutex = native_lock()
    for shared in _environments.values():
        shared.abandon()
        _of_parent[os.path.realpath(shared.directory)] = shared
    _environments.clear()


os.register_at_fork(after_in_child=_abandon_all)


def discard_environment(directory: Path, damaged: SharedEnvironment | None) -> None:
    """Deletes the files of an environment that can't be read, unless others have been put there meanwhile.

    Who has them open goes on with them until it looks at ``is_there``.
    """
    with _locked(directory):
        if damaged is None or damaged.is_there:
            destroy_environment(directory)


def is_damage(error: BaseException) -> bool:
    """Whether an error of LMDB says that the files can't be what was written."""
    return isinstance(error, _DAMAGE)


def is_full(error: lmdb.Error) -> bool:
    """Whether LMDB could not write for want of space; to it a write that was cut short is an I/O error."""
    return isinstance(error, lmdb.DiskError) or os.strerror(errno.EIO) in str(error)


def destroy_environment(directory: Path) -> None:
    """Deletes the files of an environment; nobody may have it open."""
    for name in ("data.mdb", "lock.mdb", NOTE):
        (directory / name).unlink(missing_ok=True)


def _begin_anew(directory: Path) -> None:
    try:
        destroy_environment(directory)
        note_written(directory)
    except OSError as error:
        if error.errno not in (*FULL, errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise _refusal(error) from error


def _refusal(error: OSError) -> SvcError:
    if error.errno in FULL:
        return _disk_is_full()
    return ReadOnly("The directory beside the database cannot be written.")


def _disk_is_full() -> InsufficientStorage:
    return InsufficientStorage("The disk is full: nothing more can be kept beside the database.")


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Excludes other processes that open an environment in the directory at this moment."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while not try_flock(descriptor):
            if time.monotonic() > deadline:
                raise DatabaseBusy(
                    f"{directory} is being opened by {_holder_of(descriptor)}, and not done after "
                    f"{_LONGEST_WAIT_SECONDS:.0f} seconds: let that process go on, or end it."
                )
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _holder_of(descriptor: int) -> str:
    status = os.fstat(descriptor)
    named = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as file:
            rows = [line.split() for line in file]
        (holder,) = {int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == named}
    except (OSError, ValueError, IndexError):
        holder = None
    return describe_process(holder)


def _new_environment(directory: Path, settings: _Settings) -> lmdb.Environment:
    if not settings.read_only:
        _make_lock_file(directory / "lock.mdb")
    try:
        environment = lmdb.open(
            str(directory),
            map_size=settings.map_size,
            max_dbs=len(settings.names),
            max_readers=_READERS,
            readonly=settings.read_only,
            create=not settings.read_only,
            lock=not settings.read_only,
            sync=False,
            metasync=False,
            writemap=False,
            readahead=False,
        )
    except lmdb.ReadonlyError as error:
        raise ReadOnly("The directory beside the database cannot be written.") from error
    environment.reader_check()
    if not settings.read_only:
        fill_up(directory / "data.mdb", environment)
    return environment


def _make_lock_file(path: Path) -> None:
    """Gives the table of readers its blocks: LMDB maps it, and a disk without room would end the process."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _refusal(error) from error
    try:
        os.posix_fallocate(descriptor, 0, _LOCK_FILE_BYTES)
    except OSError as error:
        if error.errno in FULL:
            raise _disk_is_full() from error
    finally:
        os.close(descriptor)


def _is_read(environment: lmdb.Environment) -> bool:
    """Whether a transaction of this process reads an environment, by LMDB's own table of readers."""
    rows = (line.split() for line in environment.readers().splitlines())
    return any(row[0] == str(os.getpid()) and row[-1] != "-" for row in rows if row)


def _key_of(data: str | Path) -> _Key:
    status = os.stat(data)
    return os.getpid(), status.st_dev, status.st_ino
