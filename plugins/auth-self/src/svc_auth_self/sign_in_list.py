"""The last sign-ins, and the last that were refused: files of the state directory, bounded.

They are no commits: who guesses keys must not make the database grow. A line is one write at the end of a
file, so that all workers share it. Good ones and refused ones have a file each: who guesses pushes nothing
out that matters. A file that is full becomes the older one, in the place of that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["SignInLine", "keep_sign_in", "read_sign_ins"]

MOST_BYTES = 256 * 1024
_DIRECTORY = "sign-ins"
_NAMES = {False: "good", True: "refused"}
_OLDER = ".older"


class SignInLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sign-in that was good or refused.

    Attributes:
        at: when, Unix milliseconds.
        how: by what: ``API key``, ``link``, ``refresh token``.
        user_id: who has signed in.
        key_id: of the key, where there is one of this id.
        remote: address of the client; None over a Unix socket.
        request_id: what the log has of it, too.
        reason: why it was refused; None: it was not.
    """

    at: int
    how: str
    user_id: str | None = None
    key_id: str | None = None
    remote: str | None = None
    request_id: str = ""
    reason: str | None = None


def keep_sign_in(database: Database, line: SignInLine) -> None:
    """Adds a line to the list; what can't be written is lost. A write to the page cache, and no commit."""
    with contextlib.suppress(OSError):
        path = _path(database, line.reason is not None)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
            written = os.fstat(descriptor)
            # Of two processes that see it full one moves it; the other finds a file that is not this one.
            if written.st_size >= MOST_BYTES and os.stat(path).st_ino == written.st_ino:
                os.replace(path, path.with_suffix(_OLDER))
        finally:
            os.close(descriptor)


def read_sign_ins(database: Database, *, limit: int, is_refused: bool | None) -> list[SignInLine]:
    """Returns the last lines, the newest first: good ones, refused ones, or both. Reads a MiB at most."""
    kinds = (False, True) if is_refused is None else (is_refused,)
    lines = [line for kind in kinds for line in _lines(_path(database, kind))]
    return sorted(lines, key=lambda line: line.at, reverse=True)[:limit]


def _lines(path: Path) -> Iterator[SignInLine]:
    for file in (path.with_suffix(_OLDER), path):
        with contextlib.suppress(OSError):
            for line in file.read_bytes().splitlines():
                # One that a full disk has cut is left out.
                with contextlib.suppress(msgspec.MsgspecError):
                    yield msgspec.json.decode(line, type=SignInLine)


def _path(database: Database, is_refused: bool) -> Path:
    return Path(database.state_directory) / _DIRECTORY / _NAMES[is_refused]
