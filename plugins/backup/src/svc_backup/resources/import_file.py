"""``POST /versions/import``: an export or a patch comes in, as the body or from the server's disk."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import falcon
import msgspec

from svc.errors import (
    Forbidden,
    InsufficientStorage,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    UnsupportedMediaType,
)
from svc.plugin import (
    PIECE_SIZE,
    BodyStream,
    Database,
    body_stream,
    context_of,
    pause,
    query_flag,
    read_json,
    requires_root,
    send_json,
)
from svc_backup.format import IncomingLimits, read_header
from svc_backup.importing import ImportOptions, import_incoming, open_incoming, require_base
from svc_backup.reports import import_json
from svc_backup.resources.requests import settings_of
from svc_backup.server_paths import path_in_backups

__all__ = ["ImportBody", "ImportResource"]

_HEADER_SIZE = 128
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NAME = "The file"


class ImportBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The JSON body: a file in the backup directory; ``force`` takes a patch whose base is not HEAD."""

    file: str
    promote: bool = False
    force: bool = False


class ImportResource:
    """Imports one file: user data only, whatever it holds."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Takes the file in and reports; HEAD moves only when that is asked for."""
        context, settings = context_of(req), settings_of(req)
        database = context.database
        if _is_json(req.content_type):
            body = read_json(req, ImportBody)
            promote, force = (
                body.promote or query_flag(req, "promote"),
                body.force or query_flag(req, "force"),
            )
            source = _opened(path_in_backups(database.path, body.file, "file"), settings.maximum_import)
        else:
            promote, force = query_flag(req, "promote"), query_flag(req, "force")
            source = _received(database, body_stream(req, settings.maximum_import), force)
        limits = IncomingLimits(settings.maximum_import, settings.maximum_expansion)
        options = ImportOptions(promote, force, actor=context.actor, pause=pause)
        with source as descriptor, open_incoming(database, descriptor, _NAME, limits, pause) as file:
            result = import_incoming(database, file, options)
        send_json(resp, import_json(result))


def _is_json(content_type: str | None) -> bool:
    media_type = (content_type or "application/octet-stream").partition(";")[0].strip().lower()
    if media_type == "application/json" or media_type.endswith("+json"):
        return True
    if media_type != "application/octet-stream":
        raise UnsupportedMediaType(
            "The body is the file (Content-Type: application/octet-stream), or JSON that names one."
        )
    return False


@contextmanager
def _opened(path: Path, limit: int) -> Iterator[int]:
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
def _received(database: Database, body: BodyStream, force: bool) -> Iterator[int]:
    """The body, in a file without a name beside the database; what can be told early is refused early."""
    try:
        with tempfile.TemporaryFile(dir=database.state_directory, buffering=0) as spool:
            head = b""
            while piece := body.read(PIECE_SIZE):
                if len(head) < _HEADER_SIZE:
                    head += piece[:_HEADER_SIZE]
                    if len(head) >= _HEADER_SIZE:
                        header = read_header(head[:_HEADER_SIZE], _NAME)
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
