"""Who is the background process of a database: whoever holds one byte of its lock file locked.

Where the log is a local file, that file is it, as for the other locks: what lies beside the log may be
removed at any time, and a lock file there would exclude nobody.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from svc.errors import DatabaseNotFound, Forbidden, ForeignFile, ReadOnly
from svc.log.byte_locks import BACKGROUND, LocksUnavailable, is_locked, try_exclusive

__all__ = ["Candidate", "is_elected"]


class Candidate:
    """One process that wants to be the background process; it must be able to write the database file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            raise DatabaseNotFound(f"There is no database {self.path}.") from None
        except IsADirectoryError:
            raise ForeignFile(f"{self.path} is a directory, not an svc database.") from None
        except PermissionError:
            raise Forbidden(f"There is no permission to write {self.path}.") from None
        except OSError as error:
            raise ReadOnly(f"{self.path} can't be written: {error.strerror}.") from None
        self._elected = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def acquire(self) -> bool:
        """Takes the lease if it is free; returns whether it is held. Never blocks. May raise ReadOnly."""
        if not self._elected:
            try:
                self._elected = try_exclusive(self._descriptor, BACKGROUND)
            except LocksUnavailable:
                raise ReadOnly(f"The filesystem of {self.path} has no byte-range locks.") from None
        return self._elected

    @property
    def is_outdated(self) -> bool:
        """Whether the path names another file by now, so that this lease means nothing any more."""
        opened = os.fstat(self._descriptor)
        try:
            named = os.stat(self.path)
        except OSError:
            return True
        return (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino)

    def close(self) -> None:
        """Gives the lease back; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def is_elected(path: str | os.PathLike[str]) -> bool:
    """Whether a database has a background process now; False where it can't be told. Never blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return is_locked(descriptor, BACKGROUND)
    except OSError:
        return False
    finally:
        os.close(descriptor)
