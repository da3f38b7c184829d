"""The hook of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_tasks.api import TaskType

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_task_types"]


@hookimpl
def svc_register_task_types(task_types: NamedRegistry[TaskType]) -> None:
    """Adds the task type ``count``."""
    from svc_hello.task import CountTask

    task_types.add(CountTask())
