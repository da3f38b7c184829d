"""A database to verify, and a context as the driver of tasks hands it to a run."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from svc_task_verify.task import VerifyTask

from svc.plugin import Database


class Context:
    """What a run is handed; does something at each step."""

    def __init__(self, database: Database, checkpoint: Any = None, **args: Any) -> None:
        self.task_id = "0" * 32
        self.args = VerifyTask().normalize(args, None)
        self.database = database
        self.configuration = None
        self.logger = logging.getLogger("test")
        self.actor = None
        self.checkpoint = checkpoint
        self.begun: list[tuple[int, int]] = []
        self.begun_at: list[float] = []
        self.counts: list[int] = []
        self.on_step: Callable[[], None] = lambda: None

    def begin(self, total: int, message: str | None = None, *, done: int = 0) -> None:
        self.begun.append((total, done))
        self.begun_at.append(time.monotonic())

    def advance(self, count: int, message: str | None = None) -> None:
        self.counts.append(count)
        self.on_step()

    def save_checkpoint(self, value: Any) -> None:
        text = json.dumps(value)
        assert len(text) <= 65_536
        self.checkpoint = json.loads(text)

    def check(self) -> None:
        pass


@pytest.fixture
def context(database: Database) -> Callable[..., Context]:
    """Makes a context for the database: of a checkpoint, and of arguments."""

    def make(checkpoint: Any = None, **args: Any) -> Context:
        return Context(database, checkpoint, **args)

    return make


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(database: Database) -> Run:
    """Runs the task, as fast as it goes unless a rate is given."""

    def start(context: Context | None = None, **args: Any) -> dict[str, Any]:
        return VerifyTask().run(context or Context(database, **({"bytes_per_second": 1 << 40} | args)))

    return start
