"""The lifecycle settings of a database: whether snapshots are made, and how long they are kept.

They are a JSON document of the system tree, so that every process, replica and backup agrees.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from svc.errors import Conflict
from svc.plugin import Database, EntryKind, Version, attempt, same_content
from svc_versions.documents import read_state

__all__ = [
    "Lifecycle",
    "LifecycleChange",
    "Retention",
    "change_lifecycle",
    "lifecycle_of",
    "require_snapshot_writes",
]

_PATH = ("versions", "lifecycle")

_Months = Annotated[int, msgspec.Meta(ge=0, le=12_000)]


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many months automatic and manual snapshots are kept; 0 keeps them for ever."""

    auto_months: _Months = 0
    manual_months: _Months = 0


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """The settings: whether snapshots are made at all, safety snapshots too, and how long they are kept."""

    snapshot_writes_enabled: bool = True
    snapshot_retention: Retention = Retention()


class RetentionChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New times of retention; what is absent stays."""

    auto_months: _Months | None = None
    manual_months: _Months | None = None


class LifecycleChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New settings; what is absent stays."""

    snapshot_writes_enabled: bool | None = None
    snapshot_retention: RetentionChange | None = None

    def applied_to(self, present: Lifecycle) -> Lifecycle:
        """Returns the settings with this change."""
        writes = self.snapshot_writes_enabled
        kept = present.snapshot_retention
        change = self.snapshot_retention or RetentionChange()
        return Lifecycle(
            snapshot_writes_enabled=present.snapshot_writes_enabled if writes is None else writes,
            snapshot_retention=Retention(
                auto_months=kept.auto_months if change.auto_months is None else change.auto_months,
                manual_months=kept.manual_months if change.manual_months is None else change.manual_months,
            ),
        )


def lifecycle_of(system: Version) -> Lifecycle:
    """Returns the settings that a system tree holds; those of a new database when it holds none."""
    entry = system.get(_PATH)
    if entry is None or entry.kind is not EntryKind.FILE:
        return Lifecycle()
    try:
        return msgspec.json.decode(system.read_all(entry), type=Lifecycle)
    except msgspec.DecodeError:
        return Lifecycle()


def change_lifecycle(database: Database, change: LifecycleChange, *, actor: str | None = None) -> Lifecycle:
    """Changes the settings and returns what they are now; blocks for a commit.

    Raises Conflict where others change them all the time.
    """

    def once() -> Lifecycle:
        _, _, system = read_state(database)
        wanted = change.applied_to(lifecycle_of(system))
        transaction = database.transaction(actor=actor, message="change the lifecycle settings")
        transaction.put_system(_PATH, msgspec.json.encode(wanted), condition=same_content(system.get(_PATH)))
        transaction.commit()
        return wanted

    return attempt(once, "The settings")


def require_snapshot_writes(system: Version) -> None:
    """Raises Conflict when the settings forbid to make snapshots."""
    if not lifecycle_of(system).snapshot_writes_enabled:
        raise Conflict(
            "Snapshots are switched off in this database (snapshot_writes_enabled is false).",
            setting="snapshot_writes_enabled",
        )
