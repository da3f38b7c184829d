"""What other plugins may use of this one: the snapshots of a database."""

from __future__ import annotations

from svc_versions.snapshots import Snapshot, list_snapshots, make_safety_snapshot

__all__ = ["Snapshot", "list_snapshots", "make_safety_snapshot"]
