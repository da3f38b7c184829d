"""The file as a process follows it: read again when it changes, and the last good state while it is broken.

``current`` is asked for every request and looks at the file at most once a second; a thread asks too, so that
a state of the file is seen that nobody asks in. The last good state is that of all processes together: see
``copies``.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from svc.errors import InvalidInput
from svc.plugin import run_blocking
from svc_auth_file.copies import KeptCopy
from svc_auth_file.format import BadFile, UsersFile, parse_users
from svc_auth_file.trust import require_trusted, steps_of

__all__ = ["LARGEST_FILE", "LOOK_SECONDS", "UsersSource", "read_users"]

LARGEST_FILE = 4 * 1024 * 1024
"""Some 20,000 users with a key each."""
LOOK_SECONDS = 1.0
_SETTLED_NS = 2_000_000_000
_CHANGED_AT = 1
_STOP_SECONDS = 1.0

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
        self._copy = None if copy is None else KeptCopy(copy)
        self._clock = clock
        self._users: UsersFile | None = None
        self._content: bytes = b""
        self._read_ns = 0
        self._reading = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._signature = _signature(path)
        self._is_settled = False
        self._take(self._signature)
        self._known()
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
        return self._known()

    def follow(self) -> None:
        """Looks at the file once a second from now on, also while nobody asks."""
        self._thread = threading.Thread(target=self._run, name="svc-users-file", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the following; blocks for at most a second."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def _known(self) -> UsersFile:
        if self._users is None:
            raise InvalidInput(str(self.problem))
        return self._users

    def _run(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            try:
                self.current()
            except Exception:  # noqa: BLE001 - whatever it is, a second later it may be over
                _log.exception("the file of users could not be looked at")

    def _look(self) -> None:
        self._next_look = self._clock() + LOOK_SECONDS
        signature = _signature(self.path)
        if signature != self._signature or not self._is_settled:
            self._signature = signature
            run_blocking(self._take, signature)
        elif self.problem is not None:
            run_blocking(self._take_copy)

    def _take(self, signature: _Signature) -> None:
        """Reads the file, and uses it if it is in order. Blocks."""
        read_ns = time.time_ns()
        # What was written a moment ago may be written once more within the same tick of the file's clock.
        self._is_settled = not signature or abs(read_ns - signature[_CHANGED_AT]) > _SETTLED_NS
        try:
            content = _read(self.path)
            known = self._users if content == self._content else None
            self._use(known or parse_users(content, _now_ms()), content, read_ns)
        except BadFile as error:
            self._take_copy()
            problem = str(_refusal(self.path, error))
            if problem != self.problem and self._users is not None:
                _log.error("%s The last good one is used.", problem)
            self.problem = problem

    def _use(self, users: UsersFile, content: bytes, read_ns: int) -> None:
        if self._copy is not None:
            # First: what this process uses, the others must be able to find.
            self._copy.keep(content, read_ns)
        if self._users is not None and (users is not self._users or self.problem is not None):
            _log.info("read the file of users again: %d users", len(users.users))
        self._users, self._content, self._read_ns = users, content, read_ns
        self.problem = None

    def _take_copy(self) -> None:
        """Takes the users of the copy, if they were read from the file after those known here. Blocks."""
        if self._copy is None or self._copy.read_ns() <= self._read_ns:
            return
        kept = self._copy.read()
        if kept is None:
            return
        content, self._read_ns = kept
        if self._users is None or content != self._content:
            with contextlib.suppress(BadFile):
                users = parse_users(content, _now_ms())
                self._users, self._content = users, content
                _log.warning("took the users from the copy of the file that another process has kept")


def _signature(path: str) -> _Signature:
    """What changes when the file does, or who may change it; empty when there is none."""
    try:
        *way, (_, found) = steps_of(path)
    except (OSError, ValueError):
        return ()
    here = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)
    owners = ((step.st_mode, step.st_uid, step.st_ino) for step in (found, *(step for _, step in way)))
    return (*here, *itertools.chain.from_iterable(owners))


def _read(path: str) -> bytes:
    try:
        *way, (_, found) = steps_of(path)
        _require_regular(found)
        for place, step in way:
            require_trusted(step, place)
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
    require_trusted(found)
    if found.st_size > LARGEST_FILE:
        raise _too_large()


def _too_large() -> BadFile:
    return BadFile(f"It is larger than {LARGEST_FILE // 1024**2} MiB.")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
