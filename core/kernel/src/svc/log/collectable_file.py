"""What collection does to the log file: locks of generations, writing over the dead, giving space back."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from svc.log.byte_locks import (
    COLLECTION,
    GENERATIONS,
    MOST_GENERATIONS,
    LocksUnavailable,
    first_locked,
    hold_byte,
    is_locked,
    try_exclusive,
    unlock,
)

if TYPE_CHECKING:
    from svc.log.file_operations import FileOperations

__all__ = ["CollectableFile"]


class CollectableFile:
    """A part of ``LocalFileStorage``: its methods are those of ``CollectableStorage``."""

    operations: FileOperations
    _fd: int
    _pid: int
    if TYPE_CHECKING:

        def _descriptor(self) -> int: ...

    def hold_generation(self, generation: int) -> None:
        """Tells other openings that this one holds a generation; never blocks, once for each generation."""
        try:  # noqa: SIM105 - a context manager would cost half a microsecond
            hold_byte(self._descriptor(), GENERATIONS + generation)
        except LocksUnavailable:
            pass  # Nobody can write such a file.

    def release_generation(self, generation: int) -> None:
        """Gives a generation back; also after ``close``."""
        if self._fd >= 0 and os.getpid() == self._pid:
            unlock(self._fd, GENERATIONS + generation)

    def others_hold_before(self, generation: int) -> bool:
        """Whether another opening holds a generation before this one; never blocks."""
        return generation > 0 and first_locked(self._descriptor(), GENERATIONS, generation) is not None

    def highest_held(self) -> int:
        """The greatest generation that another opening holds, -1 where none is; never blocks."""
        found, start = -1, 0
        while (
            byte := first_locked(self._descriptor(), GENERATIONS + start, MOST_GENERATIONS - start)
        ) is not None:
            # What is found may have begun before the range.
            found = max(byte - GENERATIONS, start)
            start = found + 1
        return found

    def try_acquire_collection(self) -> bool:
        """Excludes other collections if nobody collects now; never blocks. Ends with ``close``, too."""
        return try_exclusive(self._descriptor(), COLLECTION)

    def release_collection(self) -> None:
        """Lets others collect."""
        if self._fd >= 0 and os.getpid() == self._pid:
            unlock(self._fd, COLLECTION)

    def is_collected_by_others(self) -> bool:
        """Whether another opening collects now; never blocks."""
        return is_locked(self._descriptor(), COLLECTION)

    def overwrite(self, offset: int, content: bytes) -> None:
        """Writes bytes over others, within the file; unsynced."""
        fd = self._descriptor()
        written = self.operations.pwritev(fd, [content], offset)
        while written < len(content):
            written += self.operations.pwritev(fd, [content[written:]], offset + written)

    def punch(self, offset: int, length: int) -> bool:
        """Gives a range of the file back to the filesystem; it reads as zeros then. False where none can."""
        try:
            self.operations.punch_hole(self._descriptor(), offset, length)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM):
                return False
            raise
        return True

    def allocated(self) -> int:
        """Bytes that the file takes on its disk."""
        return os.fstat(self._descriptor()).st_blocks * 512
