"""The task type ``count``."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
from svc_tasks.api import TaskContext, TaskType

from svc.plugin import format_path, parse_path

__all__ = ["CountTask"]

BATCH = 100


class CountArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments.

    Attributes:
        path: the directory.
    """

    path: str = "/"


class CountTask(TaskType):
    """Counts the files below a directory, and their bytes."""

    name = "count"
    arguments = CountArguments

    def normalize(self, args: Any, configuration: Any) -> dict[str, Any]:
        """Two spellings of one path are the same work; a path that is none is refused here."""
        return {"path": format_path(parse_path(super().normalize(args, configuration)["path"]))}

    def run(self, context: TaskContext) -> dict[str, Any]:
        """Works batch by batch: does the work, saves how far it is, says so. It may be killed anywhere."""
        path = parse_path(context.args["path"])
        version = context.database.at()
        done = context.checkpoint or {"files": 0, "bytes": 0, "after": None}
        context.begin(version.totals(path).files, done=done["files"])
        while True:
            after = None if done["after"] is None else parse_path(done["after"])
            batch = list(islice(version.walk(path, after=after, files_only=True), BATCH))
            if not batch:
                return {"files": done["files"], "bytes": done["bytes"]}
            done = {
                "files": done["files"] + len(batch),
                "bytes": done["bytes"] + sum(entry.size for _, entry in batch),
                "after": format_path(batch[-1][0]),
            }
            context.save_checkpoint(done)
            context.advance(len(batch), done["after"])
