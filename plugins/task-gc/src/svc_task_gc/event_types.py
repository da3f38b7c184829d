"""``gc_started`` and ``gc_completed``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from svc_events.api import EventData, EventType
from svc_tasks.api import TaskChange, task_changes

if TYPE_CHECKING:
    from svc_events.api import FeedCommit

__all__ = ["GcEvents"]

_TYPE = "gc"


class GcEvents(EventType):
    """Collections that run as tasks: their begin, and their report. Root's, as the tasks are."""

    names = ("gc_started", "gc_completed")
    seen_by = "root"

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData | None]:
        """See ``EventType``. Of a task whose record is gone nobody knows the type: it is left out."""
        del configuration
        for change in task_changes(commit):
            yield None if change is None else _event(change)


def _event(change: TaskChange) -> EventData | None:
    task = change.task
    if task is None or task.task_type != _TYPE:
        return None
    if change.status == "running":
        return EventData(
            "gc_started",
            {"task_id": task.id, "args": task.args, "started_at": task.started_at, "actor": task.actor},
        )
    if change.status == "completed" and isinstance(task.result, dict):
        return EventData("gc_completed", task.result)
    return None
