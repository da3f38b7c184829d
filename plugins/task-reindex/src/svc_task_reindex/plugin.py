"""The hooks of the plugin: its task type, and the job that enqueues tasks by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_tasks.api import TaskType

    from svc.plugin import JobRegistry, NamedRegistry

__all__ = ["svc_background", "svc_register_task_types"]


@hookimpl
def svc_register_task_types(task_types: NamedRegistry[TaskType]) -> None:
    """Adds ``reindex``."""
    from svc_task_reindex.task import REINDEX

    task_types.add(REINDEX)


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the job that follows changes of ``indexes.json``."""
    from svc_task_reindex.following import ConfigurationsJob

    jobs.add(ConfigurationsJob())
