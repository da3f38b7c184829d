"""Files that come in over HTTP: as a body, or from the server's disk."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svc.errors import Forbidden, InsufficientStorage, InvalidInput, NotFound, PayloadTooLarge
from svc.plugin import PIECE_SIZE, BodyStream, Database
from svc_backup.format import read_header
from svc_backup.importing import require_base

__all__ = ["FILE_NAME", "opened_file", "received_file"]

FILE_NAME = "The file"
"""What errors call it."""

_HEADER_SIZE = 128
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def opened_file(path: Path, limit: int) -> Iterator[int]:
    """Gives the descriptor of a file of the backup directory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound("There is no such file in the backup directory.", field="file") from error
    except PermissionError as error:
        raise Forbidden("There is no permission to read the file.", field="file") from error
    except OSError as error:
        raise InvalidInput("The file cannot be opened.", field="file") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput("This is not a file.", field="file")
        if status.st_size > limit:
            raise PayloadTooLarge(f"A file may have at most {limit} bytes.", limit=limit)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def received_file(database: Database, body: BodyStream, force: bool) -> Iterator[int]:
    """The body, in a file without a name beside the database; what can be told early is refused early."""
    try:
        with tempfile.TemporaryFile(dir=database.state_directory, buffering=0) as spool:
            head = b""
            while piece := body.read(PIECE_SIZE):
                if len(head) < _HEADER_SIZE:
                    head += piece[:_HEADER_SIZE]
                    if len(head) >= _HEADER_SIZE:
                        header = read_header(head[:_HEADER_SIZE], FILE_NAME)
                        require_base(header, database.head().root, force=force)
                _write_all(spool.fileno(), piece)
            if not head:
                raise InvalidInput("The request needs a body: the file, or JSON that names one.")
            yield spool.fileno()
    except OSError as error:
        if error.errno in _FULL:
            raise InsufficientStorage("There is no space left for the file.") from error
        raise


def _write_all(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]
