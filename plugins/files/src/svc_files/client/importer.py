"""The importer: threads read and hash files, few commits take what they read, here or at a server."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from svc.errors import (
    AuthRequired,
    InsufficientStorage,
    InternalError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    ServiceUnavailable,
    SvcError,
)
from svc.plugin import Hash, Path, content_hasher
from svc_files.client.operations import (
    Link,
    MakeDirectory,
    Operation,
    Put,
    Remove,
    Sink,
    Stored,
    counts_of,
    name_of,
)
from svc_files.client.source import (
    SMALL_FILE,
    SourceFile,
    SourceUnreadable,
    hash_source,
    is_unchanged,
    read_source,
    status_of,
)
from svc_files.client.store import CommitCounts, ImportListener

__all__ = ["SinkImporter"]

_READS = 3
_CHANGED = "it kept changing while it was read, so what was read may be of no one moment"
_GROUP_FILES = 128
_GROUP_BYTES = 1024 * 1024
_GROUPS_AHEAD = 4

# Threads that make short system calls take the interpreter from each other all the time: 100,000 files
# of 1 KiB in the page cache took 12.3 s with a pool of four and 8.4 s without. A pool is worth it only
# where a file means work outside the interpreter, or a wait for the disk.
_TINY_FILE = 8 * 1024
_SLOW_FILE_SECONDS = 0.0005
_GROUPS_AFTER_SLOW = 16

_FATAL = (ServiceUnavailable, InsufficientStorage, InternalError, AuthRequired, MethodNotAllowed)


class _Batch(Struct):
    operations: list[Operation] = field(default_factory=list)
    size: int = 0


class SinkImporter:
    """Imports into a sink; one thread uses it.

    Groups of small files are read a few groups ahead, in order, so what the import does does not depend on
    how fast which thread was: by a pool of threads, or at once where the files are tiny and the disk does not
    make us wait. A large file is a group of its own. Where the sink takes several commits at once, threads of
    the pool send them.
    """

    def __init__(self, sink: Sink, jobs: int, listener: ImportListener) -> None:
        self._sink = sink
        self._jobs = max(1, jobs)
        self._listener = listener
        self._pool = ThreadPoolExecutor(self._jobs, thread_name_prefix="svc-load")
        self._lock = threading.Lock()
        self._groups: deque[Future[list[Put]] | Operation] = deque()
        self._sends: deque[Future[None]] = deque()
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
                self._await_sends(0)
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
            self._take_groups(self._jobs + _GROUPS_AHEAD)

    def put_link(self, path: Path, target: str, time_ms: int | None) -> None:
        """Queues a symbolic link."""
        self._queue(Link(path, target, time_ms))

    def make_directory(self, path: Path, time_ms: int | None) -> None:
        """Queues an empty directory."""
        self._queue(MakeDirectory(path, time_ms))

    def remove(self, path: Path) -> None:
        """Queues a removal."""
        self._queue(Remove(path))

    def clear(self, path: Path, *, counted: bool = True) -> None:
        """Removes an entry before what is queued later: in order, or at once where commits have none."""
        if self._sink.parallel:
            self._commit_operations([Remove(path, counted)])
        else:
            self._queue(Remove(path, counted))

    def _queue(self, operation: Operation) -> None:
        self._submit_group()
        self._groups.append(operation)
        self._take_groups(self._jobs + _GROUPS_AHEAD)

    def _submit_group(self) -> None:
        if self._group:
            group, size, self._group, self._group_size = self._group, self._group_size, [], 0
            if size > _TINY_FILE * len(group) or self._slow_groups:
                self._slow_groups = max(0, self._slow_groups - 1)
                self._groups.append(self._pool.submit(self._read_group, group))
            else:
                self._groups.append(self._read_at_once(group))
            self._running += 1

    def _read_at_once(self, group: list[tuple[SourceFile, Hash | None]]) -> Future[list[Put]]:
        started = time.perf_counter()
        done: Future[list[Put]] = Future()
        done.set_result([self._read_file(file, unless_hash, at_once=True) for file, unless_hash in group])
        if time.perf_counter() - started > _SLOW_FILE_SECONDS * len(group):
            self._slow_groups = _GROUPS_AFTER_SLOW
        return done

    def _take_groups(self, leave: int) -> None:
        while self._groups and (self._running > leave or not isinstance(self._groups[0], Future)):
            self._take(self._next_group())
        if not leave:
            while self._groups:
                self._take(self._next_group())

    def _next_group(self) -> Future[list[Put]] | Operation:
        """The oldest group; where commits have no order one that was read: no large file holds others up."""
        if self._sink.parallel:
            for place, group in enumerate(self._groups):
                if not isinstance(group, Future) or group.done():
                    del self._groups[place]
                    return group
            reading = [group for group in self._groups if isinstance(group, Future)]
            wait(reading, return_when=FIRST_COMPLETED)
            return self._next_group()
        return self._groups.popleft()

    def _take(self, group: Future[list[Put]] | Operation) -> None:
        if not isinstance(group, Future):
            self._add(group, 0)
            return
        self._running -= 1
        for put in group.result():
            if put.failure is not None:
                self._problem(put.file.location, put.failure)
            elif put.content is None:
                with self._lock:
                    self._listener.unchanged(1)
            elif not isinstance(put.content, Stored):
                self._add(put, put.size)

    def _add(self, operation: Operation, size: int) -> None:
        self._batch.operations.append(operation)
        self._batch.size += size
        if (
            len(self._batch.operations) >= self._sink.files_per_commit
            or self._batch.size >= self._sink.bytes_per_commit
        ):
            self._commit()

    def _commit(self) -> None:
        batch, self._batch = self._batch, _Batch()
        if not batch.operations:
            return
        if self._sink.parallel:
            self._sends.append(self._pool.submit(self._commit_operations, batch.operations))
            self._await_sends(self._jobs * 2)
        else:
            self._commit_operations(batch.operations)

    def _await_sends(self, leave: int) -> None:
        while self._sends and (len(self._sends) > leave or self._sends[0].done()):
            self._sends.popleft().result()

    # Below: in a thread of the pool, or in the caller's.

    def _commit_operations(self, operations: list[Operation]) -> None:
        """Commits operations; one that the store refuses is reported and left out."""
        while operations:
            try:
                version = self._sink.commit(operations)
            except _FATAL:
                raise
            except SvcError as error:
                index = error.details.get("operation")
                if isinstance(index, int) and 0 <= index < len(operations):
                    self._refused(operations.pop(index), error)
                elif len(operations) == 1:
                    self._refused(operations.pop(), error)
                elif isinstance(error, PayloadTooLarge):
                    middle = len(operations) // 2
                    self._commit_operations(operations[:middle])
                    operations = operations[middle:]
                else:
                    raise
            else:
                self._committed(version, counts_of(operations))
                return

    def _refused(self, operation: Operation, error: SvcError) -> None:
        # What is to be removed and is not there is as it should be.
        if not (isinstance(operation, Remove) and isinstance(error, NotFound)):
            self._problem(name_of(operation), error.message)

    def _read_group(self, group: Sequence[tuple[SourceFile, Hash | None]]) -> list[Put]:
        return [self._read_file(file, unless_hash) for file, unless_hash in group]

    def _read_file(self, file: SourceFile, unless_hash: Hash | None, at_once: bool = False) -> Put:
        put, content = Put(file, None), b""
        for _ in range(_READS):
            try:
                if file.size > SMALL_FILE:
                    put = self._read_large(file, unless_hash)
                    status = status_of(file.location)
                else:
                    content, status = read_source(file.location, file.size)
            except SourceUnreadable as error:
                return Put(file, None, failure=str(error))
            if is_unchanged(file, status):
                break
            # It has changed since it was listed, or while it was read: it is read again as it is now.
            file = replace(file, size=status.st_size, mtime_ns=status.st_mtime_ns)
        else:
            return Put(file, None, failure=_CHANGED)
        if file.size > SMALL_FILE:
            return put
        if unless_hash is not None and content_hasher().update(content).digest() == unless_hash:
            return Put(file, None)
        return self._sink.take(file, content, at_once=at_once)

    def _read_large(self, file: SourceFile, unless_hash: Hash | None) -> Put:
        if unless_hash is not None and hash_source(file.location) == unless_hash:
            return Put(file, None)
        try:
            put = self._sink.take_large(file)
        except _FATAL:
            raise
        except SvcError as error:
            return Put(file, None, failure=error.message)
        if isinstance(put.content, Stored):
            self._committed(put.content.version, CommitCounts(1, put.size))
        return put

    def _committed(self, version: str | None, counts: CommitCounts) -> None:
        with self._lock:
            self._listener.committed(version, counts)

    def _problem(self, name: str, reason: str) -> None:
        with self._lock:
            self._listener.problem(name, reason)
