"""Import into a database on this machine: threads read and hash, few commits take what they read."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import msgspec

from svc.database import Database, StoredContent, Transaction
from svc.errors import InsufficientStorage, InternalError, NotFound, ServiceUnavailable, SvcError
from svc.hashing import Hash, content_hasher
from svc.paths import Path, format_path
from svc_files.client.source import (
    SMALL_FILE,
    DescriptorReader,
    SourceFile,
    SourceUnreadable,
    hash_source,
    open_source,
    read_source,
)
from svc_files.client.store import CommitCounts, ImportListener, ImportOptions
from svc_files.content_types import choose_content_type

__all__ = ["LocalImporter"]

FILES_PER_COMMIT = 5_000
BYTES_PER_COMMIT = 64 * 1024 * 1024

_HEAD_SIZE = 4096
"""As many bytes as ``StoredContent.head`` has."""

_GROUP_FILES = 128
_GROUP_BYTES = 1024 * 1024
_GROUPS_AHEAD = 4

# Threads that make short system calls take the interpreter from each other all the time: 100,000 files
# of 1 KiB in the page cache took 12.3 s with a pool of four and 8.4 s without. A pool is worth it only
# where a file means work outside the interpreter, or a wait for the disk.
_TINY_FILE = 8 * 1024
_SLOW_FILE_SECONDS = 0.0005
_GROUPS_AFTER_SLOW = 16


class _Read(msgspec.Struct, frozen=True, gc=False):
    """A file that was read: its content, or None when it is there already, or why it failed."""

    file: SourceFile
    content: StoredContent | bytes | None
    content_type: str | None = None
    failure: str | None = None

    @property
    def size(self) -> int:
        """Bytes of the content."""
        content = self.content
        return content.size if isinstance(content, StoredContent) else len(content or b"")


@dataclass(frozen=True, slots=True)
class _Link:
    path: Path
    target: str
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class _MakeDirectory:
    path: Path
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class _Remove:
    path: Path


_Operation = _Read | _Link | _MakeDirectory | _Remove


@dataclass(slots=True)
class _Batch:
    """The operations of the commit that is being filled."""

    operations: list[_Operation] = field(default_factory=list)
    size: int = 0


class LocalImporter:
    """Imports into an open database; one thread uses it.

    Groups of small files are read a few groups ahead, in order, so what the import does does not
    depend on how fast which thread was: by a pool of threads, or at once where the files are tiny and
    the disk does not make us wait. A large file is a group of its own; its chunks go to the log while
    it is read.

    Args:
        database: the database.
        options: threads, times, message.
        listener: hears what is committed.
        actor: who the commits say made them.
    """

    def __init__(
        self, database: Database, options: ImportOptions, listener: ImportListener, actor: str | None
    ) -> None:
        self._database = database
        self._options = options
        self._listener = listener
        self._actor = actor
        self._pool = ThreadPoolExecutor(max(1, options.jobs), thread_name_prefix="svc-load")
        self._groups: deque[Future[list[_Read]] | _Operation] = deque()
        self._running = 0
        self._slow_groups = 0
        self._group: list[tuple[SourceFile, Hash | None]] = []
        self._group_size = 0
        self._batch = _Batch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._submit_group()
                self._take_groups(0)
                self._commit()
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def put_file(self, file: SourceFile, unless_hash: Hash | None = None) -> None:
        """Queues a file of the disk; blocks while enough of them are being read."""
        if file.size > SMALL_FILE:
            self._submit_group()
        self._group.append((file, unless_hash))
        self._group_size += file.size
        if len(self._group) >= _GROUP_FILES or self._group_size >= _GROUP_BYTES or file.size > SMALL_FILE:
            self._submit_group()
            self._take_groups(self._options.jobs + _GROUPS_AHEAD)

    def put_link(self, path: Path, target: str, time_ms: int | None) -> None:
        """Queues a symbolic link."""
        self._queue(_Link(path, target, time_ms))

    def make_directory(self, path: Path, time_ms: int | None) -> None:
        """Queues an empty directory."""
        self._queue(_MakeDirectory(path, time_ms))

    def remove(self, path: Path) -> None:
        """Queues a removal."""
        self._queue(_Remove(path))

    def clear(self, path: Path) -> None:
        """Queues a removal; all operations of this importer are done in the order they came in."""
        self._queue(_Remove(path))

    def _queue(self, operation: _Operation) -> None:
        self._submit_group()
        self._groups.append(operation)
        self._take_groups(self._options.jobs + _GROUPS_AHEAD)

    def _submit_group(self) -> None:
        if self._group:
            group, size, self._group, self._group_size = self._group, self._group_size, [], 0
            if size > _TINY_FILE * len(group) or self._slow_groups:
                self._slow_groups = max(0, self._slow_groups - 1)
                self._groups.append(self._pool.submit(self._read_group, group))
            else:
                self._groups.append(self._read_at_once(group))
            self._running += 1

    def _read_at_once(self, group: list[tuple[SourceFile, Hash | None]]) -> Future[list[_Read]]:
        started = time.perf_counter()
        done: Future[list[_Read]] = Future()
        done.set_result([self._read_file(file, unless_hash, at_once=True) for file, unless_hash in group])
        if time.perf_counter() - started > _SLOW_FILE_SECONDS * len(group):
            self._slow_groups = _GROUPS_AFTER_SLOW
        return done

    def _take_groups(self, leave: int) -> None:
        """Moves what was read into the batch until at most ``leave`` groups are on their way."""
        while self._groups and (self._running > leave or not isinstance(self._groups[0], Future)):
            self._take(self._groups.popleft())
        if not leave:
            while self._groups:
                self._take(self._groups.popleft())

    def _take(self, group: Future[list[_Read]] | _Operation) -> None:
        if not isinstance(group, Future):
            self._add(group, 0)
            return
        self._running -= 1
        for read in group.result():
            if read.failure is not None:
                self._listener.problem(read.file.location, read.failure)
            elif read.content is None:
                self._listener.unchanged(1)
            else:
                self._add(read, read.size)

    def _add(self, operation: _Operation, size: int) -> None:
        self._batch.operations.append(operation)
        self._batch.size += size
        if len(self._batch.operations) >= FILES_PER_COMMIT or self._batch.size >= BYTES_PER_COMMIT:
            self._commit()

    def _commit(self) -> None:
        """Commits the batch; an operation that the database refuses is reported and left out."""
        batch, self._batch = self._batch, _Batch()
        operations: list[_Operation] = batch.operations
        while operations:
            try:
                version = self._apply(operations)
            except (InsufficientStorage, ServiceUnavailable, InternalError):
                raise
            except SvcError as error:
                index = error.details.get("operation")
                if not isinstance(index, int) or not 0 <= index < len(operations):
                    raise
                refused = operations.pop(index)
                # What is to be removed and is not there is as it should be.
                if not (isinstance(refused, _Remove) and isinstance(error, NotFound)):
                    self._listener.problem(_shown(refused), error.message)
            else:
                self._report(operations, version)
                return

    def _apply(self, operations: Iterable[_Operation]) -> str:
        with self._database.transaction(actor=self._actor, message=self._options.message) as transaction:
            for index, operation in enumerate(operations):
                try:
                    self._add_to(transaction, operation)
                except SvcError as error:
                    error.details.setdefault("operation", index)
                    raise
        assert transaction.result is not None, "the transaction is committed"
        return transaction.result.version.hex()

    def _add_to(self, transaction: Transaction, operation: _Operation) -> None:
        if isinstance(operation, _Read):
            assert operation.content is not None, "what failed is not queued"
            time_ms = operation.file.time_ms if self._options.keep_times else None
            transaction.put(
                operation.file.path,
                operation.content,
                content_type=operation.content_type,
                created_ms=time_ms,
                updated_ms=time_ms,
            )
        elif isinstance(operation, _Link):
            transaction.link(
                operation.path, operation.target, created_ms=operation.time_ms, updated_ms=operation.time_ms
            )
        elif isinstance(operation, _MakeDirectory):
            transaction.mkdir(operation.path, exist_ok=True, at_ms=operation.time_ms)
        else:
            transaction.delete(operation.path, recursive=True)

    def _report(self, operations: list[_Operation], version: str) -> None:
        sizes = [one.size for one in operations if isinstance(one, _Read) and one.content is not None]
        counts = CommitCounts(
            len(sizes),
            sum(sizes),
            sum(isinstance(one, _Link) for one in operations),
            sum(isinstance(one, _MakeDirectory) for one in operations),
            sum(isinstance(one, _Remove) for one in operations),
        )
        self._listener.committed(version, counts)

    def _read_group(self, group: list[tuple[SourceFile, Hash | None]]) -> list[_Read]:
        """Reads and hashes files; runs in a thread of the pool."""
        return [self._read_file(file, unless_hash) for file, unless_hash in group]

    def _read_file(self, file: SourceFile, unless_hash: Hash | None, at_once: bool = False) -> _Read:
        """Reads a file; a tiny one's bytes are left to the transaction, which stores many at a time."""
        content: StoredContent | bytes | None
        try:
            if file.size > SMALL_FILE:
                content = self._read_large(file, unless_hash)
                head = content.head if content is not None else b""
            else:
                content = read_source(file.location, file.size)
                if unless_hash is not None and content_hasher().update(content).digest() == unless_hash:
                    return _Read(file, None)
                head = content[:_HEAD_SIZE]
                if not at_once:
                    content = self._database.store_bytes(content)
        except SourceUnreadable as error:
            return _Read(file, None, failure=str(error))
        if content is None:
            return _Read(file, None)
        return _Read(file, content, choose_content_type(None, head, file.path[-1]))

    def _read_large(self, file: SourceFile, unless_hash: Hash | None) -> StoredContent | None:
        if unless_hash is not None and hash_source(file.location) == unless_hash:
            return None
        with open_source(file.location) as (descriptor, _):
            return self._database.store(DescriptorReader(descriptor, file.location))


def _shown(operation: _Operation) -> str:
    return operation.file.location if isinstance(operation, _Read) else format_path(operation.path)
