"""What the collection of garbage takes and answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["MOST_DAYS", "GcPreview", "GcPreviewQuery", "GcQuery", "GcReport"]

MOST_DAYS = 100_000

KeepDays = Annotated[
    Annotated[float, Meta(ge=0, le=MOST_DAYS)] | None,
    Meta(description="So long versions without a name stay, in place of the setting."),
]


class GcQuery(Struct, frozen=True):
    """How to collect."""

    dry_run: Annotated[bool, Meta(description="Only count, change nothing.")] = False
    keep_days: KeepDays = None


class GcPreviewQuery(Struct, frozen=True):
    """Which collection is meant."""

    keep_days: KeepDays = None


class GcPreview(Struct, frozen=True):
    """What a collection would let go."""

    versions: Annotated[
        int, Meta(description="Versions that can't be read afterwards, unless a snapshot or fork has one.")
    ]
    since: Annotated[int | None, Meta(description="Time of the oldest of them, in Unix milliseconds.")]
    keep_days: Annotated[float, Meta(description="Versions of so many days stay, also without a name.")]
    first: Annotated[int | None, Meta(description="Number of the oldest of them; null: none goes.")]
    last: Annotated[int | None, Meta(description="Number of the newest of them.")]


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
