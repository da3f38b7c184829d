"""Who runs the tasks of a database: whoever holds one byte of its lock file locked.

The kernel's locks are other bytes of the same file. The lock belongs to the opening, so it ends with the
process, however that ends, and no process of a task inherits it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from svc.errors import ReadOnly
from svc.plugin import Database

__all__ = ["RunnerLock"]

_BYTE = 2**61 + 1
_FLOCK = struct.Struct("hhqqi4x")
_BUSY = (errno.EAGAIN, errno.EACCES)


class RunnerLock:
    """The right to run tasks. Not to be used across a fork."""

    def __init__(self, database: Database) -> None:
        self._path = database.place.lock_file
        self._descriptor = -1

    def acquire(self) -> bool:
        """Takes the lock if it is free; returns whether it is held. Never blocks.

        Raises ReadOnly where the file can't be opened for writing, or its filesystem has no such locks.
        """
        if self._descriptor >= 0:
            return True
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError as error:
            raise ReadOnly(f"Tasks can't run here: {error.strerror}.") from None
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, _BYTE, 1, 0))
        except OSError as error:
            os.close(descriptor)
            if error.errno in _BUSY:
                return False
            raise ReadOnly("Tasks can't run here: the filesystem has no byte-range locks.") from None
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Gives the lock back; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
