"""The system calls by which the log changes its file, in one replaceable place.

Production uses the class as it is; a test replaces single calls to inject full disks, broken media,
short writes and deaths at any step.
"""

from __future__ import annotations

import os

__all__ = ["FileOperations"]


class FileOperations:
    """Calls of the operating system, with its arguments, answers and ``OSError``."""

    pread = staticmethod(os.pread)
    pwritev = staticmethod(os.pwritev)
    fdatasync = staticmethod(os.fdatasync)
    fsync = staticmethod(os.fsync)
    ftruncate = staticmethod(os.ftruncate)
