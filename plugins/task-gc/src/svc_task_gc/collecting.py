"""A collection with the settings of the plugin, and a safety snapshot before it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from svc.errors import DatabaseBusy, NotFound
from svc.plugin import Database, collect
from svc_task_gc.configuration import GcConfiguration
from svc_versions.api import delete_snapshot, list_snapshots, make_safety_snapshot

__all__ = ["SAFETY_PREFIX", "collect_garbage"]

T = TypeVar("T")

_LOOK_AGAIN_SECONDS = 0.5
SAFETY_PREFIX = "_svc_pre_gc_"
"""What the name of a safety snapshot begins with; the time follows."""


def collect_garbage(
    database: Database,
    configuration: GcConfiguration | None,
    *,
    dry_run: bool = False,
    keep_days: float | None = None,
    actor: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    waits: bool = False,
) -> dict[str, Any]:
    """Collects, and returns the report as JSON has it. Blocks, perhaps for minutes.

    Args:
        database: the database.
        configuration: the settings; None takes those that are there without being set.
        dry_run: only count.
        keep_days: instead of that of the settings.
        actor: who asks for it.
        progress: as for ``svc.plugin.collect``.
        should_stop: as for ``svc.plugin.collect``.
        waits: whether to wait for the end of another collection, which else raises DatabaseBusy; ``progress``
            is told of the phase ``queue`` then.

    Returns:
        The members of the report; ``snapshot``, the name of the safety snapshot or None; and
        ``snapshot_is_new``, whether it was made for this collection.
    """
    settings = configuration if configuration is not None else GcConfiguration()
    made = _Safety(None, False)

    def before() -> None:
        nonlocal made
        if settings.safety_snapshot:
            made = _safety_snapshot(database, settings.safety_snapshots_kept, actor)

    def attempt() -> Any:
        return collect(
            database,
            dry_run=dry_run,
            keep_days=settings.keep_days if keep_days is None else keep_days,
            upload_hours=settings.upload_hours,
            wait_seconds=settings.wait_seconds,
            before=before,
            progress=progress,
            should_stop=should_stop,
        )

    report = _when_others_have_ended(attempt, progress, should_stop) if waits else attempt()
    return {**report.as_json(), "snapshot": made.name, "snapshot_is_new": made.is_new}


def _when_others_have_ended(
    attempt: Callable[[], T],
    progress: Callable[[str, int, int], None] | None,
    should_stop: Callable[[], bool] | None,
) -> T:
    while True:
        try:
            return attempt()
        except DatabaseBusy:
            if should_stop is not None and should_stop():
                raise
        if progress is not None:
            progress("queue", 0, 0)
        time.sleep(_LOOK_AGAIN_SECONDS)


class _Safety(NamedTuple):
    """The safety snapshot, and whether it was made just now."""

    name: str | None
    is_new: bool


def _safety_snapshot(database: Database, most: int, actor: str | None) -> _Safety:
    """Makes a snapshot of HEAD, unless there is one, and removes the oldest of former collections."""
    present = [one for one in list_snapshots(database) if one.name.startswith(SAFETY_PREFIX)]
    if present and present[0].root == database.head().root:
        found = _Safety(present[0].name, False)
    else:
        name = make_safety_snapshot(database, SAFETY_PREFIX, actor=actor, reason="garbage collection")
        found = _Safety(name, name is not None)
        most -= found.is_new
    automatic = [one for one in present if one.kind == "automatic" and not one.kept]
    for old in automatic[max(most, 0) :]:
        with suppress(NotFound):
            delete_snapshot(database, old.name, actor=actor, message="garbage collection", expected=old)
    return found
