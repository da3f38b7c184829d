"""Background work: task types, and what a running task may use.

A worker in the background process runs tasks; their state is in the system tree. A task may be run again
from its last checkpoint after a crash, so each step it takes must be one that can be taken twice.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["TaskCancelled", "TaskContext", "TaskType"]


class TaskCancelled(Exception):
    """Ends a task that was cancelled. ``TaskContext.check_cancelled`` raises it; a task lets it pass."""


class TaskContext(Protocol):
    """What a running task is handed. It may be used by the task's own thread only."""

    @property
    def task_id(self) -> str:
        """The task's identifier."""

    @property
    def database(self) -> Database:
        """The database that the task works on."""

    @property
    def arguments(self) -> Any:
        """The validated arguments: an instance of the task type's ``arguments``."""

    @property
    def configuration(self) -> Any:
        """The validated settings of the plugin that brought the task type, or None."""

    @property
    def logger(self) -> logging.Logger:
        """A logger whose lines carry the task's id."""

    @property
    def checkpoint(self) -> Mapping[str, Any] | None:
        """What the last run of this task saved; None at its first run."""

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Stores where to go on after a crash. Durable when it returns; may block."""

    def report(self, done: int, total: int, message: str | None = None) -> None:
        """Tells how far the task is, in items. Cheap; may be called for every item."""

    def check_cancelled(self) -> None:
        """Raises ``TaskCancelled`` when someone asked the task to stop. Called between batches."""


class TaskType(ABC):
    """A kind of background work, such as ``gc`` or ``reindex``.

    Attributes:
        name: what schedules and routes call it.
        arguments: struct of its arguments; defaults make them optional.
        events: stem of the extra events of this type: ``gc`` gives ``gc_started`` and ``gc_completed``.
        exclusive: whether at most one task of this type may run at a time, whatever its arguments.
    """

    name: ClassVar[str]
    arguments: ClassVar[type[msgspec.Struct]]
    events: ClassVar[str | None] = None
    exclusive: ClassVar[bool] = True

    def check(self, arguments: Any) -> None:
        """Refuses arguments that are well formed and still make no sense, before the task is queued.

        Raises:
            InvalidInput: names the argument.
        """

    @abstractmethod
    def run(self, context: TaskContext) -> Mapping[str, Any]:
        """Does the work in a thread of the background process, and returns the result to record.

        Raises:
            TaskCancelled: the task stopped because it was asked to.
            SvcError: the task failed; the message is shown to people.
        """
