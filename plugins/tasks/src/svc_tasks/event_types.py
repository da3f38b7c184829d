"""``tasks_started``, ``tasks_completed`` and ``tasks_failed``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from svc_events.api import EventData, EventType

from svc_tasks.answers import task_answer
from svc_tasks.api import TaskChange
from svc_tasks.changes import changes_of

if TYPE_CHECKING:
    from svc_events.api import FeedCommit

__all__ = ["TaskEvents"]

_NAMES = {"running": "tasks_started", "completed": "tasks_completed", "failed": "tasks_failed"}


class TaskEvents(EventType):
    """What becomes of tasks; the payload is the task object. Root's, as the routes of tasks are."""

    names = ("tasks_started", "tasks_completed", "tasks_failed")
    seen_by = "root"

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData | None]:
        """See ``EventType``. Of a task whose record is gone, the id and the status are known."""
        del configuration
        for change in changes_of(commit):
            yield None if change is None else _event(change)


def _event(change: TaskChange) -> EventData | None:
    name = _NAMES.get(change.status)
    if name is None:
        return None
    if change.task is None:
        return EventData(name, {"id": change.task_id, "status": change.status})
    return EventData(name, msgspec.to_builtins(task_answer(change.task)))
