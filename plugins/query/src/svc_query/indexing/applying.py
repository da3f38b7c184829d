"""Commits as the table takes them in: the difference between two trees, and nothing dear.

A batch of commits is one difference, from the tree before the first to the tree after the last. A directory
that came or went with many files, and whatever exceeds a bound, is left to a job.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence

from pyroaring import BitMap

from svc.plugin import CommitStep, Entry, EntryKind, Path, Version, ViewBatch, ViewStorage
from svc_query.index_configuration import directory_of
from svc_query.indexing import keys
from svc_query.indexing.reconciling import Extensions, Reconciler
from svc_query.indexing.rows import IndexRow, JobRow
from svc_query.indexing.table import Table

__all__ = ["SMALL_DIRECTORY", "IndexBatch", "new_job", "repair_index"]

LARGE_DIRECTORY = 2_000
"""A directory that comes or goes with more files than this is left to a job."""

MOST_CHANGES = 20_000
"""So many changed files of one batch are taken in at once."""

SMALL_DIRECTORY = 500
"""Where configurations change, so many files below them are brought in step at once."""

_CHANGES_PER_STEP = 32
_DIRECTORY = EntryKind.DIRECTORY
_HEAD = "HEAD"


class IndexBatch(ViewBatch):
    """A batch of commits, in the transactions of the kernel."""

    def __init__(self, table: Table, extensions: Extensions, storage: ViewStorage) -> None:
        self._table = table
        self._extensions = extensions
        self._storage = storage

    def apply(self, commits: Sequence[CommitStep], start: int) -> Generator[None]:
        """Takes commits in. A step is some changed files; its number depends on the commits alone."""
        before, after = commits[0].before, commits[-1].after
        if before.root == after.root:
            return
        if commits[0].is_collected:
            # What differed is not known any more: a job looks at everything, once the view has passed them.
            if start == 0:
                files = self._table.state.documents
                self._table.add_job(JobRow("", "tree", files, time.time_ns() // 1_000_000))
            self._table.change().sequence = commits[-1].commit.sequence
            return
        changes, left, configured = _changes(before, after)
        state = self._table.state
        if state.next_number == 1 and not state.types:
            # Nothing was made with other index types or parsers yet.
            self._extensions.note(state)
        reconciler = Reconciler(self._table, self._extensions, after, _owners(commits))
        large = _small_directories(configured, after, changes)
        if start == 0:
            for directory in configured:
                if reconciler.directory(directory):
                    self._table.note_configured(directory, commits[-1].commit.sequence)
                    if directory in large:
                        self._table.add_job(large[directory])
            for path in left:
                self._table.add_job(new_job(path, "tree", after))
        for step, at in enumerate(range(0, len(changes), _CHANGES_PER_STEP)):
            if step < start:
                continue
            if step > start:
                yield
                self._table.storage = self._storage
            for path, entry in changes[at : at + _CHANGES_PER_STEP]:
                reconciler.path(path, entry)
        self._table.change().sequence = commits[-1].commit.sequence

    def end(self) -> None:
        """Writes everything."""
        self._table.end()


def new_job(path: Path, reason: str, version: Version, until: int = 0) -> JobRow:
    """Returns a job over everything at and below a path; documents numbered below ``until`` are made anew."""
    entry = version.get(path)
    total = 1 if entry is None or entry.totals is None else entry.totals.files
    return JobRow("\x01".join(path), reason, total, time.time_ns() // 1_000_000, until=until)


def repair_index(table: Table, number: int, row: IndexRow, version: Version, *, damaged: bool = True) -> None:
    """Forgets the files of an index, and makes all documents anew, from what was found in their files before.

    They are taken into all indexes again then.
    """
    if damaged:
        table.tell_of_damage(row)
    row.manifest = None
    table.set_index(number, row)
    table.set_untaken(number, BitMap())
    table.add_job(new_job((), "repair", version, table.state.next_number))


def _owners(commits: Sequence[CommitStep]) -> Callable[[Path], bytes]:
    """Returns what says who wrote what stands at a path; empty where it is not known."""
    records = [record for step in commits for record in step.commit.transactions if record.ref == _HEAD]
    owners = {_owner(record.actor) for record in records}
    if len(owners) == 1 or sum(len(record.changes) for record in records) > MOST_CHANGES:
        only = owners.pop() if len(owners) == 1 else b""
        return lambda path: only
    by_path = {change.path: _owner(record.actor) for record in records for change in record.changes}

    def owner_of(path: Path) -> bytes:
        above = (path[:length] for length in range(len(path), -1, -1))
        return next((by_path[part] for part in above if part in by_path), b"")

    return owner_of


def _owner(actor: str | None) -> bytes:
    return b"" if actor is None else hashlib.blake2b(actor.encode(), digest_size=keys.OWNER_SIZE).digest()


def _small_directories(
    configured: Sequence[Path], after: Version, changes: list[tuple[Path, Entry | None]]
) -> dict[Path, JobRow]:
    """Adds the files below small directories to the changes; returns jobs for the others.

    What is added depends on the commits alone: steps are counted over it.
    """
    at_once = SMALL_DIRECTORY
    large: dict[Path, JobRow] = {}
    for directory in configured:
        job = new_job(directory, "configuration", after)
        if job.total > at_once:
            large[directory] = job
            continue
        at_once -= job.total
        changes += [(path, entry) for path, entry in after.walk_files(directory) if entry is not None]
    return large


def _changes(
    before: Version, after: Version
) -> tuple[list[tuple[Path, Entry | None]], list[Path], list[Path]]:
    """Returns (path, entry after) of files that differ, paths left to jobs, directories configured anew."""
    changes: list[tuple[Path, Entry | None]] = []
    left: list[Path] = []
    configured: list[Path] = []
    for path, old, new in _differing(before, after, left):
        if len(changes) >= MOST_CHANGES:
            left.append(())
            break
        changes.append((path, new))
        directory = directory_of(path)
        if directory is not None:
            configured.append(directory)
        del old
    return changes, left, configured


def _differing(
    before: Version, after: Version, left: list[Path]
) -> Iterator[tuple[Path, Entry | None, Entry | None]]:
    """Yields files and links that differ; notes large directories that came or went."""
    stack: list[tuple[Path, Iterator[tuple[str, Entry | None, Entry | None]]]] = [
        ((), before.differences(after))
    ]
    while stack:
        prefix, differences = stack[-1]
        for name, old, new in differences:
            path = (*prefix, name)
            if _is_file(old) or _is_file(new):
                yield path, old, new if _is_file(new) else None
            old_root, new_root = _directory(old), _directory(new)
            if old_root is None and new_root is None:
                continue
            if old_root is not None and new_root is not None:
                if old_root.hash != new_root.hash:
                    one, other = before.sibling(old_root.hash), after.sibling(new_root.hash)
                    stack.append((path, one.differences(other)))
                    break
                continue
            changed = old_root or new_root
            assert changed is not None, "one side is a directory"
            if changed.totals is not None and changed.totals.files > LARGE_DIRECTORY:
                left.append(path)
                continue
            side = before if old_root is not None else after
            for below, entry in side.walk_files(path):
                if entry is not None:
                    yield below, *((entry, None) if old_root is not None else (None, entry))
        else:
            stack.pop()


def _is_file(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.FILE


def _directory(entry: Entry | None) -> Entry | None:
    return entry if entry is not None and entry.kind is _DIRECTORY else None
