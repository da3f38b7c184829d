"""Import into a server: several connections, many small files a request, large files streamed."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import msgspec

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
from svc.hashing import Hash, content_hasher
from svc.paths import Path, format_path
from svc_files.client.connection import Connections, file_url, json_of
from svc_files.client.source import (
    SMALL_FILE,
    DescriptorReader,
    SourceFile,
    SourceUnreadable,
    hash_source,
    open_source,
    read_source,
)
from svc_files.client.store import CommitCounts, ImportListener, ImportOptions, PutOptions

__all__ = ["RemoteImporter", "put_headers"]

FILES_PER_BATCH = 2_000
BYTES_PER_BATCH = 4 * 1024 * 1024

_PIECE = 1024 * 1024
_FATAL = (ServiceUnavailable, InsufficientStorage, InternalError, AuthRequired, MethodNotAllowed)


@dataclass(frozen=True, slots=True)
class _Queued:
    """One operation of a batch: a file that is still to be read, or an operation as it is sent."""

    file: SourceFile | None = None
    unless_hash: Hash | None = None
    operation: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """One operation as it is sent, with what the report needs."""

    name: str
    operation: dict[str, Any]
    size: int = 0


def put_headers(options: PutOptions, size: int | None) -> dict[str, str]:
    """The header fields of a PUT of a file.

    Args:
        options: type, conditions and times.
        size: bytes of the body; None sends it chunked.
    """
    headers: dict[str, str] = {}
    if size is None:
        headers["Transfer-Encoding"] = "chunked"
    else:
        headers["Content-Length"] = str(size)
    if options.content_type is not None:
        headers["Content-Type"] = options.content_type
    if options.if_match is not None:
        headers["If-Match"] = "*" if options.if_match == "*" else f'"{options.if_match}"'
    if options.create_only:
        headers["If-None-Match"] = "*"
    if options.time_ms is not None:
        headers["X-Svc-Created-At"] = headers["X-Svc-Updated-At"] = str(options.time_ms)
    return headers


class RemoteImporter:
    """Imports over HTTP; one thread uses it.

    Args:
        connections: connections to the server; each thread of the import has its own.
        options: connections at once, times.
        listener: hears what is committed.
    """

    def __init__(self, connections: Connections, options: ImportOptions, listener: ImportListener) -> None:
        self._connections = connections
        self._options = options
        self._listener = listener
        jobs = max(1, options.jobs)
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="svc-load")
        self._slots = threading.BoundedSemaphore(jobs * 2)
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._group: list[_Queued] = []
        self._group_size = 0

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
        finally:
            self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        if kind is None and self._failure is not None:
            raise self._failure

    def put_file(self, file: SourceFile, unless_hash: Hash | None = None) -> None:
        """Queues a file of the disk; blocks while enough of them are on their way."""
        if file.size > SMALL_FILE:
            self._submit(self._send_large, file, unless_hash)
            return
        self._add(_Queued(file, unless_hash), file.size)

    def put_link(self, path: Path, target: str, time_ms: int | None) -> None:
        """Queues a symbolic link."""
        self._add(
            _Queued(operation=_timed({"op": "link", "path": format_path(path), "target": target}, time_ms))
        )

    def make_directory(self, path: Path, time_ms: int | None) -> None:
        """Queues an empty directory."""
        operation: dict[str, Any] = {"op": "mkdir", "path": format_path(path)}
        if time_ms is not None:
            operation["at"] = time_ms
        self._add(_Queued(operation=operation))

    def remove(self, path: Path) -> None:
        """Queues a removal."""
        self._add(_Queued(operation={"op": "delete", "path": format_path(path), "recursive": True}))

    def clear(self, path: Path) -> None:
        """Removes an entry at once; blocks until that is committed."""
        self._raise_failure()
        response = self._connections.request(
            "DELETE", file_url("/files/", path), query={"recursive": "true"}, repeatable=False
        )
        answer = json_of(self._connections, response)
        self._committed(answer, CommitCounts(removed=1))

    def _add(self, queued: _Queued, size: int = 0) -> None:
        self._group.append(queued)
        self._group_size += size
        if len(self._group) >= FILES_PER_BATCH or self._group_size >= BYTES_PER_BATCH:
            self._submit_group()

    def _submit_group(self) -> None:
        if self._group:
            group, self._group, self._group_size = self._group, [], 0
            self._submit(self._send_group, group)

    def _submit(self, work: Any, *arguments: Any) -> None:
        self._raise_failure()
        self._slots.acquire()
        future = self._pool.submit(work, *arguments)
        future.add_done_callback(self._finished)

    def _finished(self, future: Future[None]) -> None:
        self._slots.release()
        if not future.cancelled() and (error := future.exception()) is not None:
            with self._lock:
                self._failure = self._failure or error

    def _raise_failure(self) -> None:
        with self._lock:
            failure = self._failure
        if failure is not None:
            raise failure

    # Below: in a thread of the pool.

    def _send_group(self, group: Iterable[_Queued]) -> None:
        ready = []
        for queued in group:
            if queued.operation is not None:
                ready.append(_Ready(str(queued.operation["path"]), queued.operation))
            elif queued.file is not None:
                one = self._read_small(queued.file, queued.unless_hash)
                if one is not None:
                    ready.append(one)
        self._send_batch(ready)

    def _read_small(self, file: SourceFile, unless_hash: Hash | None) -> _Ready | None:
        try:
            content = read_source(file.location, file.size)
        except SourceUnreadable as error:
            self._problem(file.location, str(error))
            return None
        if unless_hash is not None and content_hasher().update(content).digest() == unless_hash:
            self._unchanged()
            return None
        operation = {"op": "put", "path": format_path(file.path), "content_base64": content}
        return _Ready(file.location, _timed(operation, self._time_of(file)), len(content))

    def _send_batch(self, ready: list[_Ready]) -> None:
        """Sends operations as one commit; one that the server refuses is reported and left out."""
        while ready:
            body = msgspec.json.encode(
                {"operations": [one.operation for one in ready], "message": self._options.message}
            )
            try:
                response = self._connections.request(
                    "POST",
                    "/files/batch",
                    headers={"Content-Type": "application/json"},
                    body=body,
                    repeatable=all(one.operation["op"] != "delete" for one in ready),
                )
                answer = json_of(self._connections, response)
            except _FATAL:
                raise
            except SvcError as error:
                index = error.details.get("operation")
                if isinstance(index, int) and 0 <= index < len(ready):
                    refused = ready.pop(index)
                    # What is to be removed and is not there is as it should be.
                    if not (refused.operation["op"] == "delete" and isinstance(error, NotFound)):
                        self._problem(refused.name, error.message)
                elif len(ready) == 1:
                    self._problem(ready.pop().name, error.message)
                elif isinstance(error, PayloadTooLarge):
                    middle = len(ready) // 2
                    self._send_batch(ready[:middle])
                    ready = ready[middle:]
                else:
                    raise
            else:
                self._committed(answer, _counts_of(ready))
                return

    def _send_large(self, file: SourceFile, unless_hash: Hash | None) -> None:
        try:
            if unless_hash is not None and hash_source(file.location) == unless_hash:
                self._unchanged()
                return
            self._stream(file)
        except SourceUnreadable as error:
            self._problem(file.location, str(error))
        except _FATAL:
            raise
        except SvcError as error:
            self._problem(file.location, error.message)

    def _stream(self, file: SourceFile) -> None:
        with open_source(file.location) as (descriptor, status):
            sent = content_hasher()

            def pieces() -> Iterable[bytes]:
                sent.reset()
                reader = DescriptorReader(descriptor, file.location, status.st_size)
                reader.rewind()
                while piece := reader.read(_PIECE):
                    sent.update(piece)
                    yield piece

            headers = put_headers(PutOptions(time_ms=self._time_of(file)), status.st_size)
            response = self._connections.request(
                "PUT", file_url("/files/", file.path), headers=headers, body=pieces
            )
            answer = json_of(self._connections, response)
            if isinstance(answer, dict) and answer.get("content_hash") != sent.hexdigest():
                raise InternalError(
                    "The server stored other bytes than it was sent.", path=format_path(file.path)
                )
            self._committed(answer, CommitCounts(1, status.st_size))

    def _time_of(self, file: SourceFile) -> int | None:
        return file.time_ms if self._options.keep_times else None

    def _committed(self, answer: Any, counts: CommitCounts) -> None:
        version = answer.get("version") if isinstance(answer, dict) else None
        with self._lock:
            self._listener.committed(version if isinstance(version, str) else None, counts)

    def _unchanged(self) -> None:
        with self._lock:
            self._listener.unchanged(1)

    def _problem(self, name: str, reason: str) -> None:
        with self._lock:
            self._listener.problem(name, reason)


def _timed(operation: dict[str, Any], time_ms: int | None) -> dict[str, Any]:
    if time_ms is not None:
        operation["created_at"] = operation["updated_at"] = time_ms
    return operation


def _counts_of(ready: list[_Ready]) -> CommitCounts:
    kinds = [one.operation["op"] for one in ready]
    return CommitCounts(
        kinds.count("put"),
        sum(one.size for one in ready),
        kinds.count("link"),
        kinds.count("mkdir"),
        kinds.count("delete"),
    )
