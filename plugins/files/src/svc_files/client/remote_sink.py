"""An import into a server: many small files a request, large files streamed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from svc.errors import InternalError
from svc.plugin import content_hasher, format_path
from svc_client import Client
from svc_files.client.operations import Link, MakeDirectory, Operation, Put, Remove, Stored
from svc_files.client.source import DescriptorReader, SourceFile, open_source
from svc_files.client.store import ImportOptions
from svc_files.models import (
    AnyOperation,
    BatchBody,
    BatchResult,
    DeleteOperation,
    LinkOperation,
    MakeDirectoryOperation,
    PutOperation,
    WriteQuery,
)
from svc_files.operations import batch

__all__ = ["RemoteSink"]

FILES_PER_BATCH = 2_000
BYTES_PER_BATCH = 4 * 1024 * 1024

_PIECE = 1024 * 1024


class RemoteSink:
    """Takes an import over HTTP; see ``Sink``."""

    parallel = True
    files_per_commit = FILES_PER_BATCH
    bytes_per_commit = BYTES_PER_BATCH

    def __init__(self, client: Client, options: ImportOptions) -> None:
        self._client = client
        self._options = options

    def take(self, file: SourceFile, content: bytes, *, at_once: bool) -> Put:
        """Keeps a content until its batch is sent."""
        return Put(file, content, len(content))

    def take_large(self, file: SourceFile) -> Put:
        """Sends a large file in a request of its own."""
        time_ms = file.time_ms if self._options.keep_times else None
        with open_source(file.location) as (descriptor, status):
            sent = content_hasher()

            def pieces() -> Iterable[bytes]:
                sent.reset()
                reader = DescriptorReader(descriptor, file.location, status.st_size)
                reader.rewind()
                while piece := reader.read(_PIECE):
                    sent.update(piece)
                    yield piece

            stored = self._client.files.put(
                file.path,
                pieces,
                size=status.st_size,
                content_type=file.content_type,
                created_at=time_ms,
                updated_at=time_ms,
                fork=self._options.fork,
            )
        if stored.content_hash != sent.hexdigest():
            raise InternalError(
                "The server stored other bytes than it was sent.", path=format_path(file.path)
            )
        return Put(file, Stored(stored.version), status.st_size)

    def commit(self, operations: Sequence[Operation]) -> str:
        """Sends operations as one batch; one that only adds may be sent again when its answer is lost."""
        body = BatchBody([self._as_batched(operation) for operation in operations], self._options.message)
        adds = not any(isinstance(operation, Remove) for operation in operations)
        query = WriteQuery(fork=self._options.fork)
        return self._client.stream(batch, body, query, repeatable=adds).json(BatchResult).version

    def _as_batched(self, operation: Operation) -> AnyOperation:
        if isinstance(operation, Put):
            time_ms = operation.file.time_ms if self._options.keep_times else None
            # JSON has bytes in base64.
            return PutOperation(
                path=format_path(operation.file.path),
                content_base64=operation.content,
                content_type=operation.file.content_type,
                created_at=time_ms,
                updated_at=time_ms,
            )
        path = format_path(operation.path)
        if isinstance(operation, Link):
            time_ms = operation.time_ms
            return LinkOperation(path=path, target=operation.target, created_at=time_ms, updated_at=time_ms)
        if isinstance(operation, MakeDirectory):
            return MakeDirectoryOperation(path=path, at=operation.time_ms)
        return DeleteOperation(path=path, recursive=True)
