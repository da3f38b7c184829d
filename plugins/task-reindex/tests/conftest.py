"""A database with the index, and a context as the driver of tasks hands it to a run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from svc_query.testing.indexed_database import Indexed, Lines, Source
from svc_task_reindex.task import REINDEX
from svc_tasks.api import TaskCancelled, TaskStopped

FIELD = {"name": "title", "type": "exact", "source": ["title"]}


class Context:
    """What a run is handed; keeps what it was told, and can end the run between batches."""

    def __init__(self, database: Any, args: dict[str, Any], checkpoint: Any = None) -> None:
        self.task_id = "0" * 32
        self.args = args
        self.database = database
        self.configuration = None
        self.logger = logging.getLogger("test")
        self.actor = None
        self.checkpoint = checkpoint
        self.saved: list[Any] = []
        self.batches: list[int] = []
        self.begun: list[tuple[int, int]] = []
        self.ends: BaseException | None = None
        self.end_after = 1 << 30
        self.on_batch: Callable[[], None] = lambda: None

    def begin(self, total: int, message: str | None = None, *, done: int = 0) -> None:
        self.begun.append((total, done))

    def advance(self, count: int, message: str | None = None) -> None:
        self.batches.append(count)
        self.on_batch()
        if len(self.batches) >= self.end_after and self.ends is not None:
            raise self.ends

    def save_checkpoint(self, value: Any) -> None:
        self.saved.append(json.loads(json.dumps(value)))

    def check(self) -> None:
        pass

    def is_cancelled(self) -> bool:
        return isinstance(self.ends, TaskCancelled)

    def should_stop(self) -> bool:
        return False


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def indexed(tmp_path: Path, source: Source) -> Iterator[Indexed]:
    opened = Indexed(tmp_path / "reindex.svcdb", source)
    opened.reader.catch_up()  # so that it follows all commits, as in a server
    yield opened
    opened.close()


class Runner:
    """Runs the task type on a database."""

    def __init__(self, indexed: Indexed) -> None:
        self.indexed = indexed

    def context(self, checkpoint: Any = None, **args: Any) -> Context:
        return Context(self.indexed.database, REINDEX.normalize(args, None), checkpoint)

    def __call__(self, context: Context | None = None, **args: Any) -> Any:
        return REINDEX.run(context or self.context(**args))

    def until(self, batches: int, ends: BaseException, **args: Any) -> Context:
        """A run that is ended after so many batches."""
        context = self.context(**args)
        context.ends, context.end_after = ends, batches
        with pytest.raises(type(ends)):
            REINDEX.run(context)
        return context


@pytest.fixture
def run(indexed: Indexed) -> Runner:
    return Runner(indexed)


__all__ = ["FIELD", "Context", "Lines", "Runner", "TaskCancelled", "TaskStopped"]
