"""An import into a database on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from svc.errors import SvcError
from svc.plugin import Database, StoredContent, Transaction
from svc_files.client.operations import Link, MakeDirectory, Operation, Put
from svc_files.client.source import DescriptorReader, SourceFile, open_source
from svc_files.client.store import ImportOptions
from svc_files.content_types import choose_content_type

__all__ = ["LocalSink", "ref_of"]

FILES_PER_COMMIT = 5_000
BYTES_PER_COMMIT = 64 * 1024 * 1024

_HEAD_SIZE = 4096
"""As many bytes as ``StoredContent.head`` has."""


class LocalSink:
    """Takes an import into an open database: chunks of large files go to the log while they are read."""

    parallel = False

    def __init__(self, database: Database, options: ImportOptions) -> None:
        self._database = database
        self._options = options
        self.files_per_commit = FILES_PER_COMMIT
        self.bytes_per_commit = BYTES_PER_COMMIT

    def take(self, file: SourceFile, content: bytes, *, at_once: bool) -> Put:
        """Stores a content; a tiny one's bytes are left to the transaction, which stores many at a time."""
        content_type = choose_content_type(file.content_type, content[:_HEAD_SIZE], file.path[-1])
        kept: bytes | StoredContent = content if at_once else self._database.store_bytes(content)
        return Put(file, kept, len(content), content_type)

    def take_large(self, file: SourceFile) -> Put:
        """Stores the content of a large file."""
        with open_source(file.location) as (descriptor, _):
            content = self._database.store(DescriptorReader(descriptor, file.location))
        content_type = choose_content_type(file.content_type, content.head, file.path[-1])
        return Put(file, content, content.size, content_type)

    def commit(self, operations: Sequence[Operation]) -> str:
        """Commits operations in one transaction."""
        ref = ref_of(self._options.fork)
        with self._database.transaction(message=self._options.message, ref=ref) as transaction:
            for index, operation in enumerate(operations):
                try:
                    self._add(transaction, operation)
                except SvcError as error:
                    error.details.setdefault("operation", index)
                    raise
        assert transaction.result is not None, "the transaction is committed"
        return transaction.result.version.hex()

    def _add(self, transaction: Transaction, operation: Operation) -> None:
        if isinstance(operation, Put):
            time_ms = operation.file.time_ms if self._options.keep_times else None
            transaction.put(
                operation.file.path,
                operation.content,
                content_type=operation.content_type,
                created_ms=time_ms,
                updated_ms=time_ms,
            )
        elif isinstance(operation, Link):
            transaction.link(
                operation.path, operation.target, created_ms=operation.time_ms, updated_ms=operation.time_ms
            )
        elif isinstance(operation, MakeDirectory):
            transaction.mkdir(operation.path, exist_ok=True, at_ms=operation.time_ms)
        else:
            transaction.delete(operation.path, recursive=True)


def ref_of(fork: str | None) -> str:
    """The reference that is written to: a fork's, or HEAD."""
    return "HEAD" if fork is None else f"forks/{fork}"
