"""The copy of the last good file, beside the database: all processes that serve it keep it together.

A process that reads a good file keeps it before it uses it. So the copy is never older than what any process
uses, and a process that finds the file broken need not have seen the last good one itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from svc.plugin import hash_content

__all__ = ["KeptCopy", "copy_of"]

_log = logging.getLogger("svc.plugin.auth.file")


class KeptCopy:
    """One copy. Its time of change says when its content was read from the file. Methods block.

    Args:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read_ns(self) -> int:
        """When the content was read from the file, in Unix nanoseconds; 0 without a copy. Cheap."""
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    def read(self) -> tuple[bytes, int] | None:
        """Returns the content, and when it was read from the file."""
        try:
            with open(self._path, "rb") as file:
                return file.read(), os.fstat(file.fileno()).st_mtime_ns
        except OSError:
            return None

    def keep(self, content: bytes, read_ns: int) -> None:
        """Keeps what was read from the file at a time, unless what is kept was read later."""
        try:
            with self._locked():
                # Of a time that is still to come: the clock was wrong then.
                if not read_ns <= self.read_ns() <= time.time_ns():
                    self._write(content, read_ns)
        except OSError as error:
            _log.warning("the copy of the file of users could not be written: %s", error.strerror)

    def _write(self, content: bytes, read_ns: int) -> None:
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)
            os.utime(new, ns=(read_ns, read_ns))
            os.replace(new, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield
        finally:
            os.close(directory)


def copy_of(state_directory: Path, path: str) -> Path:
    """Returns where the copy of a file is kept."""
    name = hash_content(os.fsencode(path)).hex()[:32]
    return state_directory / "auth.file" / f"{name}.toml"
