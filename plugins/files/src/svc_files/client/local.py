"""The files of a database that lies on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

from svc.errors import Conflict, Forbidden, InvalidInput
from svc.plugin import (
    EMPTY_ROOT,
    Condition,
    Database,
    Entry,
    EntryKind,
    Hold,
    Path,
    Transaction,
    Version,
    format_path,
    is_system_path,
)
from svc_cli import Service, extensions_of
from svc_files.client.importer import SinkImporter
from svc_files.client.local_sink import LocalSink, ref_of
from svc_files.client.source import ByteReader
from svc_files.client.store import FileInfo, ImportListener, ImportOptions, PutOptions, ReadPoint, Stored
from svc_files.content_types import choose_content_type
from svc_files.models import AnyOperation, BatchBody, BatchResult, WriteQuery
from svc_files.mounts import FILE_MOUNTS, Mount, mount_at
from svc_files.operations import batch
from svc_files.resolving import find as find_path
from svc_files.resolving import follow as follow_links

__all__ = ["LocalStore"]


class LocalStore:
    """The files of an opened database file; ``service`` is what ``Source.open_service`` gives for it."""

    def __init__(self, service: Any, path: str) -> None:
        self._service: Service = service
        self._database: Database = service.database
        self._path = path
        self._own = _own_files(FilePath(path))
        self._hold: Hold | None = None

    @property
    def label(self) -> str:
        """The path of the database file."""
        return self._path

    def pin(self, point: ReadPoint, path: Path = ()) -> str:
        """Returns the hex root hash that a read point means now; NotFound where there is none."""
        del path  # a file refuses nobody
        if self._hold is None:
            self._hold = self._database.hold()  # What is pinned is read for as long as the store is open.
        if point == ReadPoint():
            return self._database.head().root.hex()
        if point == ReadPoint(at=point.at):
            return self._database.named_version(point.at or "").hex()
        root = self._database.resolve_version(snapshot=point.snapshot, version=point.version, fork=point.fork)
        return root.hex()

    def stat(self, path: Path, version: str | None = None, *, follow: bool = True) -> FileInfo:
        """Describes what stands at a path; see ``FileStore.stat``."""
        at = self._at(version, path)
        found, entry = find_path(at, path, final=follow)
        return _info(found, entry)

    def children(self, path: Path, version: str | None = None) -> Iterator[FileInfo]:
        """Yields a directory's entries in order of their names; see ``FileStore.children``."""
        at = self._at(version, path)
        for name, entry in at.entries(path):
            child = (*path, name)
            if not is_system_path(child):
                is_file = entry.kind is EntryKind.FILE
                yield _info(child, entry, is_lost=is_file and self._database.is_lost(at, entry))

    def read(
        self, info: FileInfo, version: str | None = None, *, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        """Yields a file's bytes; see ``FileStore.read``. A changed file still reads as it was."""
        at = self._at(version, info.path)
        entry = at.get(info.path)
        if entry is None or entry.kind is not EntryKind.FILE or entry.hash.hex() != info.hash:
            raise Conflict("The file was replaced while it was read.", path=format_path(info.path))
        return at.read(entry, start, length)

    def put(self, path: Path, body: ByteReader, size: int | None, options: PutOptions) -> Stored:
        """Stores one file in one commit; see ``FileStore.put``."""
        at = self._database.at(self._database.resolve_version(fork=options.fork))
        target = follow_links(at, path).path
        if self._mount_at(target) is not None:
            raise Forbidden("What is shown here can only be read.", path=format_path(target))
        if not target:
            raise InvalidInput("The path of a file is needed.", path="/")
        content = self._database.store(body)
        condition = None
        if options.if_match is not None or options.create_only:
            condition = Condition(
                if_match=(options.if_match,) if options.if_match is not None else None,
                if_none_match=("*",) if options.create_only else None,
            )
        with self._database.transaction(ref=ref_of(options.fork)) as transaction:
            handle = transaction.put(
                target,
                content,
                content_type=choose_content_type(options.content_type, content.head, target[-1]),
                created_ms=options.time_ms,
                updated_ms=options.time_ms,
                condition=condition,
            )
        result = handle.result
        assert result.after is not None, "a put leaves a file"
        return Stored(_info(target, result.after), result.before is None, _version_of(transaction))

    def batch(self, operations: Sequence[AnyOperation], *, fork: str | None = None) -> BatchResult:
        """Does many writes in one commit; see ``FileStore.batch``."""
        return self._service.call(batch, BatchBody(list(operations)), WriteQuery(fork=fork))

    def importer(self, options: ImportOptions, listener: ImportListener) -> SinkImporter:
        """Opens an import of many files."""
        return SinkImporter(LocalSink(self._database, options), options.jobs, listener)

    def is_own_file(self, device: int, inode: int) -> bool:
        """Whether a file is the database's own, or its directory of rebuildable state."""
        return (device, inode) in self._own

    def close(self) -> None:
        """Closes the database."""
        if self._hold is not None:
            self._hold.release()
        self._database.close()

    def _mount_at(self, path: Path) -> Mount | None:
        if not path or not path[0].startswith("."):
            return None
        return mount_at(extensions_of(self._database, "files", FILE_MOUNTS), path)

    def _at(self, version: str | None, path: Path) -> Version:
        mount = self._mount_at(path)
        if mount is not None:
            return mount.version(self._database) or self._database.version_of(EMPTY_ROOT)
        if version is None:
            return self._database.at()
        return self._database.at(self._database.resolve_version(version=version))


def _info(path: Path, entry: Entry, *, is_lost: bool = False) -> FileInfo:
    return FileInfo(
        path,
        entry.kind,
        entry.hash.hex(),
        entry.size,
        entry.created_ms,
        entry.updated_ms,
        entry.content_type,
        entry.target,
        entry.totals.files if entry.totals is not None else None,
        is_lost=is_lost,
    )


def _version_of(transaction: Transaction) -> str:
    assert transaction.result is not None, "the transaction is committed"
    return transaction.result.version.hex()


def _own_files(path: FilePath) -> frozenset[tuple[int, int]]:
    own = []
    for candidate in (path, path.with_name(path.name + ".d")):
        try:
            status = candidate.stat()
        except OSError:
            continue
        own.append((status.st_dev, status.st_ino))
    return frozenset(own)
