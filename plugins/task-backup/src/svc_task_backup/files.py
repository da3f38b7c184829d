"""The files of backups: their names, which of them belong to a database, and which are too old.

A name says everything: ``<database>-<time>-<id>.svcdb`` is an export, ``<database>-<time>-<id>-patch.svcdb``
a patch that follows the file before it. The id is the first half of the database's own, so that databases may
share a directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from svc.errors import Forbidden

__all__ = ["BackupFile", "BackupFiles", "outdated"]

_ID_BYTES = 8
_LONGEST_STEM = 120
_TIME = "%Y%m%dT%H%M%S"
_PARTIAL = re.compile(r"\.part-[0-9a-f]{16}")


class BackupFile(NamedTuple):
    """A file that a task has written.

    Attributes:
        time: as its name says: ``20261231T235959123Z``; names are in the order of their times.
        is_patch: whether it follows the file before it.
        path: where it is.
    """

    time: str
    is_patch: bool
    path: Path


class BackupFiles:
    """The files of one database in a directory.

    Args:
        directory: where they are; it need not exist.
        stem: name of the database's file without its ending.
        database_id: of the database.
    """

    def __init__(self, directory: Path, stem: str, database_id: bytes) -> None:
        self.directory = directory
        self._stem = re.sub(r"[^\w.+-]", "_", stem)[:_LONGEST_STEM]
        self._id = database_id[:_ID_BYTES].hex()
        self._name = re.compile(
            rf"{re.escape(self._stem)}-(\d{{8}}T\d{{9}}Z)-{self._id}(-patch)?\.svcdb", re.ASCII
        )

    @classmethod
    def of(cls, directory: Path, database_path: Path, database_id: bytes) -> Self:
        """Returns those of the database in a file."""
        return cls(directory, database_path.stem, database_id)

    def all(self) -> list[BackupFile]:
        """Returns the files, the oldest first: none that somebody else has put there, and no links.

        Raises:
            Forbidden: the directory may not be read.
        """
        names = [item.name for item in self._items() if item.is_file(follow_symlinks=False)]
        found = [
            BackupFile(match[1], match[2] is not None, self.directory / name)
            for name in names
            if (match := self._name.fullmatch(name)) is not None
        ]
        return sorted(found)

    def new(self, now_ms: int, *, is_patch: bool) -> BackupFile:
        """Returns a file that is still to be written: later than all others, whatever the clock says.

        Args:
            now_ms: the present time, Unix milliseconds.
            is_patch: whether it follows the file before it.
        """
        last = max((file.time for file in self.all()), default="")
        time = _time_text(now_ms)
        if time <= last:
            time = _time_text(_time_ms(last) + 1)
        return self.named(time, is_patch=is_patch)

    def named(self, time: str, *, is_patch: bool) -> BackupFile:
        """Returns the file of a time."""
        name = f"{self._stem}-{time}-{self._id}{'-patch' if is_patch else ''}.svcdb"
        return BackupFile(time, is_patch, self.directory / name)

    def remove_partial(self) -> None:
        """Removes what a process that was killed left of its files where a disk knows none without a name."""
        for name in [item.name for item in self._items()]:
            head, _, _ = name.rpartition(".part-")
            if _PARTIAL.fullmatch(name[len(head) :]) and head[:1] == "." and self._name.fullmatch(head[1:]):
                (self.directory / name).unlink(missing_ok=True)

    def _items(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.directory) as items:
                return list(items)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except PermissionError:
            raise Forbidden(f"There is no permission to read {self.directory}.") from None


def outdated(files: Sequence[BackupFile], count: int) -> list[BackupFile]:
    """Returns the files that go when the newest ``count`` are kept, and what those follow, the oldest first.

    Args:
        files: all, the oldest first.
        count: how many are kept; 0 keeps all.
    """
    if count <= 0 or len(files) <= count:
        return []
    first = len(files) - count
    while first > 0 and files[first].is_patch:
        first -= 1
    return list(files[:first])


def _time_text(time_ms: int) -> str:
    at = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"{at.strftime(_TIME)}{time_ms % 1000:03}Z"


def _time_ms(text: str) -> int:
    at = datetime.strptime(text[:15], _TIME).replace(tzinfo=UTC)
    return round(at.timestamp()) * 1000 + int(text[15:18])
