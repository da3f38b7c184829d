"""How long the file of an environment must be: to read pages that are not there would end the process."""

from __future__ import annotations

import os
from pathlib import Path

import lmdb

__all__ = ["end_of", "fill_up"]


def fill_up(data: Path, environment: lmdb.Environment) -> None:
    """Appends zeros to a file that was cut short: reading missing pages would end the process.

    LMDB notices pages of zeros as damage. Pages at the end that were never written are none.
    """
    end = end_of(environment)
    if data.stat().st_size >= end:
        return
    try:
        with open(data, "r+b") as file:
            os.posix_fallocate(file.fileno(), end - 1, 1)
    except OSError as error:
        environment.close()
        raise lmdb.CorruptedError(f"{data} was cut short.") from error


def end_of(environment: lmdb.Environment) -> int:
    """The bytes that the file must have at least."""
    return int((environment.info()["last_pgno"] + 1) * environment.stat()["psize"])
