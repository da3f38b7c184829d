"""Backups that are verified before they get their name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from svc.errors import Forbidden, InsufficientStorage, InvalidInput, RefusedFile
from svc.plugin import Database
from svc_backup.format import IncomingFile, IncomingLimits, Outgoing, check_incoming

__all__ = ["make_directory", "require_space", "verifier"]

_ANY_EXPANSION = 1 << 30
"""What is verified here was made here: files full of zeros are no attack."""


def make_directory(directory: Path) -> None:
    """Makes a directory for backups, readable by its owner, and those above it, where they are missing.

    Raises InvalidInput where something else has its name, Forbidden, and InsufficientStorage.
    """
    try:
        missing = [one for one in (directory, *directory.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(mode=0o700, exist_ok=True)
        if not directory.is_dir():
            raise NotADirectoryError
    except (FileExistsError, NotADirectoryError) as error:
        raise InvalidInput("A file stands where a directory is needed.", field="output") from error
    except PermissionError as error:
        raise Forbidden("The backup directory cannot be made.", field="output") from error
    except OSError as error:
        raise InsufficientStorage("The backup directory cannot be made.", field="output") from error


def require_space(path: Path, size: int) -> None:
    """Raises InsufficientStorage where a file of a size certainly does not fit."""
    room = os.statvfs(path.parent)
    free = room.f_bavail * room.f_frsize
    if free < size:
        raise InsufficientStorage(
            f"There is no space left to write {path.name}: it has {size:,} bytes, and {free:,} are free.",
            size=size,
            free=free,
        )


def verifier(
    database: Database, outgoing: Outgoing, name: str, progress: Callable[[int], None]
) -> Callable[[int], None]:
    """Returns what reads a written file back as an import does, and raises if it is not what was planned."""

    def verify(descriptor: int) -> None:
        limits = IncomingLimits(expansion=_ANY_EXPANSION)
        with IncomingFile(descriptor, name, limits=limits, directory=database.state_directory) as file:
            check_incoming(
                file,
                database if outgoing.base is not None else None,
                progress=lambda done, _: progress(done),
            )
            if (file.root, file.base, file.size) != (outgoing.root, outgoing.base, outgoing.size):
                raise RefusedFile("What was written is another file than what was to be written.")
        progress(outgoing.size)

    return verify
