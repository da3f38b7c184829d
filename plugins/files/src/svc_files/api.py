"""What other plugins may use of this one: chunks that a caller may read, writes, and trees beside files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from svc.plugin import NamedRegistry, Path, hookspec
from svc_files.chunk_access import readable_chunk
from svc_files.client.store import FileStore
from svc_files.errors import Incomplete
from svc_files.models import (
    AnyOperation,
    BatchBody,
    BatchResult,
    DeleteOperation,
    EntryInfo,
    FileQuery,
    LinkBody,
    LinkDescription,
    Listing,
    MakeDirectoryOperation,
    MoveOperation,
    PutOperation,
)
from svc_files.mounts import FILE_MOUNTS, Mount
from svc_files.operations import batch, make_link

if TYPE_CHECKING:
    import falcon

    from svc_cli import Source

__all__ = [
    "FAMILIES",
    "FILE_MOUNTS",
    "AnyOperation",
    "BatchBody",
    "BatchResult",
    "DeleteOperation",
    "EntryInfo",
    "FileQuery",
    "FileStore",
    "Incomplete",
    "LinkBody",
    "LinkDescription",
    "Listing",
    "MakeDirectoryOperation",
    "Mount",
    "MoveOperation",
    "PutOperation",
    "batch",
    "make_link",
    "open_files",
    "read_mounted",
    "readable_chunk",
]

FAMILIES = (FILE_MOUNTS,)


@hookspec
def svc_register_file_mounts(file_mounts: NamedRegistry[Mount]) -> None:
    """Adds trees that are shown beside the files: ``file_mounts.add(MyMount())``.

    Called at boot, in the processes that serve databases, and by commands that work on a database file.
    """


@contextmanager
def open_files(source: Source) -> Iterator[FileStore]:
    """Opens the files of a database file or of a server, to read them; for commands.

    Args:
        source: what the command works on.

    Yields:
        The files, all by one view of both.
    """
    from svc_files.commands.options import open_store

    with open_store(source) as store:
        yield store


def read_mounted(req: falcon.Request, resp: falcon.Response, path: Path, mount: Mount) -> None:
    """Answers a request to read a file or list a directory of a mount, as ``GET /files/{path}`` does.

    Args:
        req: the request, of the route ``/files/<name of the mount>/{path:path}``, or shorter.
        resp: the response.
        path: begins with the name of the mount.
        mount: the mount.

    Raises:
        NotFound: nothing is there, or the caller may not know.
        Forbidden: the caller may not read it.
    """
    from svc_files.responders.files import read_mounted as answer

    answer(req, resp, path, mount)
