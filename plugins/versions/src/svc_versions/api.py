"""What other plugins may use of this one: the snapshots of a database, its operations and their structs."""

from __future__ import annotations

from svc_versions import models, operations
from svc_versions.snapshots import Snapshot, delete_snapshot, list_snapshots, make_safety_snapshot

__all__ = [
    "Snapshot",
    "delete_snapshot",
    "list_snapshots",
    "make_safety_snapshot",
    "models",
    "operations",
]
