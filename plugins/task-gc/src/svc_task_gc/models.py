"""What the collection of garbage takes and answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["MOST_DAYS", "GcQuery", "GcReport"]

MOST_DAYS = 100_000


class GcQuery(Struct, frozen=True):
    """How to collect."""

    dry_run: Annotated[bool, Meta(description="Only count, change nothing.")] = False
    keep_days: Annotated[
        Annotated[float, Meta(ge=0, le=MOST_DAYS)] | None,
        Meta(description="So long versions without a name stay, in place of the setting."),
    ] = None


class GcReport(Struct, frozen=True):
    """What a collection found and did; see ``svc.plugin.collect``.

    ``snapshot`` is the name of the safety snapshot, if there is one, and ``snapshot_is_new`` says whether it
    was made for this collection.
    """

    versions_scanned: int
    live_entries: int
    garbage_entries: int
    reclaimed_bytes: int
    duration_ms: int
    dry_run: bool
    horizon: int
    allocated_before: int | None
    allocated_after: int | None
    waiting: str | None
    warning: str | None
    snapshot: str | None = None
    snapshot_is_new: bool = True
