"""Writes files below one directory of this machine, and nowhere else.

Every step goes through descriptors that follow no link: whatever stands in the directory already, and
whatever a database says, nothing outside it is touched. Each file appears whole under its name or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum

from svc.errors import InsufficientStorage
from svc.plugin import Path, content_hasher
from svc_files.commands.output import unwritable

__all__ = ["Existing", "TargetDirectory", "TargetRefused"]

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1024 * 1024
_HOLE = 64 * 1024
_ZEROS = bytes(_HOLE)
_PART = re.compile(r"\.svc-[0-9a-f]{16}\.part")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class TargetRefused(Exception):
    """An item cannot be written where it belongs; the text says why, in words for a person."""


class Existing(Enum):
    """What to do with an entry of the directory that differs from what is to be written."""

    KEEP = "keep"
    REPLACE = "replace"


class TargetDirectory:
    """A directory that is written into. Its methods may be called from several threads.

    It is made when it is missing, or raises an SvcError; where it is itself a link, that is followed. A full
    disk raises InsufficientStorage, and what may not be replaced TargetRefused.

    Args:
        location: of the directory.
        existing: what becomes of entries that differ.
        sparse: whether blocks of zeros become holes, which take no room.
    """

    def __init__(self, location: str, existing: Existing, *, sparse: bool = False) -> None:
        self._existing = existing
        self._sparse = sparse
        try:
            os.makedirs(location, exist_ok=True)
            self._root = os.open(location, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise unwritable(location, error) from error

    def close(self) -> None:
        """Gives the directory back."""
        os.close(self._root)

    def is_empty(self) -> bool:
        """Whether the directory holds nothing yet."""
        with os.scandir(self._root) as entries:
            return next(iter(entries), None) is None

    @contextmanager
    def directory(self, below: Path) -> Iterator[int]:
        """Yields the descriptor of a directory below the root; makes it and those on the way."""
        descriptor = os.dup(self._root)
        try:
            for name in below:
                with _refusals():
                    descriptor = self._step(descriptor, _checked(name))
            yield descriptor
        finally:
            os.close(descriptor)

    def _step(self, parent: int, name: str) -> int:
        """Opens, or makes, a directory in a directory, and closes the latter."""
        try:
            below = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
            below = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP) or self._existing is Existing.KEEP:
                raise
            os.unlink(name, dir_fd=parent)
            os.mkdir(name, dir_fd=parent)
            below = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
        os.close(parent)
        return below

    def remove_left_parts(self, parent: int) -> None:
        """Removes from a directory what a dump that was killed has left; not what one is writing now."""
        with _refusals(), os.scandir(parent) as entries:
            names = [entry.name for entry in entries if _PART.fullmatch(entry.name)]
        for name in names:
            with suppress(OSError):
                if not stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    _require_no_writer(parent, name)
                os.unlink(name, dir_fd=parent)

    def holds_file(self, parent: int, name: str, size: int, content_hash: str) -> bool:
        """Whether a regular file of this content stands under the name.

        Raises TargetRefused where something else stands there, and may not be replaced.
        """
        with _refusals():
            try:
                status = os.stat(_checked(name), dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                return False
            if stat.S_ISDIR(status.st_mode):
                raise TargetRefused("a directory stands in its place")
            same_size = stat.S_ISREG(status.st_mode) and status.st_size == size
            if same_size and _hash_below(parent, name) == content_hash:
                return True
            if self._existing is Existing.KEEP:
                raise TargetRefused("something else stands in its place; --force replaces it")
            return False

    def write_file(
        self, parent: int, name: str, pieces: Iterator[bytes], content_hash: str, time_ms: int | None
    ) -> int:
        """Writes a file and gives it its name once it is whole; returns its bytes.

        Raises TargetRefused where the system refuses it, or the content is not what it should be.
        """
        with _refusals(), _temporary(parent) as temporary:
            descriptor = os.open(temporary, _FILE_FLAGS, 0o666, dir_fd=parent)
            try:
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                size, written_hash = _write(descriptor, pieces, sparse=self._sparse)
                if written_hash != content_hash:
                    raise TargetRefused("what was read does not have the hash that it should")
                if time_ms is not None:
                    os.utime(descriptor, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
            finally:
                os.close(descriptor)
            os.rename(temporary, _checked(name), src_dir_fd=parent, dst_dir_fd=parent)
        return size

    def write_link(self, parent: int, name: str, target: str, time_ms: int | None) -> bool:
        """Makes a symbolic link; returns False when it stands there already."""
        with _refusals():
            try:
                status = os.stat(_checked(name), dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                pass
            else:
                if stat.S_ISLNK(status.st_mode) and os.readlink(name, dir_fd=parent) == target:
                    return False
                if stat.S_ISDIR(status.st_mode):
                    raise TargetRefused("a directory stands in its place")
                if self._existing is Existing.KEEP:
                    raise TargetRefused("something else stands in its place; --force replaces it")
            with _temporary(parent) as temporary:
                os.symlink(target, temporary, dir_fd=parent)
                if time_ms is not None:
                    times = (time_ms * 1_000_000, time_ms * 1_000_000)
                    os.utime(temporary, ns=times, dir_fd=parent, follow_symlinks=False)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        return True

    def set_time(self, below: Path, time_ms: int) -> None:
        """Sets a directory's modification time."""
        with self.directory(below) as descriptor, _refusals():
            os.utime(descriptor, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns an error of the system into what it means for the item; a full disk ends everything."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InsufficientStorage("The disk of the directory is full.") from error
        if error.errno == errno.ELOOP:
            raise TargetRefused("a symbolic link stands in its place") from error
        raise TargetRefused(_reason(error)) from error


@contextmanager
def _temporary(parent: int) -> Iterator[str]:
    """Yields a name that nobody uses; what still bears it at the end is removed."""
    name = f".svc-{secrets.token_hex(8)}.part"
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)


def _require_no_writer(parent: int, name: str) -> None:
    """Raises OSError where a process is writing a part: it holds its lock."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


def _write(descriptor: int, pieces: Iterator[bytes], *, sparse: bool) -> tuple[int, str]:
    hasher = content_hasher()
    size = 0
    for piece in pieces:
        hasher.update(piece)
        for start in range(0, len(piece), _HOLE) if sparse else (0,):
            block = piece[start : start + _HOLE] if sparse else piece
            if sparse and block == _ZEROS[: len(block)]:
                os.lseek(descriptor, len(block), os.SEEK_CUR)
            else:
                _write_all(descriptor, block)
        size += len(piece)
    if sparse:
        os.ftruncate(descriptor, size)
    return size, hasher.hexdigest()


def _write_all(descriptor: int, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _hash_below(parent: int, name: str) -> str:
    hasher = content_hasher()
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        while piece := os.read(descriptor, _PIECE):
            hasher.update(piece)
    finally:
        os.close(descriptor)
    return hasher.hexdigest()


def _checked(name: str) -> str:
    """A name that stays in its directory, whatever a foreign server may have sent."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise TargetRefused("no file can have this name")
    return name


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
