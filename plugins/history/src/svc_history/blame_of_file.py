"""Blame on a database file: without the limits of a server, since nobody else waits."""

from __future__ import annotations

import math

from svc.errors import NotFound
from svc.plugin import Database, EntryKind, Path, format_path
from svc_history.blaming import (
    BlameLimits,
    blame_entries,
    blame_lines,
    entry_json,
    line_items,
    starting_point,
)
from svc_history.models import Document
from svc_history.viewer import Viewer
from svc_history.walking import damaged_json, history_of

__all__ = ["blame_of_file"]

_PAGE = 1_000
_LIMITS = BlameLimits(size=64 << 20, scan=4 << 30, seconds=math.inf)


def blame_of_file(database: Database, path: Path, version: str) -> Document:
    """Returns where a path's ``lines``, or its ``entries``, come from; blocks.

    Raises:
        NotFound: nothing is at the path in this version, or nothing has this name.
    """
    history, viewer = history_of(database), Viewer(database)
    root = database.named_version(version)
    at = database.version_of(root)
    entry = at.get(path) if path else None
    if path and entry is None:
        raise NotFound("There is nothing at this path.", path=format_path(path))
    about: Document = {"path": format_path(path), "version": root.hex()}
    if entry is None or entry.kind is EntryKind.DIRECTORY:
        rows: list[Document] = []
        after: str | None = None
        while True:
            page = blame_entries(history, viewer, at, path, limit=_PAGE, after=after)
            rows += page.rows
            after = page.next_cursor
            if after is None:
                return {**about, "entries": rows, **damaged_json(history)}
    found = blame_lines(history, viewer, at, path, entry, _LIMITS)
    if found is None:
        row = entry_json(history, viewer, path, entry, starting_point(database, root))
        return {**about, "entries": [row], **damaged_json(history)}
    lines = list(line_items(found, path, with_text=True))
    return {**about, "lines": lines, "truncated": found.truncated, **damaged_json(history)}
