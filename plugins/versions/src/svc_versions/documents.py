"""The documents beside refs: what the system tree knows of a snapshot or a fork besides its root."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from svc.plugin import Database, Hash, Version

__all__ = [
    "ForkDocument",
    "SnapshotDocument",
    "present_ms",
    "read_state",
]


class SnapshotDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The document of a snapshot, at ``/versions/snapshots/<name>`` of the system tree.

    Attributes:
        created_at: Unix milliseconds.
        metadata: what its maker wants to keep with it.
        kind: ``manual`` or ``automatic``; empty: the name says it.
        created_by: a user id, if known.
        kept: of an automatic one: somebody asked for a snapshot of the same state, so it stays like a manual
            one.
        sequence: number of the last commit before it was made.
        base_sequence: of a snapshot of a fork: number of the newest commit of HEAD whose state it holds.
        log: with that, the id of the database whose commit it is; nodes of a cluster exchange snapshots.
    """

    created_at: int
    metadata: dict[str, Any] = {}
    kind: str = ""
    created_by: str | None = None
    kept: bool = False
    sequence: int = 0
    base_sequence: int | None = None
    log: str = ""


class ForkDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The document of a fork, at ``/versions/forks/<name>`` of the system tree.

    Attributes:
        created_at: Unix milliseconds.
        created_by: a user id, if known.
        base: root, in hex, of the newest state that the fork and HEAD have in common: what the fork began
            from, or what the last merge between the two made common.
        base_sequence: number of the newest commit of HEAD whose state the fork holds.
        merged: by name and time of creation of another fork: its root, in hex, when it was last merged into
            this one, and the number of the last commit then.
        sequence: number of the last commit before it was made.
    """

    created_at: int
    created_by: str | None = None
    base: str = ""
    base_sequence: int = 0
    merged: dict[str, tuple[str, int]] = {}
    sequence: int = 0


def read_state(database: Database) -> tuple[Hash, int, Version]:
    """Returns HEAD's root, the number of the last commit, and the system tree, all of one moment."""
    head = database.head()
    return head.root, head.sequence, database.version_of(head.system_root)


def present_ms(database: Database) -> int:
    """The present time, never before the last commit's: newest first is then the order of the log."""
    return max(time.time_ns() // 1_000_000, database.head().time_ms)
