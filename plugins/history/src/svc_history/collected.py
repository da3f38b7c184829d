"""The rows of a commit whose trees a collection has destroyed: what its record alone says.

A row says that the commit named a path; what it did there is not known. One that moved, copied or deleted a
path may have reached everything below it, one that moved HEAD may have reached everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from svc.plugin import Commit, Path, TransactionRecord, ViewStorage
from svc_history.attribution import NamedPaths, attribution, authors_of, records_of_head
from svc_history.recording import Item
from svc_history.rows import (
    MIXED,
    CollectedRow,
    CommitRow,
    ForkRow,
    commit_prefix,
    decode_extra,
    encode_row,
    extra_prefix,
    fork_prefix,
    path_prefix,
    row_key,
    whole_prefix,
)

__all__ = ["collected_rows", "forget_listed", "keys_of_operations"]

_REACHING = ("delete", "move", "copy")


def collected_rows(commit: Commit, forks: dict[str, list[TransactionRecord]]) -> Iterator[Item]:
    """Yields the rows of a commit without its trees."""
    for name in sorted(forks):
        records = forks[name]
        root = next((one.root for one in reversed(records) if one.ref == f"forks/{name}"), None)
        may_begin = any(change.kind == "ref" for one in records for change in one.changes)
        row = ForkRow(
            commit.time_ms, root, None, authors_of(records), None, is_collected=True, may_begin=may_begin
        )
        yield row_key(fork_prefix(name), commit.sequence), encode_row(row)
    if commit.root == commit.parent_root:
        return
    records = records_of_head(commit)
    authors = authors_of(records)
    author_of = attribution(records, authors)
    for path, reaches, is_deletion in _named(records):
        author = author_of(path)
        prefix = whole_prefix(path) if reaches else path_prefix(path)
        value = CollectedRow(MIXED if author is None else author, is_deletion)
        yield row_key(prefix, commit.sequence), encode_row(value)
    whole = CommitRow(commit.time_ms, commit.root, commit.parent_root, authors, None)
    yield row_key(commit_prefix(), commit.sequence), encode_row(whole)


def keys_of_operations(commit: Commit) -> Iterator[bytes]:
    """Yields the keys that rows of a commit may have, made with its trees, of paths that operations name."""
    named = NamedPaths.of(records_of_head(commit))
    paths = named.replaced | named.above
    if named.moves_head:
        paths.add(())
    for path in sorted(paths):
        yield row_key(path_prefix(path), commit.sequence)
        yield row_key(whole_prefix(path), commit.sequence)


def forget_listed(storage: ViewStorage, sequence: int) -> None:
    """Deletes the rows of a commit that its operations do not name, and the lists of them."""
    for key, value in list(storage.scan(extra_prefix(sequence))):
        for listed in decode_extra(value):
            storage.delete(listed)
        storage.delete(key)


def _named(records: list[TransactionRecord]) -> Iterator[tuple[Path, bool, bool]]:
    """Yields each path that operations name, whether they reach below it, and whether it was deleted.

    Nothing is yielded of what lies at or below a path that is reached as a whole: a path has one row of a
    commit at most, its own or that of one above.
    """
    named = NamedPaths.of(records)
    if named.moves_head:
        yield (), True, False
        return
    reached: set[Path] = set()
    deleted: set[Path] = set()
    for record in records:
        for change in record.changes:
            if record.ref != "HEAD" or change.system or change.kind == "ref":
                continue
            if change.kind in _REACHING:
                reached.add(change.path)
            if change.kind == "move" and change.source is not None:
                reached.add(change.source)
            if change.kind == "delete":
                deleted.add(change.path)
            else:
                deleted.discard(change.path)

    def is_below(path: Path) -> bool:
        return any(path[:length] in reached for length in range(len(path)))

    for path in sorted(reached | named.replaced | named.above):
        if not is_below(path):
            yield path, path in reached, path in deleted
