"""The lifecycle settings of a database: whether snapshots are made, and how long they are kept.

They are a JSON document of the system tree, so that every process, replica and backup agrees.
"""

from __future__ import annotations

import msgspec

from svc.errors import Conflict
from svc.plugin import Database, EntryKind, Version, attempt, same_content
from svc_versions.documents import read_state
from svc_versions.models import Lifecycle, LifecycleChange

__all__ = ["change_lifecycle", "lifecycle_of", "require_snapshot_writes"]

_PATH = ("versions", "lifecycle")


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
