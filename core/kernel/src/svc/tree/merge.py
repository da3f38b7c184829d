"""Three-way merge of trees, in O(changes of theirs * log n).

The result has the changes of both sides since their common base, or lists what conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from svc.errors import InvalidInput
from svc.hashing import Hash
from svc.paths import Path
from svc.tree.diff import differences
from svc.tree.entry import Entry, EntryKind
from svc.tree.read import lookup, totals
from svc.tree.store import NodeStore
from svc.tree.working import WorkingTree

__all__ = ["ConflictKind", "MergeConflict", "MergeResult", "MergeStrategy", "merge"]

MergeStrategy = Literal["fail", "ours", "theirs"]
ConflictKind = Literal["modify_modify", "modify_delete", "add_add", "file_directory"]


class MergeConflict(Struct, frozen=True):
    """A path that both sides changed, and not in the same way.

    Attributes:
        base: the entry before both; None if there was none.
        ours: the entry on our side; None if it is gone.
        theirs: the entry on their side; None if it is gone.
        kind: ``modify_modify``, ``modify_delete`` (either way round), ``add_add``, or ``file_directory``
            (a file or link on one side, a directory with changes on the other).
    """

    path: Path
    base: Entry | None
    ours: Entry | None
    theirs: Entry | None
    kind: ConflictKind


class MergeResult(Struct, frozen=True):
    """The outcome of a merge, with all conflicts in path order, also those that a strategy decided.

    ``root`` is that of the merged tree; None when there are conflicts and the strategy is ``fail``.
    """

    root: Hash | None
    conflicts: list[MergeConflict]


def merge(
    store: NodeStore, base: Hash, ours: Hash, theirs: Hash, strategy: MergeStrategy = "fail"
) -> MergeResult:
    """Merges two trees that have a common base, path by path.

    What one side alone changed is taken; what both changed alike is no conflict. Times of a file or link
    are no change of it: where nothing else differs, the later ones are taken. Directories are
    containers: their contents merge, and one that a side deleted goes unless the other side put
    or changed something in it. Times of directories follow from what they hold and never conflict; an
    empty directory has the later time of the two.

    Args:
        store: gives and takes nodes.
        base: root of the common base.
        ours: root of our side.
        theirs: root of their side.
        strategy: what decides a conflict: ``fail`` nothing (and nothing is written), ``ours`` or
            ``theirs`` that side.

    Raises:
        InvalidInput: there is no such strategy.
        CorruptRecord: a node that differs is damaged.
    """
    if strategy not in {"fail", "ours", "theirs"}:
        raise InvalidInput("The merge strategy must be 'fail', 'ours' or 'theirs'.", field="strategy")
    if theirs in {base, ours}:
        return MergeResult(ours, [])
    if ours == base:
        return MergeResult(theirs, [])
    run = _Merge(store, ours, strategy)
    run.merge_directory((), base, ours, theirs)
    if run.conflicts and strategy == "fail":
        return MergeResult(None, run.conflicts)
    latest_ms = max([totals(store, root).updated_ms for root in (base, ours, theirs)])
    return MergeResult(run.tree.write(latest_ms), run.conflicts)


class _Merge:
    def __init__(self, store: NodeStore, ours: Hash, strategy: MergeStrategy) -> None:
        self.tree = WorkingTree(store, ours)
        self.conflicts: list[MergeConflict] = []
        self._store = store
        self._strategy = strategy
        self._stack: list[tuple[Path, Iterator[tuple[str, Entry | None, Entry | None]], Hash | None]] = []
        self._deleted: list[Path] = []

    def merge_directory(self, path: Path, base: Hash | None, ours: Hash | None, theirs: Hash | None) -> None:
        self._stack.append((path, differences(self._store, base, theirs), ours))
        while self._stack:
            prefix, remaining, our_root = self._stack[-1]
            depth = len(self._stack)
            for name, before, after in remaining:
                mine = None if our_root is None else lookup(self._store, our_root, name)
                self._merge_entry((*prefix, name), before, mine, after)
                if len(self._stack) > depth:
                    break
            else:
                self._stack.pop()
        # Deepest first: a directory that their side deleted goes when nothing of ours is left in it.
        for deleted in reversed(self._deleted):
            if self.tree.get(deleted) is not None and self.tree.is_empty(deleted):
                self.tree.remove(deleted)

    def _merge_entry(self, path: Path, base: Entry | None, ours: Entry | None, theirs: Entry | None) -> None:
        if ours in (theirs, base):
            if ours != theirs:
                self._take(path, ours, theirs)
            return
        if _is_alike(ours, theirs):
            self._take_later(path, ours, theirs)
        elif _is_alike(ours, base):
            self._take(path, ours, theirs)
        elif _is_alike(theirs, base):
            return
        elif not (_is_leaf(ours) or _is_leaf(theirs)):
            self._merge_containers(path, base, ours, theirs)
        elif ours is None or theirs is None:
            # Where the base was a directory, both sides removed it and one put a file there.
            if _is_leaf(base):
                self._conflict(path, base, ours, theirs, "modify_delete")
            elif ours is None:
                self._take(path, ours, theirs)
        elif _is_leaf(ours) and _is_leaf(theirs):
            self._conflict(path, base, ours, theirs, "modify_modify" if _is_leaf(base) else "add_add")
        else:
            self._conflict(path, base, ours, theirs, "file_directory")

    def _merge_containers(
        self, path: Path, base: Entry | None, ours: Entry | None, theirs: Entry | None
    ) -> None:
        if base is None or _is_leaf(base):
            if ours is None or theirs is None:
                if ours is None:
                    self._take(path, ours, theirs)
                return
            base_root = None
        else:
            base_root = base.hash
        if ours is not None and theirs is not None and ours.hash == theirs.hash:
            if theirs.created_ms > ours.created_ms:
                self._take(path, ours, theirs)
            return
        if theirs is None:
            self._deleted.append(path)
        their_root = None if theirs is None else theirs.hash
        our_root = None if ours is None else ours.hash
        self._stack.append((path, differences(self._store, base_root, their_root), our_root))

    def _take_later(self, path: Path, ours: Entry | None, theirs: Entry | None) -> None:
        assert ours is not None
        assert theirs is not None
        if (theirs.updated_ms, theirs.created_ms) > (ours.updated_ms, ours.created_ms):
            self._take(path, ours, theirs)

    def _conflict(
        self, path: Path, base: Entry | None, ours: Entry | None, theirs: Entry | None, kind: ConflictKind
    ) -> None:
        self.conflicts.append(MergeConflict(path, base, ours, theirs, kind))
        if self._strategy == "theirs":
            self._take(path, ours, theirs)

    def _take(self, path: Path, ours: Entry | None, theirs: Entry | None) -> None:
        if ours is not None and (theirs is None or _is_leaf(ours) != _is_leaf(theirs)):
            self.tree.remove(path)
        if theirs is not None:
            self.tree.put(path, theirs)


def _is_alike(one: Entry | None, other: Entry | None) -> bool:
    """Whether two files or links are equal, apart from their times."""
    return (
        one is not None
        and other is not None
        and one.kind is other.kind is not EntryKind.DIRECTORY
        and (one.hash, one.size, one.content_type, one.target)
        == (other.hash, other.size, other.content_type, other.target)
    )


def _is_leaf(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is not EntryKind.DIRECTORY
