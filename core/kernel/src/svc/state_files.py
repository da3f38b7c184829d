"""Small files of the state directory by which one process tells the others how far it is.

Nothing in them must last, so they are no commits: a file is replaced a few times a second, and its own time
says when its writer was last alive.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

__all__ = ["StateFile", "replace_content"]

_WRITE_SECONDS = 0.25
_BEAT_SECONDS = 2.0

T = TypeVar("T", bound=msgspec.Struct)


class StateFile(Generic[T]):
    """One file. One process writes it at a time; what can't be written waits.

    Args:
        path: the file, in a directory of the plugin's own below the state directory.
        form: the struct that it holds, as JSON.
    """

    def __init__(self, path: Path, form: type[T]) -> None:
        self._path = path
        self._form = form
        self._written: T | None = None
        self._after = 0.0

    def beat(self, value: T) -> None:
        """Says how things are, and that the writer is alive; at most four times a second."""
        now = time.monotonic()
        if now < self._after or (value == self._written and now < self._after + _BEAT_SECONDS):
            return
        with contextlib.suppress(OSError):
            if value != self._written or not self._path.exists():
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                replace_content(self._path, msgspec.json.encode(value))
                self._written = value
            os.utime(self._path)
        self._after = now + _WRITE_SECONDS

    def remove(self) -> None:
        """Takes the file away, at an orderly end."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def read(self) -> tuple[T, int] | None:
        """Returns what was said last, and when its writer was last alive, in Unix milliseconds; or None."""
        try:
            with open(self._path, "rb") as file:
                beat_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
                return msgspec.json.decode(file.read(), type=self._form), beat_ms
        except (OSError, msgspec.DecodeError):
            return None


def replace_content(path: Path, content: bytes) -> None:
    """Puts a content in the place of a file, so that no reader finds a part of it; not durable.

    Raises:
        OSError: it can't be written; the file is as before.
    """
    unnamed = path.with_name(f"{path.name}.new")
    try:
        with open(unnamed, "wb", opener=_private) as file:
            file.write(content)
        os.replace(unnamed, path)
    except OSError:
        with contextlib.suppress(OSError):
            unnamed.unlink()
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
