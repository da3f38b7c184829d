"""Pins: chunks that clients were told of, which no version may hold yet.

A client that uploads chunks ahead, or asks which ones are there, has a day to commit what it makes of them.
What it was told is appended to small files in the state directory, one an hour. They need not survive a power
cut: a client is told which chunks are missing when it commits.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from svc.clock import now_ms
from svc.errors import SvcError
from svc.hashing import HASH_SIZE, Hash
from svc.log import boot_id
from svc.log.creation import open_error

__all__ = ["MOST_HOURS", "UPLOAD_HOURS", "Pins"]

UPLOAD_HOURS = 24
"""For how long chunks are kept that a client was told of."""

MOST_HOURS = 720
"""Pins that are older than this are removed, whether anybody collects or not."""

_HOUR_MS = 3_600_000
_SINCE = "since"


class Pins:
    """The pins of one database. Any number of processes add to them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def add(self, hashes: Iterable[Hash]) -> None:
        """Pins chunks for some time from now on; microseconds, no sync."""
        content = b"".join(hashes)
        if not content:
            return
        place = self._directory / str(now_ms() // _HOUR_MS)
        try:
            try:
                descriptor = self._open(place)
            except FileNotFoundError:
                self.begin()
                descriptor = self._open(place)
            try:
                if not os.fstat(descriptor).st_size:
                    self.remove(now_ms() - MOST_HOURS * _HOUR_MS)  # once an hour
                if os.write(descriptor, content) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _refusal(error, place) from error

    def since(self) -> int:
        """Returns since when pins are kept, Unix milliseconds: of chunks before nobody knows.

        A power cut may have taken away what was pinned before the machine started.
        """
        try:
            boot, _, since = (self._directory / _SINCE).read_text("ascii").partition(" ")
            if boot == boot_id().hex():
                return int(since)
        except (OSError, ValueError):
            pass
        return now_ms()

    def may_be_read(self) -> bool:
        """Whether the present user may read them: they are the owner's alone."""
        try:
            return all(os.access(self._directory / name, os.R_OK) for name in self._names())
        except PermissionError:
            return False

    def read(self, after_ms: int) -> Iterator[Hash]:
        """Yields what was pinned since a time, and within the hour before it; some of it more than once."""
        for name in self._names():
            if int(name) >= after_ms // _HOUR_MS:
                try:
                    content = (self._directory / name).read_bytes()
                except IsADirectoryError:
                    continue  # nobody of us made it
                for at in range(0, len(content) - HASH_SIZE + 1, HASH_SIZE):
                    yield content[at : at + HASH_SIZE]

    def remove(self, before_ms: int) -> None:
        """Removes what was pinned before a time."""
        for name in self._names():
            if int(name) < before_ms // _HOUR_MS:
                with suppress(IsADirectoryError, FileNotFoundError):
                    (self._directory / name).unlink()

    def begin(self) -> None:
        """Keeps pins from now on, if they are not kept yet in this boot of the machine."""
        own = boot_id().hex()
        place = self._directory / _SINCE
        try:
            try:
                if place.read_bytes().startswith(own.encode()):
                    return
            except FileNotFoundError:
                self._directory.mkdir(mode=0o700, exist_ok=True)
            temporary = place.with_name(f"{_SINCE}.{os.getpid()}")
            temporary.write_text(f"{own} {now_ms()}", "ascii")
            os.replace(temporary, place)
        except OSError as error:
            raise _refusal(error, place) from error

    def _names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._directory) if name.isdecimal()]
        except FileNotFoundError:
            return []

    @staticmethod
    def _open(place: Path) -> int:
        return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _refusal(error: OSError, place: Path) -> SvcError:
    return open_error(error, place)
