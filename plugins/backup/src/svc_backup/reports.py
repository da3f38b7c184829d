"""What an export, a patch or an import did: lines for people, members for programs."""

from __future__ import annotations

from typing import Any

from svc_backup.format import ImportResult, Outgoing

__all__ = ["export_json", "export_lines", "import_json", "import_lines", "patch_json", "patch_lines"]

Lines = list[tuple[str, Any]]


def export_lines(outgoing: Outgoing) -> Lines:
    """Returns (name, value) of an export's report."""
    counts = outgoing.counts
    lines: Lines = [
        ("Files", counts.files),
        ("Chunks", counts.chunks),
        ("Directories", counts.directories),
        ("Version", outgoing.root.hex()),
    ]
    if counts.links:
        lines.insert(1, ("Links", counts.links))
    if counts.snapshots:
        lines.insert(-1, ("Snapshots", counts.snapshots))
    return lines


def export_json(outgoing: Outgoing) -> dict[str, Any]:
    """Returns the members of an export's report."""
    counts = outgoing.counts
    return {
        "files": counts.files,
        "links": counts.links,
        "chunks": counts.chunks,
        "directories": counts.directories,
        "version": outgoing.root.hex(),
        "size": outgoing.size,
        **({"left_out": list(counts.left_out)} if counts.left_out else {}),
    }


def patch_lines(outgoing: Outgoing) -> Lines:
    """Returns (name, value) of a patch's report."""
    members = patch_json(outgoing)
    return [
        ("Files added", members["files_added"]),
        ("Files modified", members["files_modified"]),
        ("Files deleted", members["files_deleted"]),
        ("Chunks", members["chunks"]),
        ("Directories", members["directories"]),
        ("From", members["from"]),
        ("To", members["to"]),
    ]


def patch_json(outgoing: Outgoing) -> dict[str, Any]:
    """Returns the members of a patch's report."""
    counts = outgoing.counts
    assert counts.changes is not None
    assert outgoing.base is not None
    return {
        "files_added": counts.changes.added,
        "files_modified": counts.changes.modified,
        "files_deleted": counts.changes.deleted,
        "chunks": counts.chunks,
        "directories": counts.directories,
        "from": outgoing.base.hex(),
        "to": outgoing.root.hex(),
        "size": outgoing.size,
    }


def import_lines(result: ImportResult) -> Lines:
    """Returns (name, value) of an import's report."""
    lines: Lines = [
        ("Entries", result.entries),
        ("Chunks", result.chunks),
        ("Files", result.files),
        ("Directories", result.directories),
        ("Deletions", result.deletions),
        ("Version", result.version.hex()),
        ("HEAD promoted", "yes" if result.head_promoted else "no"),
    ]
    if result.system_entries or result.snapshots:
        lines[-2:-2] = [("System entries", result.system_entries), ("Snapshots", result.snapshots)]
    return lines


def import_json(result: ImportResult) -> dict[str, Any]:
    """Returns the members of an import's report."""
    return {
        "backup_type": result.kind,
        "entries_imported": result.entries,
        "chunks_imported": result.chunks,
        "files_imported": result.files,
        "directories_imported": result.directories,
        "deletions_applied": result.deletions,
        "version_hash": result.version.hex(),
        "base_hash": None if result.base is None else result.base.hex(),
        "head_promoted": result.head_promoted,
        "snapshots_imported": result.snapshots,
        "system_entries_imported": result.system_entries,
        "warnings": list(result.warnings),
    }
