"""A collection with the settings of the plugin, and a safety snapshot before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc.plugin import Database, collect
from svc_task_gc.configuration import GcConfiguration
from svc_versions.api import make_safety_snapshot

__all__ = ["SAFETY_PREFIX", "collect_garbage"]

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

    Returns:
        The members of the report, and ``snapshot``, the name of the safety snapshot or None.

    Raises:
        SvcError: as ``svc.plugin.collect``.
    """
    settings = configuration if configuration is not None else GcConfiguration()
    snapshot = None
    if settings.safety_snapshot and not dry_run and not database.read_only:
        snapshot = make_safety_snapshot(database, SAFETY_PREFIX, actor=actor, reason="garbage collection")
    report = collect(
        database,
        dry_run=dry_run,
        keep_days=settings.keep_days if keep_days is None else keep_days,
        upload_hours=settings.upload_hours,
        wait_seconds=settings.wait_seconds,
        progress=progress,
        should_stop=should_stop,
    )
    return {**report.as_json(), "snapshot": snapshot}
