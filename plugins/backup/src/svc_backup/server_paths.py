"""Where a server may write exports and read imports: one directory, and nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path

from svc.errors import InvalidInput

__all__ = ["DIRECTORY_VARIABLE", "backup_directory", "directory_in_backups", "path_in_backups"]

_LONGEST_NAME = 255
DIRECTORY_VARIABLE = "SVC_BACKUP_DIRECTORY"
"""Names another directory; part of the deployment, so that no request can change it."""


def backup_directory(database_path: Path) -> Path:
    """Returns the directory: ``backups`` beside the database, unless the environment names another."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    return Path(named) if named else database_path.parent / "backups"


def path_in_backups(database_path: Path, text: str, field: str, *, kind: str = "file") -> Path:
    """Returns the path that a request names.

    Raises InvalidInput where it leads out of the directory, also through links, or is no file name.
    """
    if not text or "\0" in text or text.endswith("/") or len(text) > 4096:
        raise InvalidInput(f"The member {field} is the name of a {kind}.", field=field)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"The member {field} must be valid Unicode text.", field=field) from error
    directory = backup_directory(database_path)
    if ".." in Path(text).parts:
        raise _outside(field, kind)
    top = os.path.realpath(directory)
    named = os.path.join(top, text)
    where = Path(os.path.realpath(os.path.dirname(named)), os.path.basename(named))
    if not where.is_relative_to(top) or where == Path(top) or os.path.islink(where):
        # The directory may be named through a link of its own.
        raise _outside(field, kind)
    return where


def directory_in_backups(database_path: Path, text: str, field: str) -> Path:
    """Returns the directory that a request names.

    ``text`` is ``./backups/`` or ``.`` for the backup directory itself, wherever it is; ``./backups/x`` or
    ``x`` for one in it, or its absolute path. ``field`` is the member of the body, for errors.
    """
    parts = [part for part in Path(text).parts if part != "."]
    if "\0" in text or not text or any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise _outside(field, "directory")
    if parts[:1] == ["backups"]:
        parts = parts[1:]
    top = os.path.realpath(backup_directory(database_path))
    if not parts:
        return Path(top)
    named = os.path.join(*parts)
    if os.path.isabs(named) and os.path.realpath(named) == top:
        return Path(top)
    return path_in_backups(database_path, named, field, kind="directory")


def _outside(field: str, kind: str) -> InvalidInput:
    return InvalidInput(
        f"The member {field} must name a {kind} in the server's backup directory: a relative path, "
        "or an absolute one in it.",
        field=field,
    )
