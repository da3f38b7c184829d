"""The task type ``gc``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from svc_tasks.api import TaskContext, TaskType

from svc_task_gc.collecting import collect_garbage

__all__ = ["GcArguments", "GcTask"]

_MESSAGES = {
    "queue": "waiting for another collection to end",
    "mark": "marking what is needed",
    "scan": "looking for what is not",
    "wait": "waiting for those who look at it",
    "sweep": "giving its space back",
}


class GcArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a collection.

    Attributes:
        dry_run: only count, change nothing.
        keep_days: instead of that of the settings; None takes theirs.
    """

    dry_run: bool = False
    keep_days: Annotated[float, msgspec.Meta(ge=0, le=100_000)] | None = None


class GcTask(TaskType):
    """Collects garbage. A run that was killed has lost nothing: the next one begins anew."""

    name = "gc"
    arguments = GcArguments

    def run(self, context: TaskContext) -> Mapping[str, Any]:
        """See ``TaskType``. The result is the report."""

        def report(phase: str, done: int, total: int) -> None:
            context.begin(total, _MESSAGES[phase], done=done)

        found = collect_garbage(
            context.database,
            context.configuration,
            dry_run=context.args["dry_run"],
            keep_days=context.args["keep_days"],
            actor=context.actor,
            progress=report,
            should_stop=context.should_stop,
            waits=True,
        )
        if context.should_stop():
            context.check()
        context.logger.info(
            "Garbage collection: %d of %d objects were not needed, %d bytes reclaimed",
            found["garbage_entries"],
            found["garbage_entries"] + found["live_entries"],
            found["reclaimed_bytes"],
        )
        return found
