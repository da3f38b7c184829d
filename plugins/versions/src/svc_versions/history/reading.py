"""Reading the view of the history: rows of commits, of paths and of forks, the newest first.

A database flows in; rows flow out in small batches, so that no reader keeps the view's old pages for long.
The first batch waits until the view has what was committed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

from svc.database import Database, ViewStorage
from svc.errors import NotFound
from svc.paths import Path
from svc_versions.history.rows import (
    MIXED,
    Author,
    CommitRow,
    ForkRow,
    PathRow,
    commit_prefix,
    decode_commit,
    decode_fork,
    decode_path,
    fork_prefix,
    path_prefix,
    row_key,
    sequence_of_key,
)
from svc_versions.history.view import HISTORY_VIEW, HistoryView

__all__ = ["History", "joined", "open_history"]

_FIRST_BATCH = 32
_LARGEST_BATCH = 1024

T = TypeVar("T")


class History:
    """The history of one database.

    Args:
        database: an open database that has the view.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._view = database.view(HISTORY_VIEW)

    def commits(self, before: int | None = None) -> Iterator[tuple[int, CommitRow]]:
        """Yields the commits that changed HEAD's tree, newest first, below a number."""
        return self._rows(commit_prefix(), before, decode_commit)

    def of_path(self, path: Path, before: int | None = None) -> Iterator[tuple[int, PathRow]]:
        """Yields what commits did to a path of HEAD, newest first; the cost follows their number."""
        return self._rows(path_prefix(path), before, decode_path)

    def of_fork(self, name: str, before: int | None = None) -> Iterator[tuple[int, ForkRow]]:
        """Yields what commits did to a fork, newest first; also to earlier forks of the name."""
        return self._rows(fork_prefix(name), before, decode_fork)

    def commit(self, sequence: int) -> CommitRow:
        """Returns a commit that changed HEAD's tree.

        Raises:
            NotFound: the commit does not exist, or left HEAD as it was.
        """
        key = row_key(commit_prefix(), sequence)
        value = self._view.read(lambda storage: storage.get(key))
        if value is None:
            raise NotFound("No commit of this number changed HEAD.", sequence=sequence)
        return decode_commit(value)

    def _rows(
        self, prefix: bytes, before: int | None, decode: Callable[[bytes], T]
    ) -> Iterator[tuple[int, T]]:
        after = None if before is None else row_key(prefix, before)
        size = _FIRST_BATCH
        while True:
            batch = self._view.read(_batch_reader(prefix, after, size))
            for key, value in batch:
                yield sequence_of_key(key), decode(value)
            if len(batch) < size:
                return
            after = batch[-1][0]
            size = min(size * 2, _LARGEST_BATCH)


def open_history(database: Database) -> History:
    """Returns the history of a database that a command opened, where no server has registered the view."""
    database.register_view(HistoryView())
    return History(database)


def joined(authors: tuple[Author, ...], which: int = MIXED) -> Author:
    """Returns one author for several: what they agree on, and their messages one below the other.

    Args:
        authors: of a commit.
        which: the number of the one that did it; ``MIXED`` when there is none.
    """
    if 0 <= which < len(authors):
        return authors[which]
    users = {author.user for author in authors}
    messages = dict.fromkeys(author.message for author in authors if author.message)
    return Author(users.pop() if len(users) == 1 else None, "\n".join(messages) or None)


def _batch_reader(
    prefix: bytes, after: bytes | None, size: int
) -> Callable[[ViewStorage], list[tuple[bytes, bytes]]]:
    def read(storage: ViewStorage) -> list[tuple[bytes, bytes]]:
        return list(islice(storage.scan(prefix, after=after), size))

    return read
