"""What the commands ask of a store of files: values, and the two protocols that give and take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from msgspec import Struct

from svc.plugin import EntryKind, Hash, Path, format_path
from svc_files.client.source import ByteReader, SourceFile
from svc_files.models import AnyOperation, BatchResult

__all__ = [
    "CommitCounts",
    "FileInfo",
    "FileStore",
    "ImportListener",
    "ImportOptions",
    "Importer",
    "PutOptions",
    "ReadPoint",
    "Stored",
]


class ReadPoint(Struct, frozen=True):
    """The state of the database that a command reads; HEAD when nothing is named.

    ``snapshot`` wins over ``version``, ``version`` over ``fork``, as over HTTP, and ``fork`` over ``at``:
    any name of a version, as ``Database.named_version`` takes it.
    """

    snapshot: str | None = None
    version: str | None = None
    fork: str | None = None
    at: str | None = None


class FileInfo(Struct, frozen=True):
    """One file, directory or symbolic link of a store.

    Attributes:
        hash: hex content hash of a file; hex root of a directory; hex hash of a link's target.
        size: bytes of a file; of everything below a directory; of a link's target.
        file_count: files at every depth below a directory, else None.
        is_complete: False for a directory of a server that does not show everything below it; its hash is
            then empty, and its size and times are 0.
        is_lost: True for a file of a local database whose content a repair could not save.
    """

    path: Path
    kind: EntryKind
    hash: str
    size: int
    created_ms: int
    updated_ms: int
    content_type: str | None = None
    target: str | None = None
    file_count: int | None = None
    is_complete: bool = True
    is_lost: bool = False

    @property
    def name(self) -> str:
        """The last segment; ``/`` for the root."""
        return self.path[-1] if self.path else "/"

    def as_json(self) -> dict[str, Any]:
        """The members of a listing's item, as the server writes them."""
        item: dict[str, Any] = {
            "path": format_path(self.path),
            "name": self.name,
            "entry_type": int(self.kind),
            "hash": self.hash,
            "size": self.size,
            "created_at": self.created_ms,
            "updated_at": self.updated_ms,
            "content_type": self.content_type,
        }
        if self.kind is EntryKind.SYMLINK:
            item["target"] = self.target
        if self.kind is EntryKind.DIRECTORY:
            item["file_count"] = self.file_count
            item["total_size"] = self.size
        if not self.is_complete:
            item.update(dict.fromkeys(("hash", "size", "created_at", "updated_at", "total_size")))
        return item


class PutOptions(Struct, frozen=True):
    """How one file is stored.

    Attributes:
        content_type: None lets the content and the name decide.
        if_match: hex content hash that must stand there now, or ``*`` for any file.
        create_only: refuse when anything stands there.
        time_ms: of creation and of the last update; None means now, and that an overwritten file keeps the
            time of its creation.
        fork: the fork that is written to; None means HEAD.
    """

    content_type: str | None = None
    if_match: str | None = None
    create_only: bool = False
    time_ms: int | None = None
    fork: str | None = None


class Stored(Struct, frozen=True):
    """What a write of one file left behind: the file as it is now, whether it is new, the version."""

    info: FileInfo
    created: bool
    version: str


class ImportOptions(Struct, frozen=True):
    """How a tree is imported; ``jobs`` is the threads that read files, and the connections to a server.

    ``keep_times`` stores each file's modification time as its time of creation and of update.
    """

    jobs: int = 4
    keep_times: bool = False
    message: str | None = None
    fork: str | None = None


class CommitCounts(Struct, frozen=True):
    """What one commit of an import holds: files and their bytes, links, empty directories, removals."""

    files: int = 0
    size: int = 0
    links: int = 0
    directories: int = 0
    removed: int = 0


class ImportListener(Protocol):
    """Hears how an import goes. Calls never overlap; they may come from another thread."""

    def committed(self, version: str | None, counts: CommitCounts) -> None:
        """A commit is durable and the database stands at this version; None when the store did not say."""

    def unchanged(self, files: int) -> None:
        """So many files turned out to be there already, byte for byte."""

    def problem(self, path: str, reason: str) -> None:
        """This item could not be imported, for this reason; the others go on."""


class Importer(Protocol):
    """Takes many writes and makes few commits of them.

    Operations go to the store in whole commits, in the background where that is faster. Only ``clear``
    promises an order. Leaving the context without an exception commits everything; leaving it with one drops
    what is not committed.
    """

    def put_file(self, file: SourceFile, unless_hash: Hash | None = None) -> None:
        """Stores a file from the disk, unless its content has that hash. May block until there is room."""

    def put_link(self, path: Path, target: str, time_ms: int | None) -> None:
        """Stores a symbolic link to an absolute path of the database."""

    def make_directory(self, path: Path, time_ms: int | None) -> None:
        """Makes an empty directory; one that is there stays."""

    def remove(self, path: Path) -> None:
        """Removes an entry and everything below it."""

    def clear(self, path: Path, *, counted: bool = True) -> None:
        """Removes an entry and everything below it before any operation that is queued later.

        ``counted`` is False where the same comes back at once: then it does not count as removed.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class FileStore(Protocol):
    """The files of one database, in a file here or behind a server.

    Methods block; each may be called from any thread. A remote store turns a server's answer back into the
    error of ``svc.errors`` that it reports. A ``version`` is a hex root hash; None means HEAD.
    """

    @property
    def label(self) -> str:
        """The database as messages name it: its path or its URL, without secrets."""

    def pin(self, point: ReadPoint, path: Path = ()) -> str:
        """Returns the hex root hash that a read point means now, so that many reads see one state.

        ``path`` is what is to be read there: a refusal names it.
        """

    def stat(self, path: Path, version: str | None = None, *, follow: bool = True) -> FileInfo:
        """Describes what stands at a path, or where a link there leads, under that path; else NotFound."""

    def children(self, path: Path, version: str | None = None) -> Iterator[FileInfo]:
        """Yields the entries of a directory in order of their names."""

    def read(
        self, info: FileInfo, version: str | None = None, *, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        """Yields a file's bytes, to its end without a ``length``.

        ``info`` is what ``stat`` or ``children`` said at the same version. Raises PreconditionFailed, only at
        HEAD, where the file is another one by now.
        """

    def put(self, path: Path, body: ByteReader, size: int | None, options: PutOptions) -> Stored:
        """Stores one file in one commit and reads ``body`` to its end.

        Raises PreconditionFailed where ``options`` forbid it, and Conflict where a directory stands there, or
        a file where a directory is needed.
        """

    def batch(self, operations: Sequence[AnyOperation], *, fork: str | None = None) -> BatchResult:
        """Does many writes in one commit, or none of them; to HEAD, or to a fork."""

    def importer(self, options: ImportOptions, listener: ImportListener) -> Importer:
        """Opens an import of many files."""

    def is_own_file(self, device: int, inode: int) -> bool:
        """Whether a file of this machine belongs to the store itself, and so is no content for it."""

    def close(self) -> None:
        """Gives back files and connections."""
