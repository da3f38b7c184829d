"""What lies in the server's backup directory, and what an import of a file of it would do."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from pathlib import Path

from svc.errors import NotFound, SvcError
from svc.plugin import Database, pause
from svc_backup.configuration import BackupConfiguration
from svc_backup.format import IncomingLimits, read_header
from svc_backup.importing import open_incoming
from svc_backup.models import BackupFile, BackupList, BackupPreview
from svc_backup.receiving import FILE_NAME, opened_file
from svc_backup.server_paths import backup_directory, path_in_backups

__all__ = ["list_files", "preview_file"]

MOST_FILES = 1_000
_MOST_SEEN = 100_000
_DEEPEST = 4
_HEADER_SIZE = 128


def list_files(database: Database) -> BackupList:
    """Returns the files, those that were changed last first; links and what is hidden are left out. Blocks.

    Raises:
        OSError: the directory can't be read.
    """
    top = backup_directory(database.path)
    seen = _files(top, top, 0)
    found = heapq.nlargest(MOST_FILES + 1, _bounded(seen))
    files = [_described(top, name, size, changed) for changed, name, size in found[:MOST_FILES]]
    return BackupList(files, len(found) > MOST_FILES)


def preview_file(database: Database, name: str, settings: BackupConfiguration) -> BackupPreview:
    """Returns what an import would do. Reads the headers of all records of the file.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the name leads out of the backup directory.
        ForeignFile, UnsupportedFormat, RefusedFile: it is neither an export nor a patch, or is damaged.
    """
    path = path_in_backups(database.path, name, "file")
    limits = IncomingLimits(settings.maximum_import, settings.maximum_expansion)
    head = database.head().root
    with (
        opened_file(path, settings.maximum_import) as descriptor,
        open_incoming(database, descriptor, FILE_NAME, limits, pause) as file,
    ):
        status = os.fstat(descriptor)
        top = Path(os.path.realpath(backup_directory(database.path)))
        shown = str(path.relative_to(top))
        totals = file.commit.totals
        return BackupPreview(
            file=_described(top, shown, status.st_size, status.st_mtime_ns),
            version=file.root.hex(),
            files=totals.files + totals.symlinks,
            total_size=totals.size,
            objects=file.objects,
            held=_holds(database, file.root),
            head=file.root == head,
            applies=file.base is None or file.base == head,
        )


def _files(directory: Path, top: Path, depth: int) -> Iterator[tuple[int, str, int]]:
    """Yields (time of the last change, name, size) of the files at and below a directory."""
    try:
        with os.scandir(directory) as scanned:
            items = [item for item in scanned if not item.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return
    for item in items:
        try:
            if item.is_dir(follow_symlinks=False):
                if depth < _DEEPEST:
                    yield from _files(Path(item.path), top, depth + 1)
            elif item.is_file(follow_symlinks=False):
                status = item.stat(follow_symlinks=False)
                yield status.st_mtime_ns, os.path.relpath(item.path, top), status.st_size
        except OSError:
            continue  # It is gone, or not ours to read.


def _bounded(files: Iterator[tuple[int, str, int]]) -> Iterator[tuple[int, str, int]]:
    for count, file in enumerate(files):
        if count >= _MOST_SEEN:
            return
        if _is_text(file[1]):
            yield file


def _is_text(name: str) -> bool:
    """Whether JSON can say a name: one of other bytes can't be asked for either."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _described(top: Path, name: str, size: int, changed_ns: int) -> BackupFile:
    header = None
    try:
        with open(top / name, "rb", opener=_no_link) as file:
            header = read_header(file.read(_HEADER_SIZE))
    except (OSError, SvcError):
        pass  # It is no file of ours, or can't be read: its name is shown all the same.
    return BackupFile(
        name=name,
        size=size,
        modified_at=changed_ns // 1_000_000,
        kind=None if header is None else "export" if header.target is None else "patch",
        created_at=None if header is None else header.created_ms,
        base=None if header is None or header.base is None else header.base.hex(),
    )


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _holds(database: Database, root: bytes) -> bool:
    try:
        database.require_version(root)
    except NotFound:
        return False
    return True
