"""File records of older versions are rewritten, before their files are indexed.

Each batch is a commit. A file that is changed in between has a record of the present version by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from svc_tasks.api import TaskContext

from svc.errors import PreconditionFailed, SvcError
from svc.plugin import Entry, EntryKind, Path, files_with_records, format_path

__all__ = ["renew_records", "renew_system_records"]

_MESSAGE = "reindex: file records of the present version"


def renew_records(context: TaskContext, paths: Sequence[Path], failures: dict[Path, str]) -> int:
    """Rewrites the records of some files of HEAD that need it; returns how many. Blocks for a commit.

    Args:
        context: of the task.
        paths: the files.
        failures: takes why a file could not be read, by path.
    """
    version = context.database.at()
    found = ((path, version.get(path)) for path in paths)
    files = [(path, entry) for path, entry in found if entry is not None and entry.kind is EntryKind.FILE]
    return _renew(context, files, failures, system=False)


def renew_system_records(context: TaskContext, batch: int) -> int:
    """Rewrites those of the files of the system tree; returns how many. Blocks for a commit for each batch.

    Args:
        context: of the task, which may end it between batches.
        batch: files of a batch.
    """
    renewed = 0
    failures: dict[Path, str] = {}
    found = files_with_records(context.database, system=True)
    old = ((one.path, one.entry) for one in found if not one.is_current)
    while files := list(islice(old, batch)):
        renewed += _renew(context, files, failures, system=True)
        context.check()
    for path, failure in failures.items():
        context.logger.warning("The record of %s was not rewritten: %s", format_path(path), failure)
    return renewed


def _renew(
    context: TaskContext, files: Iterable[tuple[Path, Entry]], failures: dict[Path, str], *, system: bool
) -> int:
    files = list(files)
    transaction = context.database.transaction(actor=context.actor, message=_MESSAGE)
    renewed: list[tuple[Path, Entry]] = []
    for path, entry in files:
        try:
            if transaction.renew_record(path, entry, system=system):
                renewed.append((path, entry))
        except (SvcError, OSError) as error:
            failures[path] = str(error)
    if not renewed:
        return 0
    try:
        transaction.commit()
    except PreconditionFailed:
        if len(renewed) == 1:
            return 0  # it was changed meanwhile
        return sum(_renew(context, [one], failures, system=system) for one in renewed)
    except SvcError as error:
        if len(renewed) == 1:
            failures[renewed[0][0]] = str(error)
            return 0
        return sum(_renew(context, [one], failures, system=system) for one in renewed)
    return len(renewed)
