"""The directory of a view that keeps files of its own, beside its LMDB data.

Those data name it, and a name is never used twice: data that are gone, or of something else, name no
directory that could be taken for theirs.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

__all__ = ["FILES_KEY", "begin_files"]

FILES_KEY = b"files"


def begin_files(parent: Path) -> bytes:
    """Makes a new, empty directory and removes those that were there; returns its name.

    Whoever still reads from one of those goes on with the files that it has open.
    """
    name = uuid.uuid4().hex
    (parent / name).mkdir(parents=True)
    for other in parent.iterdir():
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)
    return name.encode("ascii")
