"""Parts of files that go to the client without passing through Python."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["FileSegment", "FileWrapper"]

BLOCK_BYTES = 262144


@dataclass(frozen=True, slots=True)
class FileSegment:
    """A part of a regular file, as one piece of an answer.

    An application may yield it where it would yield bytes; the class is in the environment as
    ``svc.file_segment`` where the connection can send files (not with TLS). The descriptor is open until the
    answer's ``close``; the length is in bytes.
    """

    descriptor: int
    offset: int
    length: int

    def __len__(self) -> int:
        return self.length


class FileWrapper:
    """``wsgi.file_wrapper`` (PEP 3333): an iterator over a file that the server may send its own way."""

    def __init__(self, filelike: Any, block_size: int = BLOCK_BYTES) -> None:
        self.filelike = filelike
        self.block_size = block_size
        if hasattr(filelike, "close"):
            self.close = filelike.close

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        data: bytes = self.filelike.read(self.block_size)
        if not data:
            raise StopIteration
        return data

    def segment(self) -> FileSegment | None:
        """The rest of the file as a segment; None when it is no regular file in the system's sense."""
        try:
            descriptor = self.filelike.fileno()
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            offset = self.filelike.tell()
        except (AttributeError, OSError, ValueError):
            return None
        return FileSegment(descriptor, offset, max(0, status.st_size - offset))
