"""Writes an export or a patch to disk: whole and durable under its name, or not there at all.

A file is written without a name, synced, and linked to its name, which must be free; whatever ends the
process before that, nothing is left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from svc.errors import AlreadyExists, Forbidden, InsufficientStorage, InvalidInput, NotFound, SvcError
from svc.plugin import run_blocking
from svc_backup.format import Outgoing

__all__ = ["refuse_existing", "write_file"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MODE = 0o600
_DESCRIPTORS = "/proc/self/fd"

Progress = Callable[[int, int], None]


def refuse_existing(path: Path) -> None:
    """Raises AlreadyExists when anything has the name of a file that is to be written."""
    if not path.name:
        raise InvalidInput("The name of the file to write is empty.", field="output")
    try:
        exists = os.path.lexists(path)
    except ValueError as error:
        raise InvalidInput("A file's name may not hold NUL.", field="output") from error
    if exists:
        raise AlreadyExists(f"{path.name} exists already, and is not overwritten.", field="output")


def write_file(
    outgoing: Outgoing,
    path: Path,
    *,
    pause: Callable[[], None],
    progress: Progress | None = None,
    verify: Callable[[int], None] | None = None,
) -> None:
    """Writes a planned file, durably, where nothing may be. Blocks; its mode is 0600 less the umask.

    ``pause`` is called after each piece, to let others run; ``progress`` is told (bytes written, bytes in
    all). ``verify`` is given the descriptor of the file once it is durable, and raises if it is to get no
    name.

    Raises AlreadyExists, NotFound where the directory is missing, Forbidden, InsufficientStorage, and
    CorruptRecord where the database is damaged where the version needs it.
    """
    refuse_existing(path)
    try:
        _write(outgoing, path, pause, progress, verify)
    except OSError as error:
        raise _error(error, path) from error


def _write(
    outgoing: Outgoing,
    path: Path,
    pause: Callable[[], None],
    progress: Progress | None,
    verify: Callable[[int], None] | None,
) -> None:
    descriptor, temporary = _open_unnamed(path)
    try:
        written = 0
        for piece in outgoing.pieces():
            _write_all(descriptor, piece)
            written += len(piece)
            pause()
            if progress is not None:
                progress(written, outgoing.size)
        run_blocking(os.fsync, descriptor)
        if verify is not None:
            # What is read now shall come from the disk.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            verify(descriptor)
        _name(descriptor, temporary, path)
        run_blocking(_sync_directory, path.parent)
    finally:
        os.close(descriptor)
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def _open_unnamed(path: Path) -> tuple[int, Path | None]:
    """Opens a file without a name; where there are none such, one with a name of its own."""
    if os.path.isdir(_DESCRIPTORS):
        try:
            return os.open(path.parent, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, _MODE), None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    temporary = path.with_name(f".{path.name[:200]}.part-{secrets.token_hex(8)}")
    return os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE), temporary


def _name(descriptor: int, temporary: Path | None, path: Path) -> None:
    if temporary is not None:
        os.link(temporary, path)
        return
    # Only linkat(2) follows the link that stands for a descriptor, and it is used where there is a directory.
    directory = os.open(_DESCRIPTORS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(str(descriptor), path, src_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(directory)


def _write_all(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(descriptor)


def _error(error: OSError, path: Path) -> SvcError:
    if error.errno == errno.EEXIST:
        return AlreadyExists(f"{path.name} exists already, and is not overwritten.", field="output")
    if error.errno in _FULL:
        return InsufficientStorage(f"There is no space left to write {path.name}.")
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EOPNOTSUPP, errno.EISDIR) and path.parent.is_dir():
        # What is no place for files of anybody's, such as /proc, says that there is no such name.
        return Forbidden(f"{path.name} cannot be written: its directory takes no files.", field="output")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"{path.name} cannot be written: its directory does not exist.", field="output")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Forbidden(f"There is no permission to write {path.name}.", field="output")
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        return InvalidInput(f"{path.name[:80]} cannot be the name of a file.", field="output")
    return SvcError(f"{path.name} cannot be written: {(error.strerror or 'unknown reason').lower()}.")
