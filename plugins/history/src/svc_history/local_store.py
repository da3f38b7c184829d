"""The history of a database file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

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
from svc_history.comparing import Comparison
from svc_history.files import commit_history, snapshot_history
from svc_history.log import Page, find_commit, log_page
from svc_history.reading import History
from svc_history.stores import Document, Rows
from svc_history.viewer import Viewer
from svc_history.walking import damaged_json, open_history

__all__ = ["LocalHistory"]

_PAGE = 1_000
_LIMITS = BlameLimits(size=64 << 20, scan=4 << 30, seconds=math.inf)


class LocalHistory:
    """See ``HistoryStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def log_page(self, path: Path, fork: str | None, limit: int, after: str | None) -> Rows:
        """A page of the log."""
        history, viewer = self._reading
        page = log_page(history, viewer, path=path, fork=fork, limit=limit, after=after)
        return _rows(page, history)

    def commit(self, version: str) -> tuple[Document, Iterator[Document]]:
        """A commit and what it changed."""
        history, viewer = self._reading
        entry = find_commit(history, viewer, version)
        assert entry.root is not None, "a commit of HEAD has roots"
        assert entry.parent is not None, "a commit of HEAD has roots"
        if entry.is_collected:
            return entry.as_json(), iter(())
        return entry.as_json(), Comparison(viewer, entry.parent, entry.root).items()

    def history_page(self, path: Path, *, commits: bool, limit: int, after: str | None) -> Rows:
        """A page of what became of a path."""
        if not commits:
            page = snapshot_history(Viewer(self._database), path, limit=limit, after=after)
            return Rows(page.rows, page.next_cursor)
        history, viewer = self._reading
        return _rows(commit_history(history, viewer, path, limit=limit, after=after), history)

    def blame(self, path: Path, version: str) -> Document:
        """Where a path's lines, or its entries, come from."""
        history, viewer = self._reading
        root = self._database.named_version(version)
        at = self._database.version_of(root)
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
            start = starting_point(self._database, root)
            row = entry_json(history, viewer, path, entry, start)
            return {**about, "entries": [row], **damaged_json(history)}
        lines = list(line_items(found, path, with_text=True))
        return {**about, "lines": lines, "truncated": found.truncated, **damaged_json(history)}

    @cached_property
    def _reading(self) -> tuple[History, Viewer]:
        return open_history(self._database), Viewer(self._database)


def _rows(page: Page, history: History) -> Rows:
    return Rows(page.rows, page.next_cursor, tuple(sorted(history.damaged_commits)))
