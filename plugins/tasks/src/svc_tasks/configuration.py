"""The settings of the plugin in one database."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["TasksConfiguration"]

Seconds = Annotated[float, msgspec.Meta(ge=0.1, le=7 * 86_400)]


class TasksConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the plugin.

    Attributes:
        tasks_at_once: most tasks that run at once.
        maximum_attempts: how often the process of a task may die before the task counts as failed.
        task_memory: bytes of memory that the process of a task may have for its data, without the files that
            it maps.
        cancel_seconds: a task that was cancelled and does not end within this time is killed.
        stall_seconds: a task that gives no sign of life for this time is killed, and failed.
        turn_seconds: a task that has saved a checkpoint gives way after this time when another type waits.
        timezone: the time zone that schedules are meant in, by its name in the IANA database.
    """

    tasks_at_once: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    maximum_attempts: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 5
    task_memory: Annotated[int, msgspec.Meta(ge=64 << 20, le=1 << 40)] = 2 << 30
    cancel_seconds: Seconds = 10.0
    stall_seconds: Seconds = 1_800.0
    turn_seconds: Seconds = 300.0
    timezone: str = "UTC"
