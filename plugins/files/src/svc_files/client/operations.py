"""What an import does to a store, as values, and the protocol of the places that take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from svc.plugin import Path, format_path
from svc_files.client.source import SourceFile
from svc_files.client.store import CommitCounts

__all__ = ["Link", "MakeDirectory", "Operation", "Put", "Remove", "Sink", "Stored", "counts_of", "name_of"]


class Put(Struct, frozen=True, gc=False):
    """A file that was read, or the ``failure``: why it could not be read or stored.

    ``content`` is what the sink takes, None when the same is there already. Without a ``content_type`` the
    store finds one.
    """

    file: SourceFile
    content: Any
    size: int = 0
    content_type: str | None = None
    failure: str | None = None


class Link(Struct, frozen=True):
    """A symbolic link."""

    path: Path
    target: str
    time_ms: int | None


class MakeDirectory(Struct, frozen=True):
    """An empty directory."""

    path: Path
    time_ms: int | None


class Remove(Struct, frozen=True):
    """A removal with everything below; ``counted`` is false where the same comes back at once."""

    path: Path
    counted: bool = True


Operation = Put | Link | MakeDirectory | Remove


class Stored(Struct, frozen=True):
    """The content of a file that is in the store already, in a commit of its own."""

    version: str


class Sink(Protocol):
    """Where an import goes: a database file here, or a server.

    ``parallel``: several threads may commit at once; commits of one thread keep their order. The other two
    bound the operations and the bytes of contents that a commit takes.
    """

    parallel: bool
    files_per_commit: int
    bytes_per_commit: int

    def take(self, file: SourceFile, content: bytes, *, at_once: bool) -> Put:
        """Takes the content of a small file; runs in a thread of the pool, or at once in the caller's."""

    def take_large(self, file: SourceFile) -> Put:
        """Reads a large file and stores its content, or the file itself; runs in a thread of the pool.

        Raises SourceUnreadable where it cannot be read to its end.
        """

    def commit(self, operations: Sequence[Operation]) -> str | None:
        """Commits operations, all or none, and returns the version.

        Of the one that was refused, ``operation`` in the details of the error is the index.
        """


def counts_of(operations: Sequence[Operation]) -> CommitCounts:
    """Returns what a commit of these operations holds."""
    sizes = [one.size for one in operations if isinstance(one, Put)]
    return CommitCounts(
        len(sizes),
        sum(sizes),
        sum(isinstance(one, Link) for one in operations),
        sum(isinstance(one, MakeDirectory) for one in operations),
        sum(isinstance(one, Remove) and one.counted for one in operations),
    )


def name_of(operation: Operation) -> str:
    """How an operation is called in a report: by its place on this machine, or its path."""
    return operation.file.location if isinstance(operation, Put) else format_path(operation.path)
