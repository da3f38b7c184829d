"""The system calls by which the log changes its file, in one place: tests replace them to inject faults."""

from __future__ import annotations

import ctypes
import errno
import os

__all__ = ["FileOperations"]

_WRITE = 2
"""``SYNC_FILE_RANGE_WRITE``: start writing, wait for nothing."""

_PUNCH_HOLE = 0x02 | 0x01
"""``FALLOC_FL_PUNCH_HOLE`` and ``FALLOC_FL_KEEP_SIZE``."""

_libc = ctypes.CDLL(None, use_errno=True)


def _begin_writeback(descriptor: int, offset: int, length: int) -> None:
    """Starts writing a range's dirty pages to the disk (sync_file_range(2)), if it can be done."""
    _libc.sync_file_range(
        ctypes.c_int(descriptor), ctypes.c_int64(offset), ctypes.c_int64(length), ctypes.c_uint(_WRITE)
    )


def _punch_hole(descriptor: int, offset: int, length: int) -> None:
    """Makes a range a hole (fallocate(2)); the file keeps its size."""
    while True:
        failed = _libc.fallocate(
            ctypes.c_int(descriptor),
            ctypes.c_int(_PUNCH_HOLE),
            ctypes.c_int64(offset),
            ctypes.c_int64(length),
        )
        if not failed:
            return
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


class FileOperations:
    """Calls of the operating system, with its arguments, answers and ``OSError``."""

    pread = staticmethod(os.pread)
    pwritev = staticmethod(os.pwritev)
    fdatasync = staticmethod(os.fdatasync)
    fsync = staticmethod(os.fsync)
    ftruncate = staticmethod(os.ftruncate)
    begin_writeback = staticmethod(_begin_writeback)
    punch_hole = staticmethod(_punch_hole)
