"""Versions of a database file."""

from __future__ import annotations

from typing import cast

from svc.plugin import Database, MergeStrategy, Path, format_path
from svc_versions.commands.store import Document, MergeRequest
from svc_versions.forks import (
    abandon_fork,
    create_fork,
    find_fork,
    list_abandoned,
    list_forks,
    promote_fork,
    snapshot_or_version,
)
from svc_versions.merging import merge_versions
from svc_versions.restoring import restore_path, restore_snapshot
from svc_versions.snapshots import create_snapshot, delete_snapshot, list_snapshots, rename_snapshot

__all__ = ["LocalVersions"]


class LocalVersions:
    """A ``VersionStore`` of an open database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def snapshots(self) -> list[Document]:
        """All snapshots, newest first."""
        return [one.as_json() for one in list_snapshots(self._database)]

    def create_snapshot(
        self, name: str, metadata: Document, fork: str | None, version: str | None
    ) -> tuple[Document, bool]:
        """Makes a snapshot; returns it and whether it is new."""
        root, base_sequence = None, None
        if fork is not None:
            source = find_fork(self._database, fork)
            root, base_sequence = source.root, source.base_sequence
        elif version is not None:
            root = self._database.named_version(version)
        made, is_new = create_snapshot(self._database, name, metadata, root=root, base_sequence=base_sequence)
        return made.as_json(), is_new

    def delete_snapshot(self, name: str) -> Document:
        """Deletes a snapshot."""
        gone = delete_snapshot(self._database, name)
        return {"deleted": True, "name": gone.name, "root_hash": gone.root.hex()}

    def rename_snapshot(self, name: str, new_name: str) -> Document:
        """Gives a snapshot another name."""
        return rename_snapshot(self._database, name, new_name).as_json()

    def restore_snapshot(self, name: str) -> Document:
        """Makes a snapshot HEAD."""
        restored = restore_snapshot(self._database, name)
        return {
            "restored": True,
            "name": restored.name,
            "auto_snapshot": restored.auto_snapshot,
            "version": restored.version.hex(),
        }

    def restore(self, path: Path, version: str) -> Document:
        """Puts a path back as a version has it."""
        source = snapshot_or_version(self._database, version)
        done = restore_path(self._database, path, source, label=version)
        return {
            "restored": True,
            "path": format_path(done.path),
            "from": version,
            "from_version": source.hex(),
            "auto_snapshot": done.auto_snapshot,
            "size": done.entry.size,
            "entry_type": int(done.entry.kind),
            "version": done.version.hex(),
        }

    def forks(self) -> list[Document]:
        """The active forks, newest first."""
        return [one.as_json() for one in list_forks(self._database)]

    def abandoned_forks(self) -> list[Document]:
        """What is left of abandoned forks, newest first."""
        return [one.as_json() for one in list_abandoned(self._database)]

    def create_fork(self, name: str, base: str | None) -> Document:
        """Makes a fork."""
        return create_fork(self._database, name, base=base).as_json()

    def promote_fork(self, name: str, *, force: bool) -> Document:
        """Makes a fork's state HEAD."""
        done = promote_fork(self._database, name, force=force)
        return {
            "promoted": True,
            "name": done.fork.name,
            "version": done.version.hex(),
            "previous_version": done.previous.hex(),
        }

    def abandon_fork(self, name: str) -> Document:
        """Abandons a fork."""
        gone = abandon_fork(self._database, name)
        return {"abandoned": True, "name": gone.name, "root_hash": gone.root.hex()}

    def merge(self, request: MergeRequest) -> tuple[Document, str, str]:
        """Merges; returns the answer, and how people call the source and the target."""
        outcome = merge_versions(
            self._database,
            request.source,
            request.into,
            cast(MergeStrategy, request.strategy),
            message=request.message,
            dry_run=request.dry_run,
        )
        answer = {
            "merged": not request.dry_run,
            "dry_run": request.dry_run,
            "from": request.source,
            "into": request.into,
            "version": outcome.version.hex(),
            "base": None if outcome.base is None else outcome.base.hex(),
            "changes": outcome.counts.as_json(),
            "fast_forward": outcome.fast_forward,
            "conflicts_resolved": outcome.conflicts,
        }
        return answer, outcome.source, outcome.target
