"""A change of ``indexes.json`` makes a task for its directory, whoever made the change and however."""

from __future__ import annotations

from collections.abc import Iterable

from svc_query.api import reindex_of
from svc_tasks.api import enqueue

from svc.plugin import BackgroundJob, JobContext, Path, format_path
from svc_task_reindex.task import REINDEX

__all__ = ["ConfigurationsJob", "directories_to_index"]

_MOST_TASKS = 20


class ConfigurationsJob(BackgroundJob):
    """Enqueues a task for each directory whose configuration has changed.

    The index notes such directories in the transaction in which it takes the change in. They are forgotten
    when their tasks are enqueued, so that none is lost; the queue takes one that comes twice once.
    """

    name = "reindex-configurations"
    interval_s = 0.5

    def run(self, context: JobContext) -> None:
        """Enqueues what has come since."""
        index = reindex_of(context.database)
        changed = index.configured()
        if not changed:
            return
        head = context.database.at()
        for directory in directories_to_index(changed):
            if directory and head.get(directory) is None:
                continue
            metadata_only = not index.reads_files(directory)
            args = {"path": format_path(directory), "metadata_only": metadata_only}
            enqueue(context.database, REINDEX, args, configuration=context.configuration)
        index.forget_configured(changed)


def directories_to_index(changed: Iterable[Path]) -> list[Path]:
    """Returns the directories that tasks are for: one below another comes with it, and very many as one.

    Args:
        changed: those whose configuration has changed.
    """
    found: list[Path] = []
    for directory in sorted(changed):
        if not any(directory[: len(above)] == above for above in found):
            found.append(directory)
    if len(found) > _MOST_TASKS:
        first, last = found[0], found[-1]  # of all in order: what these share, all share
        depth = next((at for at, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), 0)
        return [first[:depth]]
    return found
