"""What the operations on snapshots, forks, restore, merge and lifecycle settings take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from svc.plugin import Confidential

__all__ = [
    "AbandonedFork",
    "Counts",
    "DeletedSnapshot",
    "Fork",
    "ForkList",
    "ForkQuery",
    "Lifecycle",
    "LifecycleChange",
    "Merge",
    "MergeBody",
    "NewFork",
    "NewSnapshot",
    "PathRestore",
    "PathRestoreBody",
    "Promotion",
    "PromotionBody",
    "PromotionQuery",
    "Resolution",
    "ResolveQuery",
    "ResolvedVersion",
    "Retention",
    "RetentionChange",
    "Schedule",
    "ScheduleChange",
    "Snapshot",
    "SnapshotList",
    "SnapshotName",
    "SnapshotRestore",
]

RootHash = Annotated[str, Meta(description="Root hash of a version, in hex.")]
Time = Annotated[int, Meta(description="Unix milliseconds.")]
Maker = Annotated[str | None, Meta(description="Id of the user who made it, if known.")]
Months = Annotated[int, Meta(ge=0, le=12_000)]
States = Annotated[int, Meta(ge=0, le=1_000)]


class Snapshot(Struct, frozen=True):
    """A name for a version; ``kind`` is ``manual``, or ``automatic`` where svc made it by itself."""

    name: str
    root_hash: RootHash
    created_at: Time
    metadata: dict[str, Any]
    kind: str
    created_by: Maker


class SnapshotList(Struct, frozen=True):
    """All snapshots, newest first."""

    snapshots: list[Snapshot]


class NewSnapshot(Confidential, frozen=True, forbid_unknown_fields=True):
    """A snapshot to be made: of HEAD, or of a fork, or of a version. What is kept with it may be secret."""

    shown = ("name", "fork", "version")

    name: str
    metadata: Annotated[dict[str, Any] | None, Meta(description="What to keep with it.")] = None
    fork: str | None = None
    version: RootHash | None = None


class SnapshotName(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a snapshot: the one to be restored, or the new one of one that is renamed."""

    name: str


class DeletedSnapshot(Struct, frozen=True):
    """A snapshot that was deleted."""

    deleted: Literal[True]
    name: str


class SnapshotRestore(Struct, frozen=True):
    """A snapshot that became HEAD; ``auto_snapshot`` names what HEAD was, null where it is the same."""

    restored: Literal[True]
    name: str
    auto_snapshot: str | None
    version: RootHash


class PathRestoreBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a path is restored from: a snapshot, a version or a time; the first wins."""

    snapshot: str | None = None
    version: RootHash | None = None
    at: str | None = None


class PathRestore(Struct, frozen=True):
    """A path that is again what it was."""

    restored: Literal[True]
    path: str
    from_snapshot: str | None
    from_version: RootHash
    auto_snapshot: Annotated[str, Meta(description="Snapshot of HEAD as it was before.")]
    size: int
    entry_type: Annotated[int, Meta(description="2 file, 3 directory, 8 link.")]
    version: RootHash


class Fork(Struct, frozen=True, kw_only=True):
    """A branch. Of one that was abandoned, only its state is left, and when that was."""

    name: str
    root_hash: RootHash
    created_at: Time | UnsetType = UNSET
    base: Annotated[
        str | UnsetType | None, Meta(description="Root hash of the newest state that it and HEAD share.")
    ] = UNSET
    created_by: str | UnsetType | None = UNSET
    abandoned_at: Time | UnsetType = UNSET


class ForkList(Struct, frozen=True):
    """Forks, newest first."""

    forks: list[Fork]


class ForkQuery(Struct, frozen=True):
    """Which forks are listed."""

    abandoned: Annotated[bool, Meta(description="What is left of abandoned ones instead.")] = False


class NewFork(Struct, frozen=True, forbid_unknown_fields=True):
    """A fork to be made: of a snapshot or another version, else of HEAD."""

    name: str
    base: str | None = None


class PromotionQuery(Struct, frozen=True):
    """How a fork is promoted."""

    force: Annotated[bool, Meta(description="Although HEAD has moved.")] = False


class PromotionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How a fork is promoted; as in the query."""

    force: bool = False


class Promotion(Struct, frozen=True):
    """A fork's state that became HEAD."""

    promoted: Literal[True]
    name: str
    version: RootHash
    previous_version: RootHash


class AbandonedFork(Struct, frozen=True):
    """A fork that was abandoned; its state stays until it is collected."""

    abandoned: Literal[True]
    name: str
    root_hash: RootHash


class Counts(Struct, frozen=True):
    """How many files and links are added, modified, deleted."""

    added: int = 0
    modified: int = 0
    deleted: int = 0


class Resolution(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What becomes of a path that both sides changed."""

    path: str
    take: Annotated[
        Literal["ours", "theirs", "both", "text"],
        Meta(description="A side; both, theirs under a name of its own; or the text in content."),
    ]
    content: Annotated[str, Meta(max_length=1_000_000)] | None = None
    ours: Annotated[
        str | None, Meta(description="Hash of our side as it was looked at; empty: nothing. Another is 409.")
    ] = None
    theirs: Annotated[str | None, Meta(description="The same of theirs.")] = None


class MergeBody(Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """A fork or a snapshot that is merged into HEAD or a fork, and what decides where both changed a path."""

    source: str
    into: str = "HEAD"
    strategy: Literal["fail", "ours", "theirs"] = "fail"
    message: Annotated[str, Meta(max_length=10_000)] | None = None
    dry_run: bool = False
    resolutions: Annotated[
        list[Resolution], Meta(max_length=1_000, description="Paths that are decided one by one.")
    ] = []


class Merge(Struct, frozen=True, rename={"source": "from"}):
    """What a merge did, or would do; ``base`` is the root of the common base, null where none is known."""

    merged: bool
    dry_run: bool
    source: str
    into: str
    version: RootHash
    base: str | None
    changes: Counts
    fast_forward: bool
    conflicts_resolved: int


class ResolveQuery(Struct, frozen=True):
    """A name of a version: a snapshot, a root hash, ``forks/<name>``, a time, or ``HEAD``."""

    name: str


class ResolvedVersion(Struct, frozen=True):
    """The version that a name means now."""

    version: RootHash


class Retention(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many months automatic and manual snapshots are kept; 0 keeps them for ever."""

    auto_months: Months = 0
    manual_months: Months = 0


class Schedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The states of HEAD that get a name by themselves: how many are kept of one an hour, a day, a week."""

    hourly: States = 0
    daily: States = 0
    weekly: States = 0


class Lifecycle(Struct, frozen=True, kw_only=True):
    """The settings: whether snapshots are made at all, which by themselves, and how long they are kept."""

    snapshot_writes_enabled: bool = True
    snapshot_retention: Retention = Retention()
    snapshot_schedule: Schedule = Schedule()


class RetentionChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New times of retention; what is absent stays."""

    auto_months: Months | None = None
    manual_months: Months | None = None


class ScheduleChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New numbers of states; what is absent stays."""

    hourly: States | None = None
    daily: States | None = None
    weekly: States | None = None


class LifecycleChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New settings; what is absent stays."""

    snapshot_writes_enabled: bool | None = None
    snapshot_retention: RetentionChange | None = None
    snapshot_schedule: ScheduleChange | None = None

    def applied_to(self, present: Lifecycle) -> Lifecycle:
        """Returns the settings with this change."""
        writes = self.snapshot_writes_enabled
        return Lifecycle(
            snapshot_writes_enabled=present.snapshot_writes_enabled if writes is None else writes,
            snapshot_retention=_changed(present.snapshot_retention, self.snapshot_retention),
            snapshot_schedule=_changed(present.snapshot_schedule, self.snapshot_schedule),
        )


_Numbers = TypeVar("_Numbers", Retention, Schedule)


def _changed(present: _Numbers, change: RetentionChange | ScheduleChange | None) -> _Numbers:
    """``present`` with the members of a change that are not None."""
    named = {} if change is None else {name: n for name, n in asdict(change).items() if n is not None}
    return replace(present, **named)
