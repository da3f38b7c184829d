"""Which task is next: types take turns, so that many tasks of one, or long ones, keep no other waiting.

A function of values; within a type the oldest task is first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from svc_tasks.api import Task

__all__ = ["next_task"]


def next_task(
    waiting: Sequence[Task],
    running: Sequence[Task],
    exclusive: Mapping[str, bool],
    last_turns: Mapping[str, int],
    resting: Collection[str] = (),
) -> Task | None:
    """Returns the task to start next, or None when none of those that wait, the oldest first, may be started.

    ``exclusive`` has the types that are in use, and whether one task of each runs at once; ``last_turns``
    when a task of a type was last started, greater is later; ``resting`` what shall not be started yet.
    """
    busy = Counter(task.task_type for task in running)
    best: Task | None = None
    best_rank = (0, 0)
    for task in waiting:
        name = task.task_type
        if name not in exclusive or task.id in resting or (exclusive[name] and busy[name]):
            continue
        rank = (busy[name], last_turns.get(name, 0))
        if best is None or rank < best_rank:
            best, best_rank = task, rank
    return best
