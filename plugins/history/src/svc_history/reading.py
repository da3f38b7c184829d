"""Reading the view of the history: rows of commits, of paths and of forks, the newest first.

Rows are read in small batches, so that no reader keeps the view's old pages for long. The first batch waits
until the view has what was committed before.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import structs

from svc.errors import NotFound
from svc.plugin import Database, Origin, Path, ViewStorage
from svc_history.counting import counts_of_sides
from svc_history.recording import path_row
from svc_history.rows import (
    MIXED,
    Author,
    ChangeType,
    CollectedRow,
    CommitRow,
    DirectoryRow,
    FileRow,
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
    whole_prefix,
)
from svc_history.view import HISTORY_VIEW

__all__ = ["History", "LookedAt", "joined"]

_FIRST_BATCH = 32
_LARGEST_BATCH = 1024

T = TypeVar("T")
_Found: TypeAlias = tuple[int, bytes, bytes | None, bool]
"""Number of a commit, its row of a path, of itself, and whether the first is of a directory above."""


class LookedAt(NamedTuple):
    """A commit that touched a path, or may have.

    Attributes:
        row: what it did to the path; None: nothing.
        is_certain: whether it touched the path: not known of one whose trees were collected, and which moved,
            copied or deleted a directory above.
        is_damaged: whether its record cannot be read: it, or another one before it, did this.
    """

    sequence: int
    commit: CommitRow
    row: PathRow | None
    is_certain: bool = True
    is_damaged: bool = False


class History:
    """The history of one database.

    ``damaged_commits`` are those that were met and cannot be read; always empty by the view.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.damaged_commits: set[int] = set()
        self._view = database.view(HISTORY_VIEW)

    def catch_up(self) -> None:
        """Waits until the view has HEAD's commit; CorruptRecord where one on the way, or a tree, is bad."""
        self._view.read(lambda storage: None)

    def commits(self, before: int | None = None) -> Iterator[tuple[int, CommitRow]]:
        """Yields the commits that changed HEAD's tree, newest first, below a number."""
        for sequence, row in self._rows(commit_prefix(), before, decode_commit):
            yield sequence, self._as_it_is_left(sequence, row)

    def is_collected(self, sequence: int) -> bool:
        """Whether the trees of a commit were collected: only its record says what it did."""
        return sequence <= self.database.horizon()

    def _as_it_is_left(self, sequence: int, row: CommitRow) -> CommitRow:
        """A commit's row without what only its trees say, if they are gone: the view may not be so far."""
        return structs.replace(row, counts=None) if self.is_collected(sequence) else row

    def looked_at(
        self,
        path: Path,
        before: int | None = None,
        *,
        above: Sequence[bytes] | None = None,
        first_batch: int = _FIRST_BATCH,
    ) -> Iterator[LookedAt]:
        """Yields what commits did to a path of HEAD, newest first.

        The row is None of commits that replaced a directory above and left the path alone: the cost follows
        them too, so whoever bounds it counts them all. The counts of a directory are None where nobody has
        counted them yet.
        """
        prefixes = self._prefixes(path, above)

        def find(storage: ViewStorage, place: int) -> Iterator[_Found]:
            for sequence, value, is_above in _merged(storage, prefixes, place):
                yield sequence, value, storage.get(row_key(commit_prefix(), sequence)), is_above

        for sequence, value, commit_value, is_above in self._batches(before, find, first_batch):
            assert commit_value is not None, "a commit that has rows of paths has one of its own"
            yield self._looked_at(path, sequence, commit_value, value, is_above=is_above)

    @staticmethod
    def _prefixes(path: Path, above: Sequence[bytes] | None) -> tuple[bytes, ...]:
        """What rows of a path begin with: its own, those for it and all below, those of directories above."""
        if above is None:
            above = [whole_prefix(path[:length]) for length in range(len(path) - 1, -1, -1)]
        return (path_prefix(path), whole_prefix(path), *above)

    def _looked_at(
        self, path: Path, sequence: int, commit_value: bytes, value: bytes, *, is_above: bool
    ) -> LookedAt:
        commit = decode_commit(commit_value)
        row = decode_path(value)
        if isinstance(row, CollectedRow) or self.is_collected(sequence):
            left = _without_trees(row, is_above=is_above)
            return LookedAt(sequence, self._as_it_is_left(sequence, commit), left, not is_above)
        return LookedAt(sequence, commit, self._row_below(path, row, commit) if is_above else row)

    def prefixes_above(self, path: Path, last: int) -> list[bytes]:
        """Returns where ``looked_at`` finds rows of the directories above a path, up to a commit."""

        def find(storage: ViewStorage) -> list[bytes]:
            prefixes = [whole_prefix(path[:length]) for length in range(len(path) - 1, -1, -1)]
            return [prefix for prefix in prefixes if next(storage.scan(prefix), None) is not None]

        return self._view.read(find, minimum=last)

    def of_fork(self, name: str, before: int | None = None) -> Iterator[tuple[int, ForkRow]]:
        """Yields what commits did to a fork, newest first; also to earlier forks of the name."""
        for sequence, row in self._rows(fork_prefix(name), before, decode_fork):
            gone = self.is_collected(sequence) and not row.is_collected
            yield sequence, _fork_without_trees(row) if gone else row

    def commit(self, sequence: int) -> CommitRow:
        """Returns a commit that changed HEAD's tree; NotFound for one that left HEAD as it was."""
        value: bytes | None = None
        if sequence <= self.database.head().sequence:
            key = row_key(commit_prefix(), sequence)
            value = self._view.read(lambda storage: storage.get(key), minimum=sequence)
        if value is None:
            raise NotFound("No commit of this number changed HEAD.", sequence=sequence)
        return self._as_it_is_left(sequence, decode_commit(value))

    def _row_below(self, path: Path, above: FileRow | DirectoryRow, commit: CommitRow) -> PathRow | None:
        """What a commit that replaced a directory above did to a path; None when it did nothing."""
        before = self.database.version_of(commit.parent_root).get(path)
        after = self.database.version_of(commit.root).get(path)
        if before == after:
            return None
        return path_row(before, after, above.author, counts_of_sides(before, after))

    def _rows(
        self, prefix: bytes, before: int | None, decode: Callable[[bytes], T]
    ) -> Iterator[tuple[int, T]]:
        def find(storage: ViewStorage, place: int) -> Iterator[_Found]:
            for sequence, value, _ in _merged(storage, (prefix,), place):
                yield sequence, value, None, False

        for sequence, value, _, _ in self._batches(before, find):
            yield sequence, decode(value)

    def _batches(
        self,
        before: int | None,
        find: Callable[[ViewStorage, int], Iterator[_Found]],
        size: int = _FIRST_BATCH,
    ) -> Iterator[_Found]:
        """Yields rows below a number, of whole commits: what is newer may be there in part."""
        head = self.database.head().sequence
        last = head if before is None else min(before - 1, head)
        place = last + 1
        while place > 0:
            batch = self._view.read(_batch_reader(find, place, size), minimum=last)
            yield from batch
            if len(batch) < size:
                return
            place = batch[-1][0]
            size = min(size * 2, _LARGEST_BATCH)


def _without_trees(row: PathRow, *, is_above: bool) -> CollectedRow:
    """What is left of a row, by whose trees it may have been made: the view may not be so far."""
    if not isinstance(row, CollectedRow):
        row = CollectedRow(row.author, row.change is ChangeType.DELETED)
    return structs.replace(row, is_deletion=False) if is_above else row


def _fork_without_trees(row: ForkRow) -> ForkRow:
    may_begin = row.parent_root is None or row.root is None
    return structs.replace(row, parent_root=None, counts=None, is_collected=True, may_begin=may_begin)


def joined(authors: tuple[Author, ...], which: int = MIXED) -> Author:
    """Returns one author for several: what they agree on, and their messages one below the other."""
    if 0 <= which < len(authors):
        return authors[which]
    users = {author.user for author in authors}
    messages = dict.fromkeys(message for author in authors if (message := _message_beside_others(author)))
    return Author(users.pop() if len(users) == 1 else None, "\n".join(messages) or None)


def _message_beside_others(author: Author) -> str | None:
    """What an author wrote; of a merge only the node, since each of its writes has a time of its own."""
    origin = author.origin
    return author.message if origin is None else Origin(origin.node_id).message


def _merged(storage: ViewStorage, prefixes: Iterable[bytes], place: int) -> Iterator[tuple[int, bytes, bool]]:
    """The rows of some prefixes below a number, newest first, and whether one is of a directory above."""
    found = []
    for count, prefix in enumerate(prefixes):
        rows = storage.scan(prefix, after=row_key(prefix, place))
        first = next(rows, None)
        if first is not None:
            found.append(_numbered(first, rows, count > 1))
    return found[0] if len(found) == 1 else heapq.merge(*found, key=_newest_first)


def _numbered(
    first: tuple[bytes, bytes], rest: Iterator[tuple[bytes, bytes]], is_above: bool
) -> Iterator[tuple[int, bytes, bool]]:
    for key, value in chain((first,), rest):
        yield sequence_of_key(key), value, is_above


def _newest_first(row: tuple[int, bytes, bool]) -> int:
    return -row[0]


def _batch_reader(
    find: Callable[[ViewStorage, int], Iterator[_Found]], place: int, size: int
) -> Callable[[ViewStorage], list[_Found]]:
    def read(storage: ViewStorage) -> list[_Found]:
        return list(islice(find(storage, place), size))

    return read
