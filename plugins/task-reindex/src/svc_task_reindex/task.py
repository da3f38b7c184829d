"""The task type ``reindex``: files of a directory are brought into the index, batch by batch.

A batch is 50 files in alphabetical order. What is in step already, because the index follows commits by
itself, costs a look; what is not, or failed before, is indexed; ``force`` makes everything anew.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from svc_query.api import reindex_of
from svc_tasks.api import TaskContext, TaskStopped, TaskType

from svc.errors import InternalError, InvalidInput, NotFound, SvcError
from svc.plugin import Path, format_path, is_system_path, parse_path
from svc_task_reindex.records import renew_records, renew_system_records

__all__ = ["BATCH_FILES", "BREAKER_FAILURES", "REINDEX", "ReindexArguments", "ReindexTask"]

BATCH_FILES = 50
BREAKER_FAILURES = 10
_SHOWN_EVERY_SECONDS = 1.0
_MOST_NAMED = 20

_Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]


class ReindexArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a reindex.

    Attributes:
        path: the directory, or a file.
        metadata_only: whether only virtual fields (``@size``, ...) are indexed anew, and no file is read.
        force: whether files that are in step are indexed again, too, and file records of older versions are
            rewritten.
        index_flush_writes: the index is flushed after so many mutations.
        index_flush_ms: and after so many milliseconds.
    """

    path: str = "/"
    metadata_only: bool = False
    force: bool = False
    index_flush_writes: _Count = 262_144
    index_flush_ms: _Count = 30_000


class _Checkpoint(msgspec.Struct, kw_only=True):
    """Where a run can go on: everything up to ``after`` is in flushed indexes.

    Attributes:
        after: the last file that is done; None where none is.
        records_done: whether the file records of the system tree are done.
        before: the numbering of documents when the reindex began, where it makes all anew.
        since_ms: when it began, Unix milliseconds.
        done: files that are done.
        renewed: of them, those that were not in step.
        failed: of them, those that could not be indexed.
        consecutive: failures since the last file that could.
        records: file records that were rewritten.
        failures: some of the failures, by path.
    """

    after: str | None = None
    records_done: bool = False
    before: tuple[str, int] | None = None
    since_ms: int
    done: int = 0
    renewed: int = 0
    failed: int = 0
    consecutive: int = 0
    records: int = 0
    failures: dict[str, str] = {}


class ReindexTask(TaskType):
    """Indexes the files of a directory again."""

    name = "reindex"
    arguments = ReindexArguments

    def normalize(self, args: Mapping[str, Any], configuration: Any) -> dict[str, Any]:
        """See ``TaskType``."""
        given = super().normalize(args, configuration)
        path = parse_path(given["path"])
        if is_system_path(path):
            raise InvalidInput("Files of the system are not indexed.", field="path")
        return {**given, "path": format_path(path)}

    def run(self, context: TaskContext) -> Mapping[str, Any]:
        """Indexes them; a run that was interrupted goes on behind its checkpoint."""
        run = _Run(context, msgspec.convert(dict(context.args), ReindexArguments))
        try:
            return run.go()
        finally:
            run.close()


REINDEX = ReindexTask()


class _Run:
    def __init__(self, context: TaskContext, arguments: ReindexArguments) -> None:
        self._context = context
        self._arguments = arguments
        self._path = parse_path(arguments.path)
        self._index = reindex_of(context.database)
        self._total = 0
        self._shown = 0.0
        self._mutations = 0
        self._flushed = time.monotonic()
        saved = context.checkpoint
        self._is_new = saved is None
        now_ms = time.time_ns() // 1_000_000
        self._at = _Checkpoint(since_ms=now_ms) if saved is None else msgspec.convert(saved, type=_Checkpoint)

    def go(self) -> Mapping[str, Any]:
        arguments, at = self._arguments, self._at
        if self._path and self._context.database.at().get(self._path) is None:
            raise NotFound(f"Nothing is at {arguments.path}.", path=arguments.path)
        if arguments.force and self._is_new:
            at.before = self._index.numbering()
        total = self._index.count(self._path)
        self._context.begin(max(total, at.done), f"indexing {arguments.path}", done=at.done)
        self._total = total
        self._show()
        try:
            if arguments.force and not self._path and not at.records_done:
                at.records += renew_system_records(self._context, BATCH_FILES)
                at.records_done = True
            while paths := self._index.next_files(self._path, _path(at.after), BATCH_FILES):
                self._batch(paths)
                self._show()
                self._context.advance(len(paths))
        except TaskStopped:
            self._checkpoint()
            raise
        self._flush()
        return self._result()

    def _batch(self, paths: list[Path]) -> None:
        context, at, arguments = self._context, self._at, self._arguments
        failures: dict[Path, str] = {}
        if arguments.force:
            at.records += renew_records(context, paths, failures)
        outcome = self._index.renew(
            paths,
            before=at.before,
            unread=arguments.metadata_only,
            should_stop=context.should_stop,
            meanwhile=self._show,
        )
        if not outcome.is_whole:
            context.check()  # ends the run, and the batch is done again
        failures |= outcome.failures
        at.renewed += outcome.renewed
        self._mutations += outcome.mutations
        for path in paths:
            self._count(path, failures.get(path))
        at.after = format_path(paths[-1])
        elapsed_ms = (time.monotonic() - self._flushed) * 1000
        if self._mutations >= arguments.index_flush_writes or elapsed_ms >= arguments.index_flush_ms:
            self._checkpoint()

    def _count(self, path: Path, failure: str | None) -> None:
        at = self._at
        at.done += 1
        if failure is None:
            at.consecutive = 0
            return
        at.failed += 1
        at.consecutive += 1
        if len(at.failures) < _MOST_NAMED:
            at.failures[format_path(path)[:400]] = failure[:300]
        self._context.logger.info("%s could not be indexed: %s", format_path(path), failure)
        if at.consecutive >= BREAKER_FAILURES:
            self._flush()
            raise InternalError(f"circuit breaker: {BREAKER_FAILURES} consecutive indexing failures")

    def _checkpoint(self) -> None:
        """Flushes, then says that all until here is done: never the other way round."""
        self._flush()
        self._context.save_checkpoint(msgspec.to_builtins(self._at))

    def _flush(self) -> None:
        self._index.flush(lambda: False)
        self._mutations, self._flushed = 0, time.monotonic()

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._shown >= _SHOWN_EVERY_SECONDS:
            self._shown = now
            name, since_ms = self._context.task_id, self._at.since_ms
            total = max(self._total, self._at.done)
            self._index.show(name, self._path, self._at.done, total, since_ms)

    def _result(self) -> Mapping[str, Any]:
        at = self._at
        return {
            "path": self._arguments.path,
            "files": at.done,
            "indexed": at.renewed,
            "failed": at.failed,
            "records_rewritten": at.records,
            "failures": at.failures,
        }

    def close(self) -> None:
        """Lets queries say that nothing is reindexed any more, and others work on the index."""
        # Where that cannot be said now, silence says so in a minute.
        with contextlib.suppress(SvcError):
            self._index.hide(self._context.task_id)
        self._index.close()


def _path(text: str | None) -> Path | None:
    return None if text is None else parse_path(text)
