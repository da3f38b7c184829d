"""What an export, a patch or an import did: lines for people, members for programs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from svc_backup.format import ImportResult, Outgoing
from svc_backup.models import ExportReport, ImportReport, PatchReport

__all__ = [
    "export_lines",
    "export_report",
    "import_lines",
    "import_report",
    "patch_lines",
    "patch_report",
]

_MOST_LOST = 20
"""The report of an answered export is in a header field."""

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
    if counts.lost:
        lines.insert(-1, ("Left out, lost", len(counts.lost)))
    return lines


def export_report(outgoing: Outgoing, output: str | UnsetType = UNSET) -> ExportReport:
    """Returns an export's report; ``output`` is where the file was written."""
    counts = outgoing.counts
    return ExportReport(
        output=output,
        files=counts.files,
        links=counts.links,
        chunks=counts.chunks,
        directories=counts.directories,
        version=outgoing.root.hex(),
        size=outgoing.size,
        left_out=list(counts.left_out) or UNSET,
        lost=list(counts.lost[:_MOST_LOST]) or UNSET,
        lost_paths=len(counts.lost) or UNSET,
    )


def patch_lines(outgoing: Outgoing) -> Lines:
    """Returns (name, value) of a patch's report."""
    report = patch_report(outgoing)
    return [
        ("Files added", report.files_added),
        ("Files modified", report.files_modified),
        ("Files deleted", report.files_deleted),
        ("Chunks", report.chunks),
        ("Directories", report.directories),
        ("From", report.source),
        ("To", report.to),
    ]


def patch_report(outgoing: Outgoing, output: str | UnsetType = UNSET) -> PatchReport:
    """Returns a patch's report; ``output`` is where the file was written."""
    counts = outgoing.counts
    assert counts.changes is not None
    assert outgoing.base is not None
    return PatchReport(
        output=output,
        files_added=counts.changes.added,
        files_modified=counts.changes.modified,
        files_deleted=counts.changes.deleted,
        chunks=counts.chunks,
        directories=counts.directories,
        source=outgoing.base.hex(),
        to=outgoing.root.hex(),
        size=outgoing.size,
    )


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


def import_report(result: ImportResult) -> ImportReport:
    """Returns an import's report."""
    return ImportReport(
        backup_type=result.kind,
        entries_imported=result.entries,
        chunks_imported=result.chunks,
        files_imported=result.files,
        directories_imported=result.directories,
        deletions_applied=result.deletions,
        version_hash=result.version.hex(),
        base_hash=None if result.base is None else result.base.hex(),
        head_promoted=result.head_promoted,
        snapshots_imported=result.snapshots,
        system_entries_imported=result.system_entries,
        warnings=list(result.warnings),
    )
