"""What other plugins may use of this one: the snapshots of a database."""

from __future__ import annotations

from svc_versions.snapshots import Snapshot, delete_snapshot, list_snapshots, make_safety_snapshot

__all__ = ["Snapshot", "delete_snapshot", "list_snapshots", "make_safety_snapshot"]
