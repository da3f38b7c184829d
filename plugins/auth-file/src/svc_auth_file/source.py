"""The file as a process follows it: read again when it changes, and the last good state while it is broken.

``current`` is asked for every request and looks at the file at most once a second. A copy of the last good
state stands beside the database, for a process that begins while the file is broken.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from svc.errors import InvalidInput
from svc.plugin import hash_content, run_blocking
from svc_auth_file.format import BadFile, UsersFile, parse_users

__all__ = ["LARGEST_FILE", "LOOK_SECONDS", "UsersSource", "copy_of", "read_users"]

LARGEST_FILE = 8 * 1024 * 1024
LOOK_SECONDS = 1.0
_SETTLED_NS = 2_000_000_000
_CHANGED_AT = 1

_log = logging.getLogger("svc.plugin.auth.file")

_Signature = tuple[int, ...]


def read_users(path: str) -> UsersFile:
    """Reads and checks a file of users. Blocks.

    Raises:
        InvalidInput: it can't be used; the message names it, and says what is wrong and where.
    """
    try:
        return parse_users(_read(path), _now_ms())
    except BadFile as error:
        raise _refusal(path, error) from None


def _refusal(path: str, error: BadFile) -> InvalidInput:
    return InvalidInput(f"The file of users {path} can't be used. {error}", problems=list(error.problems))


class UsersSource:
    """Follows one file. Methods may be called from any thread or greenlet.

    Args:
        path: of the file.
        copy: where the last good content is kept; None keeps none.
        clock: seconds that never go back.

    Attributes:
        problem: what is wrong with the file now, for whoever runs the server; None when nothing is.

    Raises:
        InvalidInput: the file can't be used, and there is no copy of a good one.
    """

    def __init__(self, path: str, copy: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.problem: str | None = None
        self._copy = copy
        self._clock = clock
        self._users: UsersFile | None = None
        self._content: bytes = b""
        self._reading = threading.Lock()
        self._signature = _signature(path)
        self._is_settled = False
        self._take(self._signature)
        if self._users is None:
            self._users = self._from_copy()
        self._next_look = clock() + LOOK_SECONDS

    def current(self) -> UsersFile:
        """The users as the file names them; the same object until it changes.

        Looks at the file once a second. Whoever finds it changed waits while it is read; others are given
        what was known before.
        """
        if self._clock() >= self._next_look and self._reading.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._reading.release()
        assert self._users is not None
        return self._users

    def _look(self) -> None:
        self._next_look = self._clock() + LOOK_SECONDS
        signature = _signature(self.path)
        if signature != self._signature or not self._is_settled:
            self._signature = signature
            run_blocking(self._take, signature)

    def _take(self, signature: _Signature) -> None:
        """Reads the file, and uses it if it is in order. Blocks."""
        # What was written a moment ago may be written once more within the same tick of the file's clock.
        self._is_settled = not signature or abs(time.time_ns() - signature[_CHANGED_AT]) > _SETTLED_NS
        try:
            content = _read(self.path)
            if self._users is None or content != self._content or self.problem is not None:
                self._use(parse_users(content, _now_ms()), content)
        except BadFile as error:
            problem = str(_refusal(self.path, error))
            if problem != self.problem and self._users is not None:
                _log.error("%s The last good one is used.", problem)
            self.problem = problem

    def _use(self, users: UsersFile, content: bytes) -> None:
        known = self._users
        if known is None or content != self._content:
            self._users, self._content = users, content
            self._keep(content)
        if known is not None:
            _log.info("read the file of users again: %d users", len(users.users))
        self.problem = None

    def _keep(self, content: bytes) -> None:
        if self._copy is None:
            return
        new = self._copy.with_name(f"{self._copy.name}.{os.getpid()}")
        try:
            if _content_of(self._copy) == content:
                return
            self._copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)
            new.replace(self._copy)
        except OSError as error:
            _log.warning("the copy of the file of users could not be written: %s", error.strerror)
            with contextlib.suppress(OSError):
                new.unlink()

    def _from_copy(self) -> UsersFile:
        content = None if self._copy is None else _content_of(self._copy)
        if content is not None:
            with contextlib.suppress(BadFile):
                users = parse_users(content, _now_ms())
                self._content = content
                _log.error("%s A copy of the last good one is used.", self.problem)
                return users
        assert self.problem is not None
        raise InvalidInput(self.problem)


def copy_of(state_directory: Path, path: str) -> Path:
    """Returns where the copy of a file is kept."""
    name = hash_content(os.fsencode(path)).hex()[:32]
    return state_directory / "auth.file" / f"{name}.toml"


def _signature(path: str) -> _Signature:
    """What changes when the file does; empty when there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev, found.st_mode)


def _read(path: str) -> bytes:
    try:
        _require_regular(os.stat(path))
        # A pipe that has taken its place meanwhile must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb") as file:
            _require_regular(os.fstat(descriptor))
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadFile(f"It can't be read: {error.strerror or error}.") from None
    except ValueError:
        raise BadFile("Its path can't be one.") from None
    if len(content) > LARGEST_FILE:
        raise _too_large()
    return content


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise BadFile("It is a directory.")
    if not stat.S_ISREG(found.st_mode):
        raise BadFile("It is no regular file.")
    if found.st_mode & stat.S_IWOTH:
        raise BadFile("Everybody on this machine may write it: 'chmod o-w' takes that away.")
    if found.st_size > LARGEST_FILE:
        raise _too_large()


def _too_large() -> BadFile:
    return BadFile(f"It is larger than {LARGEST_FILE // 1024**2} MiB.")


def _content_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
