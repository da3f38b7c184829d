"""What the operations on tasks and schedules take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from svc.plugin import Confidential

__all__ = [
    "Json",
    "NewSchedules",
    "RemovedSchedule",
    "Schedule",
    "ScheduleChange",
    "ScheduleList",
    "ShownSchedule",
    "Task",
    "TaskList",
    "TaskProgress",
    "TaskQuery",
    "TaskStatus",
]

Json: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None
"""What JSON can hold."""

TaskStatus: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]

RunsOn: TypeAlias = Literal["each_node", "one_node"]

Time = Annotated[int, Meta(description="Unix milliseconds.")]


class TaskProgress(Struct, frozen=True, kw_only=True):
    """How far a running task is; held in the state directory, not in the database.

    Attributes:
        task_id: the task.
        task_type: name of its type.
        progress: 0.0 to 1.0.
        eta_ms: milliseconds that it will still take, by the last ten batches; None while nobody can say.
        indexed_count: items that are done.
        total_count: items in all; 0 while nobody knows.
        message: a line for people, or None.
    """

    task_id: str
    task_type: str
    progress: float = 0.0
    eta_ms: int | None = None
    indexed_count: int = 0
    total_count: int = 0
    message: str | None = None


class Task(Struct, frozen=True, kw_only=True):
    """A task; its progress only while it runs.

    ``attempts`` says how often its process died since it last made progress, ``cancel_requested`` whether it
    was cancelled and has not ended yet.
    """

    id: str
    task_type: str
    status: TaskStatus
    args: Annotated[dict[str, Any], Meta(description="Its arguments, defaults filled in.")] = {}
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    actor: Annotated[str | None, Meta(description="Who asked for it; null: the server.")] = None
    schedule_id: str | None = None
    attempts: int = 0
    cancel_requested: bool = False
    error: str | None
    result: Any
    progress: TaskProgress | UnsetType = UNSET

    @property
    def is_finished(self) -> bool:
        """Whether it is completed, failed or cancelled."""
        return self.status in {"completed", "failed", "cancelled"}


class TaskList(Struct, frozen=True):
    """Tasks, the newest first."""

    tasks: list[Task]


class TaskQuery(Struct, frozen=True):
    """Which tasks are listed."""

    task_type: Annotated[str | None, Meta(description="Those of this type.")] = field(
        default=None, name="type"
    )
    status: Annotated[str | None, Meta(description="Those that are so.")] = None


class Schedule(Confidential, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule.

    Attributes:
        id: 1 to 100 letters, digits, dots, hyphens and underscores, the first a letter or digit; unique.
        schedule: five fields: minute, hour, day of month, month, day of week.
        args: arguments of the tasks.
        enabled: whether tasks are enqueued.
        runs_on: of a cluster, whether each node enqueues its own tasks, as where it is left out, or one does.
    """

    shown = ("id", "task_type", "schedule", "enabled", "runs_on")

    id: str
    task_type: str
    schedule: str
    args: dict[str, Any] = field(default_factory=dict)
    enabled: bool = True
    runs_on: RunsOn | UnsetType = UNSET

    @property
    def is_of_one_node(self) -> bool:
        """Whether one node of a cluster enqueues its tasks."""
        return self.runs_on == "one_node"


class ScheduleChange(Confidential, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shall be different of a schedule; what is left out stays."""

    shown = ("task_type", "schedule", "enabled", "runs_on")

    task_type: str | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    args: dict[str, Any] | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    runs_on: RunsOn | UnsetType = UNSET


class ShownSchedule(Schedule, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A schedule with the next three times, its last run, and whether this node runs it."""

    next_runs: Annotated[list[int], Meta(description="Unix milliseconds.")]
    last_run_at: Time | None = None
    last_task_id: str | None = None
    runs_here: bool = True


class ScheduleList(Struct, frozen=True):
    """Schedules, in the order of the file."""

    schedules: list[ShownSchedule]


class RemovedSchedule(Schedule, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A schedule that was removed."""

    deleted: Literal[True]


class NewSchedules(Struct, frozen=True):
    """The schedules of a file that was stored."""

    schedules: list[Schedule]
