"""The directory of this machine: entered without following links, and changed so that nothing is lost.

Paths are relative to it, in the Unicode form of the database. What is replaced or removed is looked at again
behind that: a file that somebody wrote to in the meantime is kept under another name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import socket
import stat
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from svc.errors import Conflict, InsufficientStorage, UsageError
from svc.plugin import content_hasher
from svc_mirror.client.values import Kind, Seen

__all__ = ["OWN", "Left", "LocalTree", "hash_of", "seen_of"]

OWN = ".svc-mirror"
"""The directory of the mirror's own files."""

_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT)
_IN_THE_WAY = (errno.ENOTDIR, errno.ELOOP, errno.EEXIST, errno.EISDIR)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
_PIECE = 1024 * 1024
_LONGEST_NAME = 255


class Left(Exception):
    """A path is left as it is, and the text says why; ``again``: the next look may find it otherwise."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


class LocalTree:
    """A directory that is mirrored, locked for this process. ``names`` are those in another Unicode form."""

    def __init__(self, location: str) -> None:
        """Opens it, or makes it.

        Raises:
            Conflict: another process mirrors it.
            UsageError: there is no such directory, and it can't be made.
        """
        self.location = os.path.abspath(location)
        own = os.path.join(self.location, OWN)
        self.parts, self._removed = os.path.join(own, "parts"), os.path.join(own, "removed")
        try:
            os.makedirs(self.location, exist_ok=True)
            for directory in (own, self.parts, self._removed):
                with suppress(FileExistsError):
                    os.mkdir(directory, 0o700)
            self._lock = os.open(os.path.join(own, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._root = os.open(self.location, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"{location} can't be used: {_reason(error)}.") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise Conflict("Another svc mirror works on this directory.") from None
        self.names: dict[str, str] = {}
        for name in os.listdir(self._removed):
            with suppress(OSError):
                os.unlink(os.path.join(self._removed, name))

    @property
    def state_location(self) -> str:
        """Where the state is."""
        return os.path.join(self.location, OWN, "state.sqlite")

    def close(self) -> None:
        """Gives the directory back."""
        os.close(self._root)
        os.close(self._lock)

    def actual(self, path: str) -> str:
        """Returns the path as it is spelt on this machine."""
        if not self.names:
            return path
        segments = path.split("/")
        spelt = [self.names.get("/".join(segments[: at + 1]), name) for at, name in enumerate(segments)]
        return "/".join(spelt)

    @contextmanager
    def parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Yields the descriptor of the directory that a path is in, and its name there."""
        *above, name = self.actual(path).split("/")
        descriptor = os.dup(self._root)
        try:
            with _explained():
                for segment in above:
                    if make:
                        with suppress(FileExistsError):
                            os.mkdir(segment, dir_fd=descriptor)
                    below = os.open(segment, _ENTER, dir_fd=descriptor)
                    os.close(descriptor)
                    descriptor = below
                yield descriptor, name
        finally:
            os.close(descriptor)

    def entries(self, directory: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yields names and statuses in a directory; nothing where none stands. Raises Left."""
        try:
            descriptor = os.dup(self._root) if not directory else self._enter(directory)
        except OSError as error:
            if error.errno in (errno.ENOENT, *_IN_THE_WAY):
                return
            raise Left(_reason(error)) from error
        try:
            with _explained():
                for name in os.listdir(descriptor):
                    with suppress(FileNotFoundError):
                        yield name, os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        finally:
            os.close(descriptor)

    def _enter(self, directory: str) -> int:
        descriptor = os.dup(self._root)
        for segment in self.actual(directory).split("/"):
            try:
                below = os.open(segment, _ENTER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    def look(self, path: str) -> Seen | None:
        """Returns the status of what stands at a path, not hashed; None for nothing."""
        try:
            with self.parent(path) as (parent, name):
                return seen_of(os.stat(name, dir_fd=parent, follow_symlinks=False))
        except (FileNotFoundError, Left):
            return None

    @contextmanager
    def reading(self, path: str) -> Iterator[tuple[int, Seen]]:
        """Opens a file and yields its descriptor and status; Left where no file stands there."""
        with self.parent(path) as (parent, name):
            try:
                descriptor = os.open(name, _READ, dir_fd=parent)
            except FileNotFoundError:
                raise Left("it vanished", again=True) from None
        try:
            seen = seen_of(os.fstat(descriptor))
            if seen is None or seen.kind is not Kind.FILE:
                raise Left("it is no regular file any more", again=True)
            yield descriptor, seen
        finally:
            os.close(descriptor)

    def link_target(self, path: str) -> str:
        """Returns the text of a symbolic link."""
        with self.parent(path) as (parent, name):
            return os.readlink(name, dir_fd=parent)

    def make_directory(self, path: str) -> None:
        """Makes a directory, and those above it."""
        with self.parent(path, make=True) as (parent, name):
            try:
                os.mkdir(name, dir_fd=parent)
            except FileExistsError:
                if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    raise Left("something else stands in its place", again=True) from None

    def remove_directory(self, path: str) -> bool:
        """Removes a directory; returns whether it was empty."""
        with self.parent(path) as (parent, name):
            try:
                os.rmdir(name, dir_fd=parent)
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    def remove(self, path: str, seen: Seen) -> None:
        """Removes a file or link that is as it was seen; Left where it changed."""
        kept = os.path.join(self._removed, secrets.token_hex(8))
        with self.parent(path) as (parent, name):
            os.rename(name, kept, src_dir_fd=parent)
        self._drop(kept, path, seen)

    def place(self, part: str, path: str, seen: Seen | None) -> Seen:
        """Gives a finished file its place, in one step, and returns its status there.

        ``seen`` is what is to be replaced; where anything else stands it stays, and Left is raised.
        """
        kept = os.path.join(self._removed, secrets.token_hex(8))
        with self.parent(path, make=True) as (parent, name):
            if seen is None:
                try:
                    os.link(part, name, dst_dir_fd=parent, follow_symlinks=False)
                except FileExistsError:
                    raise Left("something came in its place", again=True) from None
                except OSError as error:
                    if error.errno not in _NO_LINKS or _stands(parent, name):
                        raise
                    os.rename(part, name, dst_dir_fd=parent)
                else:
                    os.unlink(part)
            else:
                mode = _require(parent, name, seen)
                if seen.kind is Kind.FILE:
                    os.chmod(part, mode)
                is_kept = _link(parent, name, kept)
                os.rename(part, name, dst_dir_fd=parent)
                if is_kept:
                    self._drop(kept, path, seen)
            placed = seen_of(os.stat(name, dir_fd=parent, follow_symlinks=False))
        assert placed is not None
        return placed

    def _drop(self, kept: str, path: str, seen: Seen) -> None:
        """Removes what was taken from a path, unless somebody has written to it: then it stays beside it."""
        now = seen_of(os.lstat(kept))
        if now is not None and now.is_like(seen):
            os.unlink(kept)
            return
        with self.parent(path, make=True) as (parent, name):
            other = _free_name(parent, name)
            os.rename(kept, other, dst_dir_fd=parent)
        raise Left(f"it was changed meanwhile, and is kept as {other!r}", again=True)

    def set_aside(self, path: str) -> str:
        """Gives what stands at a path another name beside it; returns the path that it has then."""
        with self.parent(path) as (parent, name):
            other = _free_name(parent, name)
            try:
                os.rename(name, other, src_dir_fd=parent, dst_dir_fd=parent)
            except FileNotFoundError:
                raise Left("it vanished", again=True) from None
            os.fsync(parent)
        above = path.rpartition("/")[0]
        return f"{above}/{other}" if above else other

    def sync_parents(self, paths: list[str]) -> None:
        """Puts the names of files on the disk, before it is noted that they are there."""
        for directory in {path.rpartition("/")[0] for path in paths}:
            with suppress(OSError):
                descriptor = self._enter(directory) if directory else os.dup(self._root)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def hash_of(tree: LocalTree, path: str) -> tuple[str, Seen]:
    """Returns the content hash of a file and its status; Left where it changes while it is read."""
    hasher = content_hasher()
    with tree.reading(path) as (descriptor, before):
        with _explained():
            while piece := os.read(descriptor, _PIECE):
                hasher.update(piece)
        after = seen_of(os.fstat(descriptor))
    if after is None or not after.is_like(before):
        raise Left("it changes while it is read", again=True)
    return hasher.hexdigest(), after


def seen_of(status: os.stat_result) -> Seen | None:
    """Returns a status as a mirror sees it; None for what can't be mirrored."""
    if stat.S_ISREG(status.st_mode):
        kind = Kind.FILE
    elif stat.S_ISDIR(status.st_mode):
        kind = Kind.DIRECTORY
    elif stat.S_ISLNK(status.st_mode):
        kind = Kind.LINK
    else:
        return None
    return Seen(kind, "", status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _require(parent: int, name: str, seen: Seen) -> int:
    """Returns the permissions of a file that is as it was seen; Left where it changed."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        raise Left("it vanished", again=True) from None
    now = seen_of(status)
    if now is None or not now.is_like(seen):
        raise Left("it was changed meanwhile", again=True)
    return stat.S_IMODE(status.st_mode)


def _stands(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _link(parent: int, name: str, kept: str) -> bool:
    """Keeps a file by a second name, where the file system has such."""
    try:
        os.link(name, kept, src_dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True


def _free_name(parent: int, name: str) -> str:
    """Returns the name of a conflict copy that nothing has yet."""
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > 16:
        stem, dot, ending = name, "", ""
    host = "".join(letter for letter in socket.gethostname() if letter.isalnum() or letter in "-_")[:40]
    day = time.strftime("%Y-%m-%d")
    for number in range(1, 10_000):
        mark = f" (conflict {host} {day}{f' {number}' if number > 1 else ''}){dot}{ending}"
        room = _LONGEST_NAME - len(mark.encode())
        short = stem.encode()[:room].decode("utf-8", "ignore")
        found = unicodedata.normalize("NFC", short + mark)
        if not _stands(parent, found):
            return found
    raise Left("there are too many conflict copies of it")


@contextmanager
def _explained() -> Iterator[None]:
    """Turns an error of the system into why a path is left; a full disk ends the run."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise InsufficientStorage("The disk of the directory is full.") from error
        raise Left(_reason(error), again=error.errno in _IN_THE_WAY) from error


def _reason(error: OSError) -> str:
    if error.errno == errno.EXDEV:
        return "it lies on another file system than the directory that is mirrored"
    if error.errno in _IN_THE_WAY:
        return "something else stands in its way"
    return (error.strerror or str(error)).lower()
