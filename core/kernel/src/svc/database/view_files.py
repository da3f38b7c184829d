"""The directory of a view that keeps files of its own, beside its LMDB data.

The data name it, and no name is used twice: data that were removed, or of another log, name none in use.
"""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path

__all__ = ["FILES_KEY", "begin_files", "remove_other_formats"]

FILES_KEY = b"files"


def begin_files(parent: Path) -> bytes:
    """Makes an empty directory, returns its name, and removes the others; their readers keep open files."""
    name = uuid.uuid4().hex
    (parent / name).mkdir(parents=True)
    for other in parent.iterdir():
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)
    return name.encode("ascii")


def remove_other_formats(views: Path, name: str, present: Path) -> None:
    """Removes the directories of a view's other formats; nobody may have the database open."""
    if not views.is_dir():
        return
    for directory in views.iterdir():
        if directory != present and re.fullmatch(rf"{re.escape(name)}(-\d+\.\d+)?", directory.name):
            shutil.rmtree(directory, ignore_errors=True)
