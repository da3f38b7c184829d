"""The files of a database behind a server, over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from svc.errors import Forbidden, InternalError, InvalidInput, InvalidPath, NotFound, ServiceUnavailable
from svc.plugin import EntryKind, Path, content_hasher, format_path, parse_hash, parse_path, parse_time
from svc_client import Client, EntryInfo, EntryType, ReadAt
from svc_files.client.importer import SinkImporter
from svc_files.client.remote_sink import RemoteSink
from svc_files.client.source import ByteReader
from svc_files.client.store import FileInfo, ImportListener, ImportOptions, PutOptions, ReadPoint, Stored
from svc_files.models import AnyOperation, BatchBody, BatchResult, WriteQuery
from svc_files.operations import batch

__all__ = ["RemoteStore"]

_PIECE = 1024 * 1024


class RemoteStore:
    """The files that a server serves."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._files = client.files

    @property
    def label(self) -> str:
        """The server's URL."""
        return self._client.address.url

    def pin(self, point: ReadPoint, path: Path = ()) -> str:
        """Returns the hex root hash that a read point means now; NotFound where there is none."""
        if point.at is not None and point == ReadPoint(at=point.at):
            return self._pin_named(point.at, path)
        return self._version_at(ReadAt(point.snapshot, point.version, point.fork), path)

    def _pin_named(self, name: str, path: Path) -> str:
        """The version of a name of any kind, asked for in the order in which a database file is."""
        for place in places_of_name(name):
            try:
                return self._version_at(place, path)
            except (NotFound, InvalidInput):
                continue
        raise NotFound(
            "This names no version: it is no snapshot, no fork (forks/<name>), no hash of 64 hex digits, "
            "no time with a commit before it and not HEAD.",
            version=name[:200],
        )

    def _version_at(self, at: ReadAt, path: Path) -> str:
        try:
            version = self._files.stat((), at).version
        except Forbidden:
            # Who may not list the root may have the path nevertheless.
            version = self._files.stat(path, at).version
        if not isinstance(version, str):
            raise self._foreign()
        return version

    def stat(self, path: Path, version: str | None = None, *, follow: bool = True) -> FileInfo:
        """Describes what stands at a path; see ``FileStore.stat``."""
        at = ReadAt(version=version)
        info = _info(self._files.stat(path, at, follow=follow))
        if info.kind is not EntryKind.DIRECTORY or not info.is_complete:
            return info
        # The total of a listing of everything below is the number of files, and costs one entry.
        return replace(info, file_count=self._files.page(info.path, at, depth=-1, limit=1).total)

    def children(self, path: Path, version: str | None = None) -> Iterator[FileInfo]:
        """Yields a directory's entries in order of their names, page by page."""
        for item in self._files.list(path, ReadAt(version=version)):
            # The name may become that of a file here.
            if not item.name or "/" in item.name or item.name in (".", ".."):
                raise InvalidPath("The server sent a name that no path can have.")
            yield _info(item, (*path, item.name))

    def read(
        self, info: FileInfo, version: str | None = None, *, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        """Yields a file's bytes; see ``FileStore.read``."""
        wanted = info.size - start if length is None else min(length, info.size - start)
        if wanted <= 0:
            return
        partial = start > 0 or wanted < info.size
        with self._files.get(
            info.path,
            ReadAt(version=version),
            start=start,
            length=wanted if partial else None,
            if_match=info.hash,
        ) as content:
            for piece in content:
                wanted -= len(piece)
                yield piece
        if wanted:
            raise ServiceUnavailable(f"{self.label} sent another number of bytes than the file has.")

    def put(self, path: Path, body: ByteReader, size: int | None, options: PutOptions) -> Stored:
        """Stores one file in one commit; see ``FileStore.put``."""
        hasher = content_hasher()

        def pieces() -> Iterable[bytes]:
            while piece := body.read(_PIECE):
                hasher.update(piece)
                yield piece

        stored = self._files.put(
            path,
            pieces(),
            size=size,
            content_type=options.content_type,
            if_match=options.if_match,
            create_only=options.create_only,
            created_at=options.time_ms,
            updated_at=options.time_ms,
            fork=options.fork,
        )
        info = FileInfo(
            parse_path(stored.path),
            EntryKind.FILE,
            stored.content_hash,
            stored.size,
            stored.created_at,
            stored.updated_at,
            stored.content_type,
        )
        if info.hash != hasher.hexdigest():
            raise InternalError("The server stored other bytes than it was sent.", path=format_path(path))
        return Stored(info, stored.created, stored.version)

    def batch(self, operations: Sequence[AnyOperation], *, fork: str | None = None) -> BatchResult:
        """Does many writes in one commit; see ``FileStore.batch``."""
        return self._client.call(batch, BatchBody(list(operations)), WriteQuery(fork=fork))

    def importer(self, options: ImportOptions, listener: ImportListener) -> SinkImporter:
        """Opens an import of many files over several connections."""
        return SinkImporter(RemoteSink(self._client, options), options.jobs, listener)

    def is_own_file(self, device: int, inode: int) -> bool:
        """Always False: what the server stores lies elsewhere."""
        return False

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _foreign(self) -> ServiceUnavailable:
        return ServiceUnavailable(f"{self.label} does not answer as an svc server does.")


def places_of_name(name: str) -> list[ReadAt]:
    """Returns what a name of a version may mean; the first that there is counts."""
    if name == "HEAD":
        return [ReadAt()]
    if parse_hash(name) is not None:
        return [ReadAt(version=name)]
    kind, _, rest = name.partition("/")
    places = [ReadAt(snapshot=name)]
    if rest and kind in ("snapshots", "forks"):
        places.insert(0, ReadAt(snapshot=rest) if kind == "snapshots" else ReadAt(fork=rest))
    try:
        return [*places, ReadAt(at=str(parse_time(name)))]
    except InvalidInput:
        return places


def _info(item: EntryInfo, path: Path | None = None) -> FileInfo:
    """An entry as the client describes it; a directory of which not all is shown has no sums."""
    kind = EntryKind(item.entry_type)
    where = parse_path(item.path) if path is None else path
    size = item.total_size if item.entry_type is EntryType.DIRECTORY else item.size
    if item.hash is None or not isinstance(size, int):
        return FileInfo(where, kind, "", 0, 0, 0, is_complete=False)
    return FileInfo(
        where,
        kind,
        item.hash,
        size,
        item.created_at or 0,
        item.updated_at or 0,
        item.content_type,
        None if item.target is UNSET else item.target,
        None if item.file_count is UNSET else item.file_count,
    )
