"""The view of the history: for every path, the commits that touched it.

Rows are made from the differences of the two trees of a commit, not from what it says it did, so that a
restore, a promoted fork or an import is recorded as exactly as a put.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice

from svc.errors import InvalidInput
from svc.plugin import (
    Commit,
    CommitStep,
    Hash,
    TransactionRecord,
    Version,
    View,
    ViewStorage,
    reference_path,
)
from svc_history.attribution import authors_of
from svc_history.collected import collected_rows, forget_listed, keys_of_operations
from svc_history.counting import Counter
from svc_history.recording import Item, head_rows
from svc_history.rows import Counts, ForkRow, encode_row, fork_prefix, row_key

__all__ = ["HISTORY_VIEW", "MOST_LISTED", "HistoryView", "commit_rows"]

HISTORY_VIEW = "versions.history"

MOST_LISTED = 1_000
"""How many differences of replaced directories, of a moved HEAD and of a fork a commit lists one by one."""

_FORKS = "forks"
_ROWS_PER_STEP = 2_000


class HistoryView(View):
    """Follows the commit feed and keeps the commits of every path of HEAD, of every fork, and of all.

    ``listed`` is how many differences of directories that a commit replaced have a row each; beyond that a
    directory has one row for all, and readers compare the trees. Answers are the same.
    """

    name = HISTORY_VIEW
    format = 3
    takes_collected = True

    def __init__(self, listed: int = MOST_LISTED) -> None:
        self._listed = listed

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> Generator[None]:
        """Takes one commit in; a step is a couple of thousand rows."""
        trees = None if after.is_collected else (before, after)
        yield from _in_steps(commit_rows(commit, trees, self._listed), storage, start)

    def collect(self, step: CommitStep, storage: ViewStorage, start: int = 0) -> Generator[None]:
        """Leaves of a commit what its record says; a step is a couple of thousand rows."""
        commit = step.commit
        forget_listed(storage, commit.sequence)
        gone: Iterator[tuple[bytes, bytes | None]] = ((key, None) for key in keys_of_operations(commit))
        yield from _in_steps(chain(gone, collected_rows(commit, _records_of_forks(commit))), storage, start)


def commit_rows(commit: Commit, trees: tuple[Version, Version] | None, listed: int) -> Iterator[Item]:
    """Yields all rows of one commit."""
    if trees is None:
        yield from collected_rows(commit, _records_of_forks(commit))
        return
    before, after = trees
    yield from _fork_rows(commit, before, listed)
    if commit.root != commit.parent_root:
        yield from head_rows(commit, before, after, listed)


def _in_steps(
    rows: Iterable[tuple[bytes, bytes | None]], storage: ViewStorage, start: int
) -> Generator[None]:
    """Writes rows, and takes those away that have no value; leaves out the steps that are done."""
    rows = iter(rows)
    step = 0
    while batch := list(islice(rows, _ROWS_PER_STEP)):
        if step >= start:
            if step > start:
                yield
            for key, value in batch:
                if value is None:
                    storage.delete(key)
                else:
                    storage.put(key, value)
        step += 1


def _records_of_forks(commit: Commit) -> dict[str, list[TransactionRecord]]:
    """The transactions that changed forks, by their names."""
    records: dict[str, list[TransactionRecord]] = {}
    for record in commit.transactions:
        for name in _forks_of(record):
            records.setdefault(name, []).append(record)
    return records


def _fork_rows(commit: Commit, before: Version, listed: int) -> Iterator[Item]:
    records = _records_of_forks(commit)
    if not records:
        return
    counter = Counter(listed)
    system_before = before.sibling(commit.parent_system_root)
    system_after = before.sibling(commit.system_root)
    for name in sorted(records):
        left, right = _fork_root(system_before, name), _fork_root(system_after, name)
        if left == right:
            continue
        counts: Counts | None = Counts()
        if left is not None and right is not None:
            counts = counter.count(before.sibling(left), before.sibling(right))
        row = ForkRow(commit.time_ms, right, left, authors_of(records[name]), counts)
        yield row_key(fork_prefix(name), commit.sequence), encode_row(row)


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
