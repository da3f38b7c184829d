"""Merged trees and the edits that lead to them: functions of hashes, with new nodes in memory only.

The edits are the fewest that make the merged tree of the target's. A directory that comes or goes as a whole
is one edit, however much it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from svc.errors import PayloadTooLarge
from svc.plugin import (
    EMPTY_ROOT,
    Database,
    Entry,
    EntryKind,
    Hash,
    MergeConflict,
    MergeStrategy,
    Node,
    NodeReader,
    ObjectKind,
    Path,
    decode_node,
    differences,
    hash_object,
    merge,
    pause,
)
from svc_versions import models

__all__ = ["Counts", "Edit", "MergedTree", "edits_between", "merge_trees"]

_PAUSE_EVERY = 1024


class Edit(Struct, frozen=True):
    """One path to change, with what stands there and what shall; None for nothing.

    ``source`` is the path where the other version has what comes; None: the same path.
    """

    path: Path
    before: Entry | None
    after: Entry | None
    source: Path | None = None


class Counts(models.Counts, frozen=True):
    """How many files and links edits add, modify and delete."""

    @classmethod
    def of(cls, edits: Iterable[Edit]) -> Counts:
        """Counts edits; directories count by what they hold."""
        added = modified = deleted = 0
        for edit in edits:
            gone, come = _leaves(edit.before), _leaves(edit.after)
            if gone == come == 1 and _is_leaf(edit.before) and _is_leaf(edit.after):
                modified += 1
            else:
                added += come
                deleted += gone
        return cls(added, modified, deleted)


class MergedTree(Struct, frozen=True):
    """The outcome of a merge in memory; no edits when there are conflicts that nothing decided.

    ``conflicts`` are all, also those that a strategy decided.
    """

    edits: list[Edit]
    conflicts: list[MergeConflict]


class _MemoryNodes:
    def __init__(self, database: Database, limit: int | None) -> None:
        self._stored = database.objects
        self._new: dict[Hash, Node] = {}
        self._reads = 0
        self._limit = limit

    def read_node(self, node_hash: Hash, /) -> Node:
        """Returns a node; pauses now and then, so that a merge ends when its client leaves."""
        self._reads += 1
        if self._reads % _PAUSE_EVERY == 0:
            pause()
            if self._limit is not None and self._reads > self._limit:
                raise PayloadTooLarge(
                    "More differs than one merge may look at; merge at the shell, or in parts.",
                    limit=self._limit,
                )
        node = self._new.get(node_hash)
        return node if node is not None else self._stored.read_node(node_hash)

    def is_stored(self, entry: Entry) -> bool:
        return entry.hash not in self._new or self._stored.holds(entry)

    def write_node(self, payload: bytes, node: Node | None = None, /) -> Hash:
        node_hash = hash_object(ObjectKind.NODE, payload)
        self._new[node_hash] = node if node is not None else decode_node(payload)
        return node_hash


def merge_trees(
    database: Database,
    base: Hash | None,
    ours: Hash,
    theirs: Hash,
    strategy: MergeStrategy,
    limit: int | None = None,
) -> MergedTree:
    """Merges two trees three-way without writing anything.

    ``base`` is the root of the common base; None counts as the empty tree, so that whatever differs
    conflicts. ``limit`` is how many directory nodes it may look at, one as often as it is met; None: as many
    as differ.
    """
    store = _MemoryNodes(database, limit)
    result = merge(store, EMPTY_ROOT if base is None else base, ours, theirs, strategy)
    edits = [] if result.root is None else list(edits_between(store, ours, result.root, store.is_stored))
    return MergedTree(edits, result.conflicts)


def edits_between(
    store: NodeReader, before: Hash, after: Hash, is_stored: Callable[[Entry], bool] = lambda entry: True
) -> Iterator[Edit]:
    """Yields the fewest edits that make one tree of another, in path order.

    ``is_stored`` says whether the database holds a directory of the second tree. One that it does not hold,
    since both sides had a part in it, comes entry by entry.
    """
    stack: list[tuple[Path, Iterator[tuple[str, Entry | None, Entry | None]]]] = [
        ((), differences(store, before, after))
    ]
    count = 0
    while stack:
        prefix, remaining = stack[-1]
        for name, old, new in remaining:
            count += 1
            if count % _PAUSE_EVERY == 0:
                pause()
            path: Path = (*prefix, name)
            if _is_container(old) and _is_container(new) and not _is_empty(new):
                assert old is not None
                assert new is not None
                stack.append((path, differences(store, old.hash, new.hash)))
                break
            if new is not None and _is_container(new) and not is_stored(new):
                if old is not None:
                    yield Edit(path, old, None)
                stack.append((path, differences(store, EMPTY_ROOT, new.hash)))
                break
            yield Edit(path, old, new)
        else:
            stack.pop()


def _is_leaf(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is not EntryKind.DIRECTORY


def _is_container(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.DIRECTORY


def _is_empty(entry: Entry | None) -> bool:
    below = None if entry is None else entry.totals
    return below is not None and not (below.files or below.directories or below.symlinks)


def _leaves(entry: Entry | None) -> int:
    if entry is None:
        return 0
    if entry.totals is None:
        return 1
    return entry.totals.files + entry.totals.symlinks
