"""What a commit did to tasks, as event types ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from svc.errors import NotFound
from svc_tasks.api import Task, TaskChange, find_task
from svc_tasks.queue import begin_message
from svc_tasks.records import ACTIVE, RECORDS

if TYPE_CHECKING:
    from svc_events.api import FeedCommit, SystemChange

__all__ = ["changes_of"]


def changes_of(commit: FeedCommit) -> Iterator[TaskChange | None]:
    """See ``svc_tasks.api.task_changes``."""
    from svc_events.api import RecordGone

    for found in commit.system_changes:
        path = found.change.path
        if found.change.kind != "put" or path[:-1] != RECORDS:
            continue
        try:
            after = commit.record(path, Task)
            before = commit.record(path, Task, before=True)
        except RecordGone:
            yield _from_what_is_left(commit, found)
            continue
        status_before = None if before is None else before.status
        if after is None or after.status == status_before:
            yield None
        else:
            yield TaskChange(after.id, after.status, after)


def _from_what_is_left(commit: FeedCommit, found: SystemChange) -> TaskChange | None:
    """Works it out from the commit and from the record as it is now, where there still is one."""
    task_id = found.change.path[-1]
    try:
        task: Task | None = find_task(commit.database, task_id)
    except NotFound:
        task = None
    if found.transaction.message == begin_message(task_id):
        if task is not None:
            task = msgspec.structs.replace(
                task, status="running", finished_at=None, error=None, result=None, cancel_requested_at=None
            )
        return TaskChange(task_id, "running", task)
    # Who finishes a task takes away its mark among those that wait or run.
    is_end = any(
        change.kind == "delete" and change.system and change.path[:-1] == ACTIVE
        for change in found.transaction.changes
    )
    if is_end and task is not None and task.is_finished:
        return TaskChange(task_id, task.status, task)
    return None
