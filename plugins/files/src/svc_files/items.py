"""How entries look in JSON answers: one shape for listings, writes and links."""

from __future__ import annotations

from typing import Any

from svc.plugin import Entry, EntryKind, Path, format_path

__all__ = ["ENTRY_TYPE_NAMES", "file_answer", "listing_item"]

ENTRY_TYPE_NAMES = {EntryKind.FILE: "file", EntryKind.DIRECTORY: "directory", EntryKind.SYMLINK: "symlink"}
"""The entry types as the header ``X-Svc-Entry-Type`` spells them."""


_SUMMED_UP = ("hash", "size", "created_at", "updated_at", "file_count", "total_size")
"""What is made from everything below a directory."""


def listing_item(path: Path, entry: Entry, *, complete: bool = True) -> dict[str, Any]:
    """Returns an entry as listings show it; times in Unix milliseconds, sizes in bytes."""
    item: dict[str, Any] = {
        "path": format_path(path),
        "name": path[-1] if path else "",
        "entry_type": int(entry.kind),
        "hash": entry.hash.hex(),
        "size": entry.size,
        "created_at": entry.created_ms,
        "updated_at": entry.updated_ms,
        "content_type": entry.content_type,
    }
    if entry.kind is EntryKind.SYMLINK:
        item["target"] = entry.target
    elif entry.kind is EntryKind.DIRECTORY:
        item["file_count"] = entry.totals.files if entry.totals is not None else 0
        item["total_size"] = entry.size
        if not complete:
            item.update(dict.fromkeys(_SUMMED_UP))
    return item


def file_answer(path: Path, entry: Entry, version: bytes) -> dict[str, Any]:
    """Returns what a write answers about the file that it stored."""
    return {
        "path": format_path(path),
        "size": entry.size,
        "content_type": entry.content_type,
        "content_hash": entry.hash.hex(),
        "created_at": entry.created_ms,
        "updated_at": entry.updated_ms,
        "version": version.hex(),
    }
