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
    """A file that was read, with what the sink made of its content; or why it could not be read.

    Attributes:
        file: where it comes from, and goes.
        content: what the sink takes; None when the same is there already.
        size: bytes.
        content_type: media type, or None where the store finds it.
        failure: why it could not be read or stored, or None.
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

    Attributes:
        parallel: whether several threads may commit at once; commits of one thread keep their order.
        files_per_commit: operations that a commit takes.
        bytes_per_commit: bytes of contents that a commit takes.
    """

    parallel: bool
    files_per_commit: int
    bytes_per_commit: int

    def take(self, file: SourceFile, content: bytes, *, at_once: bool) -> Put:
        """Takes the content of a small file; runs in a thread of the pool, or at once in the caller's."""

    def take_large(self, file: SourceFile) -> Put:
        """Reads a large file and stores its content, or the file itself; runs in a thread of the pool.

        Raises:
            SourceUnreadable: it cannot be read to its end.
        """

    def commit(self, operations: Sequence[Operation]) -> str | None:
        """Commits operations, all or none, and returns the version.

        Raises:
            SvcError: one was refused; ``operation`` in the details is its index.
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
