"""Making a new log, whole or not at all, also by two at once; and saying clearly why one cannot be opened."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import uuid
from pathlib import Path

from svc.clock import now_ms
from svc.errors import (
    DatabaseNotFound,
    Forbidden,
    ForeignFile,
    InsufficientStorage,
    InvalidInput,
    ReadOnly,
    SvcError,
)
from svc.log.file_operations import FileOperations
from svc.log.framing import FileHeader, encode_file_header

__all__ = ["FULL", "create_file", "make_state_directory", "open_error", "refuse_irregular"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a full medium, a quota or a file size limit answers."""

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def refuse_irregular(path: Path) -> None:
    """Refuses what is not a regular file before it is opened (opening a pipe would block).

    Also raises ``DatabaseNotFound``, ``Forbidden`` for a directory on the way that may not be searched, and
    ``InvalidInput`` for a name that is too long, circular, or holds NUL.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise open_error(error, path) from error
    except ValueError as error:
        raise InvalidInput("The name of a database may not hold NUL.") from error
    if stat.S_ISDIR(mode):
        raise ForeignFile(f"{path} is a directory, not an svc database.")
    if not stat.S_ISREG(mode):
        raise ForeignFile(f"{path} is not a regular file, and so not an svc database.")


def open_error(error: OSError, path: Path, *, readable: bool = False) -> SvcError:
    """Returns svc's error for a system's error in opening; of a ``readable`` file only writing is refused."""
    number = error.errno
    if number in FULL:
        return InsufficientStorage(f"There is no space left to open {path} for writing.")
    if number == errno.EROFS or (readable and number in (errno.EACCES, errno.EPERM)):
        return ReadOnly(f"{path} cannot be written: {_reason(error)}. It can be opened for reading only.")
    if number in (errno.EACCES, errno.EPERM):
        return Forbidden(f"There is no permission to open {path}.")
    if number in (errno.ENOENT, errno.ENOTDIR):
        return DatabaseNotFound(f"There is no database at {path}.")
    if number == errno.EISDIR:
        return ForeignFile(f"{path} is a directory, not an svc database.")
    if number in (errno.ENAMETOOLONG, errno.ELOOP):
        return InvalidInput(f"{path} cannot be opened: {_reason(error)}.")
    return SvcError(f"{path} cannot be opened: {_reason(error)}.")


def create_file(path: Path, operations: FileOperations) -> None:
    """Makes an empty log unless something is at ``path``; either way something is there afterwards.

    The file is written under another name, made durable and linked into place. Its mode is 0600 less the
    umask: it holds everybody's files. Blocks (two syncs). ``DatabaseNotFound``: the directory is missing;
    ``ReadOnly``, ``Forbidden``, ``InsufficientStorage``: it does not take the file.
    """
    temporary = path.with_name(f".{path.name}.new-{os.getpid()}-{uuid.uuid4().hex[:8]}")
    header = encode_file_header(FileHeader(uuid.uuid4().bytes, now_ms()))
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _creation_error(error, path) from error
    try:
        written = operations.pwritev(fd, [header], 0)
        if written != len(header):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        operations.fsync(fd)
        _place(temporary, path)
        sync_directory(path.parent, operations)
    except OSError as error:
        raise _creation_error(error, path) from error
    finally:
        os.close(fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def make_state_directory(directory: Path) -> None:
    """Makes the directory of what can be rebuilt, mode 0700 less the umask, unless it is there."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not directory.is_dir():
            raise ForeignFile(f"{directory} is in the way: it must be a directory.") from None
    except OSError as error:
        raise _creation_error(error, directory) from error


def sync_directory(directory: Path, operations: FileOperations) -> None:
    """Makes the names in a directory durable; filesystems that cannot are left to themselves."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        operations.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.EROFS):
            raise
    finally:
        os.close(fd)


def _place(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _place_without_links(temporary, path)


def _place_without_links(temporary: Path, path: Path) -> None:
    """As ``_place`` where there are no hard links: whoever has the directory's lock may rename."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_EX)
        if not os.path.lexists(path):
            os.rename(temporary, path)
    finally:
        os.close(directory)


def _creation_error(error: OSError, path: Path) -> SvcError:
    if error.errno == errno.ENOENT and path.parent.is_dir():
        # What is no place for files of anybody's, such as /proc, says so.
        return Forbidden(f"{path} cannot be made: the directory {path.parent} takes no files.")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return DatabaseNotFound(f"{path} cannot be made: the directory {path.parent} does not exist.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Forbidden(f"There is no permission to make {path}.")
    if error.errno == errno.EROFS:
        return ReadOnly(f"{path} cannot be made: its medium is read-only.")
    return open_error(error, path)


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown reason").lower()
