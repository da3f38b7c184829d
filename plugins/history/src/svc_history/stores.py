"""What the commands ask of a history, of a file and of a server alike; answers are those of the routes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct

from svc.plugin import Database, Path, Source

__all__ = ["Document", "HistoryStore", "Rows", "open_history_store"]

PLUGIN_ID = "history"

Document = dict[str, Any]


class Rows(Struct, frozen=True):
    """A page of a list; the next one begins at the cursor, None after the last.

    ``damaged`` are the numbers of the commits that were met and cannot be read.
    """

    rows: list[Document]
    next_cursor: str | None
    damaged: tuple[int, ...] = ()


class HistoryStore(Protocol):
    """The history of one database. Methods block and raise the errors of ``svc.errors``."""

    def log_page(self, path: Path, fork: str | None, limit: int, after: str | None) -> Rows:
        """A page of the log."""

    def commit(self, version: str) -> tuple[Document, Iterator[Document]]:
        """A commit, with its counts in ``changes``, and what it changed."""

    def history_page(self, path: Path, *, commits: bool, limit: int, after: str | None) -> Rows:
        """A page of what became of a path."""

    def blame(self, path: Path, version: str) -> Document:
        """Where a path's ``lines``, or its ``entries``, come from, with ``path`` and ``version``."""


@contextmanager
def open_history_store(source: Source) -> Iterator[HistoryStore]:
    """Opens the store that a command reads, for as long as the context lasts."""
    with source.open(PLUGIN_ID, read_only=True) as opened:
        if isinstance(opened, Database):
            from svc_history.local_store import LocalHistory

            with opened.hold():  # A command reads many versions, and may be slow to print them.
                yield LocalHistory(opened)
            return
        from svc_history.remote_store import RemoteHistory

        yield RemoteHistory(opened)
