"""What a task type is made of, and how other plugins enqueue tasks: the public module of the driver.

An extension imports this module and nothing else of the plugin. A task is a piece of work in the background
of one database: a record says what is to be done, and the background process starts a process that does it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from svc.plugin import Family, NamedRegistry, hookspec
from svc_tasks.models import Json, TaskProgress, TaskStatus

if TYPE_CHECKING:
    from svc_events.api import FeedCommit

    from svc.plugin import Database, Extension, PluginContext

__all__ = [
    "FAMILIES",
    "NODE_CHOICES",
    "TASK_TYPES",
    "Json",
    "NodeChoice",
    "Task",
    "TaskCancelled",
    "TaskChange",
    "TaskContext",
    "TaskEnded",
    "TaskProgress",
    "TaskStatus",
    "TaskStopped",
    "TaskType",
    "enqueue",
    "find_task",
    "list_tasks",
    "progress_of",
    "runs_here",
    "task_changes",
]

# -- records ---------------------------------------------------------------------------------------


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as its record in the system tree says, a file of JSON at ``tasks/records/<id>``.

    Times are Unix milliseconds.

    Attributes:
        id: 32 hexadecimal digits; those made later are greater.
        task_type: name of its type.
        status: where it stands.
        args: what ``TaskType.normalize`` returned.
        created_at: when it was enqueued.
        started_at: when its latest run began, None before.
        finished_at: when it was completed, failed or cancelled.
        actor: id of the user who asked for it; None when the server did.
        error: why it failed, one line.
        result: what its run returned.
        checkpoint: what the run saved last, from which the next one goes on.
        attempts: runs that were begun and did not end by themselves: the process died.
        schedule_id: the schedule that it came from.
        cancel_requested_at: when somebody asked to cancel it while it ran.
    """

    id: str
    task_type: str
    status: TaskStatus
    args: dict[str, Any]
    created_at: int
    started_at: int | None = None
    finished_at: int | None = None
    actor: str | None = None
    error: str | None = None
    result: Json = None
    checkpoint: Json = None
    attempts: int = 0
    schedule_id: str | None = None
    cancel_requested_at: int | None = None

    @property
    def is_finished(self) -> bool:
        """Whether it is completed, failed or cancelled: no run will change it any more."""
        return self.status in {"completed", "failed", "cancelled"}


class TaskChange(msgspec.Struct, frozen=True):
    """A task that got another status by a commit.

    Attributes:
        task_id: the task.
        status: what it is since then.
        task: its record as of then, as far as it is known; None where a collection took it.
    """

    task_id: str
    status: TaskStatus
    task: Task | None


# -- task types ------------------------------------------------------------------------------------


class TaskEnded(BaseException):
    """The run of a task shall end now. Not an ``Exception``: what handles failures must not swallow it."""


class TaskCancelled(TaskEnded):
    """Somebody cancelled the task; it will not go on."""


class TaskStopped(TaskEnded):
    """The process ends, or another type's turn has come; a later run goes on from the last checkpoint."""


class TaskContext(Protocol):
    """What the run of a task is handed. Only the thread that calls ``run`` may use it."""

    @property
    def task_id(self) -> str:
        """The task."""

    @property
    def args(self) -> Mapping[str, Any]:
        """What ``normalize`` returned when the task was enqueued."""

    @property
    def database(self) -> Database:
        """The database, open for writing in the process of this task alone; the driver closes it.

        Views of the plugin that added the type, and of those that it needs, can be read.
        """

    @property
    def configuration(self) -> Any:
        """The validated settings of the plugin that added the type, or None."""

    @property
    def logger(self) -> logging.Logger:
        """The logger of the plugin that added the type; what it says reaches the log of the server."""

    @property
    def actor(self) -> str | None:
        """Who asked for the task; commits of the run are made in this name. None is the server itself."""

    @property
    def checkpoint(self) -> Json:
        """What ``save_checkpoint`` was last given, in this run or one before; None when there is none."""

    def begin(self, total: int, message: str | None = None, *, done: int = 0) -> None:
        """Says how much there is to do. May be called again when more is known, or for another phase.

        Args:
            total: items in all; 0 when nobody knows.
            message: a line for people.
            done: items that earlier runs have done.
        """

    def advance(self, count: int, message: str | None = None) -> None:
        """Says that one batch is done, and ends the run here when it shall end.

        Call it between batches, where everything so far may stand or be done again. The remaining time is
        computed from the time between the calls.

        Args:
            count: items of the batch.
            message: a line for people; None keeps the one that is shown.

        Raises:
            TaskCancelled: the task was cancelled.
            TaskStopped: the run shall end, and another will go on.
        """

    def save_checkpoint(self, value: Json) -> None:
        """Keeps what the next run needs to go on from here; durable when it returns. Blocks: it is a commit.

        Save only what is durable itself: after a crash at any point the next run must skip nothing.
        At most 64 KiB as JSON.

        Raises:
            InvalidInput: it is not JSON, or too large.
        """

    def check(self) -> None:
        """Ends the run here when it shall end, as ``advance`` does; for work within a batch. Cheap.

        Raises:
            TaskCancelled: the task was cancelled.
            TaskStopped: the run shall end, and another will go on.
        """

    def is_cancelled(self) -> bool:
        """Whether the task was cancelled. Cheap."""

    def should_stop(self) -> bool:
        """Whether the run shall end, cancelled or not: then call ``check`` when all is in order. Cheap."""


class TaskType(ABC):
    """A kind of work in the background. Stateless: one object serves all databases of a process.

    Attributes:
        name: what requests and schedules call it: lower-case words joined by hyphens, as ``reindex``.
        arguments: a msgspec struct of its arguments, which checks them and fills in defaults; None when it
            takes none, or overrides ``normalize``.
        exclusive: whether tasks of the type run one after another.
        trigger: whether ``POST /system/tasks/<name>`` and schedules may enqueue it; False leaves it to the
            plugins that call ``enqueue``.
    """

    name: ClassVar[str]
    arguments: ClassVar[type[msgspec.Struct] | None] = None
    exclusive: ClassVar[bool] = True
    trigger: ClassVar[bool] = True

    def normalize(self, args: Mapping[str, Any], configuration: Any) -> dict[str, Any]:
        """Checks the arguments of a task and fills in defaults. Called in requests; does not block.

        Two tasks of which this returns the same are the same work: the later is not enqueued while the
        earlier waits or runs. What it returns is stored and shown, so it holds no secret.

        Args:
            args: the members that a caller gave, as JSON has them.
            configuration: the settings of the plugin that added the type, in this database.

        Raises:
            InvalidInput: an argument is not as it should be; ``field`` names it.
        """
        from svc_tasks.arguments import validated_arguments

        return validated_arguments(self, args)

    def check(self, args: Mapping[str, Any], database: Database) -> None:
        """Refuses arguments that make no sense for a database or where it lies; by default none.

        Called in requests, when a task is enqueued and when a schedule is stored, so that nobody waits for
        the night to hear of a mistake. It may read a little, and look at the disk; ``run`` relies on nothing
        of it, since much can change before it is called.

        Args:
            args: what ``normalize`` returned.
            database: the open database.

        Raises:
            SvcError: an argument makes no sense; ``field`` names it.
        """

    @abstractmethod
    def run(self, context: TaskContext) -> Mapping[str, Any] | None:
        """Does the work, and returns what the record shall say of it, as JSON.

        Called in a process of its own, at low priority and with bounded memory; it may block and take hours.
        An exception makes the task ``failed``, with its message as ``error``. A kill can end it at any point;
        another process then calls it again with the last checkpoint, and it may find its work done already.
        It is killed, and failed, when it calls neither ``advance`` nor ``check`` nor anything else of the
        context for a time that is a setting of ``tasks``.
        """


class NodeChoice(ABC):
    """Says whether this server is the one of several that does what one of them shall do. Stateless.

    Attributes:
        name: lower-case words joined by hyphens.
    """

    name: ClassVar[str]

    @abstractmethod
    def runs_here(self, context: PluginContext) -> bool:
        """Returns whether schedules that one node runs (``runs_on``) are to run on this one.

        Called in the background process before each look at schedules, and in requests that show them. It
        must answer at once. Where several plugins have a choice, all of them have to say yes; without any the
        answer is yes.
        """


@hookspec
def svc_register_task_types(task_types: NamedRegistry[TaskType]) -> None:
    """Adds task types: ``task_types.add(MyTask())``.

    Called at boot, in the processes that serve databases, and in those that run tasks.
    """


@hookspec
def svc_register_node_choices(node_choices: NamedRegistry[NodeChoice]) -> None:
    """Adds choices of the node that runs schedules: ``node_choices.add(MyChoice())``.

    Called at boot, in the processes that serve databases.
    """


def _is_task_type(thing: object) -> str | None:
    from svc_tasks.arguments import fault_of_task_type

    return fault_of_task_type(thing)


TASK_TYPES: Family[TaskType] = Family("task_types", "task type", _is_task_type)
NODE_CHOICES: Family[NodeChoice] = Family("node_choices", "node choice", NodeChoice)
FAMILIES = (TASK_TYPES, NODE_CHOICES)


def runs_here(choices: Mapping[str, Extension[NodeChoice]]) -> bool:
    """Returns whether schedules that one node runs are to run on this one."""
    return all(choice.value.runs_here(choice.context) for choice in choices.values())


# -- the queue, for other plugins ------------------------------------------------------------------


def enqueue(
    database: Database,
    task_type: TaskType,
    args: Mapping[str, Any],
    *,
    configuration: Any = None,
    actor: str | None = None,
    schedule_id: str | None = None,
) -> Task:
    """Enqueues a task, or returns the one that waits or runs already if it is the same. Blocks: a commit.

    Any process may call it; the background process begins with the task within a second.

    Args:
        database: the open database.
        task_type: the type; a plugin passes the object that it adds.
        args: arguments, which are normalized here.
        configuration: the settings of the plugin that added the type, as its context has them.
        actor: id of the user who asks; None for the server itself.
        schedule_id: the schedule that it comes from.

    Raises:
        InvalidInput: the arguments are not as the type wants them, or the type failed to check them.
        SvcError: what ``TaskType.check`` raised.
        ServiceUnavailable: so many tasks wait that no more is taken.
    """
    from svc_tasks.queue import Queue

    return Queue(database).enqueue(
        task_type, args, configuration=configuration, actor=actor, schedule_id=schedule_id
    )


def find_task(database: Database, task_id: str) -> Task:
    """Returns a task. Reads the database.

    Raises:
        NotFound: there is none of this id, or none any more.
    """
    from svc_tasks.queue import Queue

    return Queue(database).get(task_id)


def list_tasks(database: Database, task_type: str | None = None) -> list[Task]:
    """Returns the tasks of one type, or of all, the newest first. Reads the database."""
    from svc_tasks.queue import Queue

    return Queue(database).tasks(task_type)


def progress_of(database: Database) -> dict[str, TaskProgress]:
    """Returns how far the running tasks are, by id, as their runner last said. Reads a small file."""
    from svc_tasks.state import runner_file

    said = runner_file(database.state_directory).read()
    return {} if said is None else {one.task_id: one for one in said[0].tasks}


def task_changes(commit: FeedCommit) -> Iterator[TaskChange | None]:
    """Yields what a commit did to tasks, for event types; None for what changed no status.

    How many it yields follows from the record of the commit alone. Blocks as reads do.

    Args:
        commit: what an event type of ``svc_events.api`` is handed.
    """
    from svc_tasks.changes import changes_of

    return changes_of(commit)
