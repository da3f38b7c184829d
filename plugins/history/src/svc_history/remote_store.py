"""The history of a server's database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from svc.plugin import Path
from svc_client import Client, CommitDetails, Page, ReadAt
from svc_history.stores import Document, Rows

__all__ = ["RemoteHistory"]

_PAGE = 1_000


class RemoteHistory:
    """See ``HistoryStore``."""

    def __init__(self, client: Client) -> None:
        self._versions = client.versions

    def log_page(self, path: Path, fork: str | None, limit: int, after: str | None) -> Rows:
        """A page of the log."""
        return _rows(self._versions.log_page(path, fork=fork, limit=limit, after=after))

    def commit(self, version: str) -> tuple[Document, Iterator[Document]]:
        """A commit and what it changed."""
        first = self._versions.commit(version, limit=_PAGE)
        about = _document(first)
        about["changes"] = about.pop("totals")
        for member in ("has_more", "next_cursor", "truncated"):
            del about[member]
        return about, self._changes(first)

    def _changes(self, page: CommitDetails) -> Iterator[Document]:
        while True:
            yield from map(_document, page.changes)
            if page.next_cursor is None:
                return
            page = self._versions.commit(str(page.sequence), limit=_PAGE, after=page.next_cursor)

    def history_page(self, path: Path, *, commits: bool, limit: int, after: str | None) -> Rows:
        """A page of what became of a path."""
        return _rows(self._versions.history_page(path, commits=commits, limit=limit, after=after))

    def blame(self, path: Path, version: str) -> Document:
        """Where a path's lines, or its entries, come from."""
        at = ReadAt(version=self._versions.resolve(version))
        page = self._versions.blame(path, at, limit=_PAGE)
        about: Document = {"path": page.path, "version": page.version}
        damaged = set(page.damaged_commits)
        if page.lines is not None:
            lines = [_document(line) for line in page.lines]
            return {**about, "lines": lines, "truncated": page.truncated, **_damaged(damaged)}
        rows: list[Document] = []
        while True:
            rows += [_document(entry) for entry in page.entries or ()]
            damaged.update(page.damaged_commits)
            if page.next_cursor is None:
                return {**about, "entries": rows, **_damaged(damaged)}
            page = self._versions.blame(path, at, limit=_PAGE, after=page.next_cursor)


def _document(answer: msgspec.Struct) -> Document:
    document: Document = msgspec.to_builtins(answer)
    return document


def _rows(page: Page[Any]) -> Rows:
    return Rows([_document(item) for item in page.items], page.next_cursor, page.damaged_commits)


def _damaged(commits: set[int]) -> Document:
    """What an answer says of commits that cannot be read; nothing where all can."""
    return {"damaged_commits": sorted(commits)} if commits else {}
