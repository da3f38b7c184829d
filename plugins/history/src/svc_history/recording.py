"""The rows that one commit gives: of the paths that its operations name, and of the directories above them.

A directory that came, went or was replaced as a whole gives one *whole* row, whatever it holds. So the
cost follows the operations of a commit, and not the paths that they reach.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias

from svc.plugin import EMPTY_ROOT, Commit, Entry, Hash, Path, Version
from svc_history.attribution import NamedPaths, attribution, authors_of, records_of_head
from svc_history.counting import bounded, counts_of_sides, is_directory
from svc_history.rows import (
    MIXED,
    ChangeType,
    CommitRow,
    Counts,
    DirectoryRow,
    FileRow,
    PathRow,
    child_prefix,
    commit_prefix,
    encode_extra,
    encode_row,
    extra_prefix,
    is_same_content,
    path_prefix,
    row_key,
    whole_prefix,
)

__all__ = ["Item", "head_rows", "path_row"]

Item: TypeAlias = tuple[bytes, bytes]
"""Key and value of a row."""

_KEYS_PER_LIST = 256

_Differences: TypeAlias = Iterator[tuple[str, Entry | None, Entry | None]]
_Summary: TypeAlias = tuple[Counts | None, int | None]
"""Of a directory and everything below it: counts, and who did it (None: nobody is known yet)."""


class _TooMany(Exception):
    """More differs than gets a row for each path."""


def head_rows(commit: Commit, before: Version, after: Version, listed: int) -> Iterator[Item]:
    """Yields the rows of a commit that changed HEAD's tree.

    ``listed`` is how many differences of replaced directories (of the root, where HEAD was moved) get a row
    for each path; a directory with more of them gets one row.
    """
    records = records_of_head(commit)
    authors = authors_of(records)
    walk = _Walk(
        commit.sequence,
        before,
        NamedPaths.of(records),
        attribution(records, authors),
        has_one_author=len(authors) <= 1,
        listed=listed,
    )
    counts = yield from walk.rows(before.root, after.root)
    row = CommitRow(commit.time_ms, commit.root, commit.parent_root, authors, counts)
    yield row_key(commit_prefix(), commit.sequence), encode_row(row)
    # A collection takes the rows back; those that the operations do not name are found by these lists.
    prefix = extra_prefix(commit.sequence)
    for number, start in enumerate(range(0, len(walk.extra), _KEYS_PER_LIST)):
        yield prefix + number.to_bytes(4, "big"), encode_extra(walk.extra[start : start + _KEYS_PER_LIST])


def path_row(before: Entry | None, after: Entry | None, author: int | None, counts: Counts | None) -> PathRow:
    """Returns the row of a path whose entries differ."""
    entry = after or before
    assert entry is not None, "a difference has a side"
    change = ChangeType.MODIFIED
    if before is None:
        change = ChangeType.ADDED
    elif after is None:
        change = ChangeType.DELETED
    number = MIXED if author is None else author
    if entry.totals is not None:
        return DirectoryRow(change, number, counts)
    if change is ChangeType.MODIFIED and before is not None and is_same_content(before, entry):
        change = ChangeType.UNCHANGED
    return FileRow(change, number, int(entry.kind), entry.size, entry.hash, entry.content_type)


class _Directory:
    """A directory on the way from the root to the last difference, with what was found below it so far."""

    __slots__ = ("author", "change", "is_counted", "is_whole", "path", "prefix", "remaining", "sums")

    def __init__(
        self,
        path: Path,
        change: ChangeType,
        author: int | None,
        remaining: _Differences,
        *,
        is_whole: bool = False,
    ) -> None:
        self.is_whole = is_whole  # whether rows are made of what no operation names
        self.path = path
        self.change = change
        self.author = author
        self.remaining = remaining
        self.sums = [0, 0, 0]
        self.is_counted = True
        self.prefix = child_prefix(path)

    def summary(self) -> _Summary:
        return (bounded(self.sums) if self.is_counted else None), self.author

    def add(self, counts: Counts | None, author: int | None) -> None:
        if counts is None:
            self.is_counted = False
        else:
            self.sums = [one + other for one, other in zip(self.sums, counts, strict=True)]
        self.add_author(author)

    def add_author(self, author: int | None) -> None:
        if author is not None:
            self.author = author if self.author in (None, author) else MIXED


class _Walk:
    def __init__(
        self,
        sequence: int,
        version: Version,
        named: NamedPaths,
        author_of: Callable[[Path], int | None],
        *,
        has_one_author: bool,
        listed: int,
    ) -> None:
        self._version = version
        self._named = named
        self._author_of = author_of
        self._has_one_author = has_one_author
        self._left = listed
        self.extra: list[bytes] = []
        self._sequence = sequence
        self._key_end = row_key(b"\0", sequence)

    def rows(self, before: Hash, after: Hash) -> Generator[Item, None, Counts | None]:
        """Yields the rows of two roots that differ, and returns the counts."""
        if self._named.moves_head:
            counts, _ = yield from self._replaced((), before, after)
        else:
            counts, _ = yield from self._compared((), before, after)
        return counts

    def _replaced(self, path: Path, before: Hash, after: Hash) -> Generator[Item, None, _Summary]:
        """The rows of a directory that took the place of another: one, unless little differs."""
        rows: list[Item] = []
        known = len(self.extra)
        walk = self._compared(path, before, after, everything=True)
        try:
            while True:
                rows.append(next(walk))
        except StopIteration as stopped:
            yield from rows
            summary: _Summary = stopped.value
            return summary
        except _TooMany:
            del self.extra[known:]
            author = self._author_of(path)
            row = DirectoryRow(ChangeType.MODIFIED, MIXED if author is None else author, None)
            yield self._whole(path, row)
            return None, author

    def _compared(
        self, path: Path, before: Hash, after: Hash, *, everything: bool = False
    ) -> Generator[Item, None, _Summary]:
        """The rows at and below a directory of both sides; ``everything``: not only what has a name."""
        author = None if after != EMPTY_ROOT else self._author_of(path)
        first = self._differences(before, after)
        stack = [_Directory(path, ChangeType.MODIFIED, author, first, is_whole=everything)]
        while True:
            directory = stack[-1]
            opened = yield from self._children(directory, everything)
            if opened is not None:
                stack.append(opened)
                continue
            stack.pop()
            counts, author = directory.summary()
            row = DirectoryRow(directory.change, MIXED if author is None else author, counts)
            key = row_key(path_prefix(directory.path), self._sequence)
            if directory.is_whole:
                self.extra.append(key)
            yield key, encode_row(row)
            if not stack:
                return counts, author
            stack[-1].add(counts, author)

    def _children(self, directory: _Directory, everything: bool) -> Generator[Item, None, _Directory | None]:
        """The rows of a directory's entries up to one that must be opened first, which is returned."""
        prefix, end, sums = directory.prefix, self._key_end, directory.sums
        for name, old, new in directory.remaining:
            if everything:
                self._left -= 1
                if self._left < 0:
                    raise _TooMany
            if (old is None or old.totals is None) and (new is None or new.totals is None):
                author = 0 if self._has_one_author else self._author_of((*directory.path, name))
                key = prefix + name.encode("utf-8") + end
                if directory.is_whole:
                    self.extra.append(key)
                yield key, encode_row(path_row(old, new, author, None))
                sums[0 if old is None else 2 if new is None else 1] += 1
                if author != directory.author:
                    directory.add_author(author)
                continue
            path = (*directory.path, name)
            author = self._author_of(path)
            counts = counts_of_sides(old, new)
            if old is not None and new is not None and is_directory(old) and is_directory(new):
                if everything or (path in self._named.above and path not in self._named.replaced):
                    author = author if _is_empty(new) else None
                    remaining = self._differences(old.hash, new.hash)
                    whole = everything or directory.is_whole
                    return _Directory(path, ChangeType.MODIFIED, author, remaining, is_whole=whole)
                counts, author = yield from self._replaced(path, old.hash, new.hash)
            elif old is None and new is not None and self._is_opened(path, everything):
                opened = self._differences(EMPTY_ROOT, new.hash)
                return _Directory(path, ChangeType.ADDED, None, opened, is_whole=True)
            else:
                whole_row = self._whole(path, path_row(old, new, author, counts))
                if directory.is_whole:
                    self.extra.append(whole_row[0])
                yield whole_row
            directory.add(counts, author)
            sums = directory.sums
        return None

    def _is_opened(self, path: Path, everything: bool) -> bool:
        """Whether the entries of a new directory get rows of their own: several authors put them into it."""
        if everything or self._has_one_author:
            return False
        return path in self._named.above and self._author_of(path) is None

    def _differences(self, before: Hash, after: Hash) -> _Differences:
        return self._version.sibling(before).differences(self._version.sibling(after))

    def _whole(self, path: Path, row: PathRow) -> Item:
        return row_key(whole_prefix(path), self._sequence), encode_row(row)


def _is_empty(directory: Entry) -> bool:
    return directory.hash == EMPTY_ROOT
