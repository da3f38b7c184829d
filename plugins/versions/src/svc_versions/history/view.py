"""The view of the history: for every path, the commits that touched it.

Commits flow in; rows by path, by fork and by commit stand in the view, the newest first. They are made from
the differences of the two trees of a commit, not from what it says it did, so that a restore, a promoted
fork or an import is told as exactly as a put.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from svc.database import Commit, TransactionRecord, Version, ViewStorage, reference_path
from svc.errors import InvalidInput
from svc.hashing import Hash
from svc.paths import Path
from svc.tree import Change, Entry, EntryKind
from svc_versions.history.rows import (
    MIXED,
    Author,
    ChangeType,
    CommitRow,
    Counts,
    DirectoryRow,
    FileRow,
    ForkRow,
    change_type_of,
    commit_prefix,
    encode_row,
    fork_prefix,
    is_same_content,
    path_prefix,
    row_key,
)

__all__ = ["HISTORY_VIEW", "HistoryView", "counts_of"]

HISTORY_VIEW = "versions.history"

_HEAD = "HEAD"
_FORKS = "forks"
_ADDED, _MODIFIED, _DELETED = Counts(1, 0, 0), Counts(0, 1, 0), Counts(0, 0, 1)


class HistoryView:
    """Follows the commit feed and keeps the commits of every path of HEAD, of every fork, and of all."""

    name = HISTORY_VIEW
    format = 1

    def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
        """Takes one commit in; a function of the commit and the trees before and after it."""
        _apply_forks(commit, before, storage)
        if commit.root == commit.parent_root:
            return
        records = [record for record in commit.transactions if _changes_head(record)]
        authors = _authors(records)
        recorder = _Recorder(commit.sequence, storage, _attribution(records, authors))
        for change in before.diff(after):
            recorder.take(change)
        row = CommitRow(commit.time_ms, commit.root, commit.parent_root, authors, recorder.finish())
        storage.put(row_key(commit_prefix(), commit.sequence), encode_row(row))


def counts_of(change: Change) -> Counts:
    """Returns what a difference adds to the counts of files and links; directories do not count."""
    had = change.before is not None and change.before.kind is not EntryKind.DIRECTORY
    has = change.after is not None and change.after.kind is not EntryKind.DIRECTORY
    if had:
        return _MODIFIED if has else _DELETED
    return _ADDED if has else Counts()


class _Directory:
    """A directory on the way from the root to the last difference, with what was found below it so far."""

    __slots__ = ("author", "change", "counts", "path")

    def __init__(self, path: Path, change: Change | None = None, author: int | None = None) -> None:
        self.path = path
        self.change = change
        self.author = author
        self.counts = Counts() if change is None else counts_of(change)

    def add(self, counts: Counts, author: int | None) -> None:
        self.counts = self.counts.plus(counts)
        if author is not None:
            self.author = author if self.author in (None, author) else MIXED


class _Recorder:
    """Writes the rows of one commit's differences, which come in path order; holds one path at a time."""

    def __init__(self, sequence: int, storage: ViewStorage, author_of: Callable[[Path], int | None]) -> None:
        self._sequence = sequence
        self._storage = storage
        self._author_of = author_of
        self._way = [_Directory(())]

    def take(self, change: Change) -> None:
        path = change.path
        while self._way[-1].path != path[: len(self._way[-1].path)]:
            self._leave()
        while len(self._way) < len(path):
            self._way.append(_Directory(path[: len(self._way)]))
        author = self._author_of(path)
        if _is_directory(change.before) or _is_directory(change.after):
            self._way.append(_Directory(path, change, author))
            return
        self._write(path, _file_row(change, author))
        self._way[-1].add(counts_of(change), author)

    def finish(self) -> Counts:
        while len(self._way) > 1:
            self._leave()
        root = self._way[0]
        self._write((), _directory_row(root))
        return root.counts

    def _leave(self) -> None:
        directory = self._way.pop()
        change = directory.change
        if change is not None and change.after is not None and not _is_directory(change.after):
            self._write(directory.path, _file_row(change, directory.author))
        else:
            self._write(directory.path, _directory_row(directory))
        self._way[-1].add(directory.counts, directory.author)

    def _write(self, path: Path, row: FileRow | DirectoryRow) -> None:
        self._storage.put(row_key(path_prefix(path), self._sequence), encode_row(row))


def _file_row(change: Change, author: int | None) -> FileRow:
    entry = change.after or change.before
    assert entry is not None, "a difference has a side"
    kind = change_type_of(change)
    if change.before is not None and change.after is not None and is_same_content(change.before, entry):
        kind = ChangeType.UNCHANGED
    return FileRow(
        kind, MIXED if author is None else author, int(entry.kind), entry.size, entry.hash, entry.content_type
    )


def _directory_row(directory: _Directory) -> DirectoryRow:
    kind = ChangeType.MODIFIED if directory.change is None else change_type_of(directory.change)
    author = MIXED if directory.author is None else directory.author
    return DirectoryRow(kind, author, directory.counts)


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.DIRECTORY


# -- who did it ------------------------------------------------------------------------------------


def _changes_head(record: TransactionRecord) -> bool:
    """Whether a transaction changed paths of HEAD's tree, or moved HEAD."""
    return any(
        change.path == (_HEAD,) if change.kind == "ref" else record.ref == _HEAD and not change.system
        for change in record.changes
    )


def _authors(records: Iterable[TransactionRecord]) -> tuple[Author, ...]:
    return tuple(dict.fromkeys(Author(record.actor, record.message) for record in records))


def _attribution(
    records: list[TransactionRecord], authors: tuple[Author, ...]
) -> Callable[[Path], int | None]:
    """Returns the function that says who changed a path: the last who named it, or what it lies in."""
    if len(authors) <= 1:
        return lambda path: 0
    numbers = {author: number for number, author in enumerate(authors)}
    last: dict[Path, tuple[int, int]] = {}
    for order, record in enumerate(records):
        number = numbers[Author(record.actor, record.message)]
        for change in record.changes:
            if change.kind == "ref":
                if change.path == (_HEAD,):
                    last[()] = (order, number)
            elif not change.system:
                last[change.path] = (order, number)
                if change.source is not None and change.kind == "move":
                    last[change.source] = (order, number)

    def author_of(path: Path) -> int | None:
        named = [last[path[:length]] for length in range(len(path) + 1) if path[:length] in last]
        return max(named)[1] if named else None  # None: a parent, which appeared for what is in it.

    return author_of


# -- forks -----------------------------------------------------------------------------------------


def _apply_forks(commit: Commit, before: Version, storage: ViewStorage) -> None:
    records: dict[str, list[TransactionRecord]] = {}
    for record in commit.transactions:
        for name in _forks_of(record):
            records.setdefault(name, []).append(record)
    if not records:
        return
    system_before = before.sibling(commit.parent_system_root)
    system_after = before.sibling(commit.system_root)
    for name in sorted(records):
        left, right = _fork_root(system_before, name), _fork_root(system_after, name)
        if left == right:
            continue
        counts = Counts()
        if left is not None and right is not None:
            for change in before.sibling(left).diff(before.sibling(right)):
                counts = counts.plus(counts_of(change))
        row = ForkRow(commit.time_ms, right, left, _authors(records[name]), counts)
        storage.put(row_key(fork_prefix(name), commit.sequence), encode_row(row))


def _forks_of(record: TransactionRecord) -> set[str]:
    names = {
        "/".join(change.path[1:])
        for change in record.changes
        if change.kind == "ref" and change.path[0] == _FORKS
    }
    kind, _, name = record.ref.partition("/")
    if kind == _FORKS and any(change.kind != "ref" and not change.system for change in record.changes):
        names.add(name)
    return names


def _fork_root(system: Version, name: str) -> Hash | None:
    try:
        entry = system.get(reference_path(f"{_FORKS}/{name}"))
    except InvalidInput:
        return None
    return None if entry is None else entry.hash
