"""The tree that registers make: each change of a register becomes edits, in time that follows the changes.

    live = what is stable, and winners that are not deletions
    a path is a directory when anything live is below it, or when its winner is an empty directory
    a file or link that is such a directory too is *displaced*: a conflict, until it can stand again

Directories are implicit, so two members that each delete one of the last two files both end without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Literal

from msgspec import Struct

from svc.plugin import Path
from svc_sync.registers import Register, restate, winner
from svc_sync.values import Directory, Value

__all__ = ["FULL", "Application", "Leaf", "TreeReader", "apply", "value_of"]


class _Full(Enum):
    FULL = "full"


FULL = _Full.FULL
"""What stands at the path of a directory that holds something."""

Leaf = Value | Literal[_Full.FULL]
"""What stands at a path: a file or link, an empty directory, a directory with content (FULL), or nothing."""


def value_of(leaf: Leaf) -> Value:
    """Returns what a register may hold of what stands at a path: nothing of a directory with content."""
    return None if leaf is FULL else leaf


class TreeReader(ABC):
    """A state of the user tree."""

    @abstractmethod
    def leaf(self, path: Path) -> Leaf:
        """Returns what stands at a path."""

    @abstractmethod
    def names(self, path: Path) -> Iterator[str]:
        """Yields the names in a directory; only as many as are asked for are read."""


class Application(Struct, frozen=True):
    """What brings a tree to what its registers say.

    Attributes:
        removed: paths of leaves that go, those below a directory before the directory itself.
        put: what stands at paths then, in their order; the directories above them are made.
        restated: registers of stable files that are displaced now.
    """

    removed: list[Path]
    put: list[tuple[Path, Value]]
    restated: dict[Path, Register]


def apply(
    tree: TreeReader, changed: Iterable[Path], register_at: Callable[[Path], Register | None]
) -> Application:
    """Returns how the tree changes when some registers have.

    Args:
        tree: as it was before.
        changed: paths whose registers changed.
        register_at: returns the register of a path as it is now.
    """
    overlay = _Overlay(tree)
    winners = {path: _winner_at(register_at, path) for path in changed}
    emptied = _remove_what_lost(overlay, winners)
    restated: dict[Path, Register] = {}
    for path in sorted(winners):
        _put_winner(overlay, path, winners[path], register_at, restated)
    _let_directories_go(overlay, emptied, lambda path: _winner_at(register_at, path))
    return Application(*overlay.edits(), restated)


def _winner_at(register_at: Callable[[Path], Register | None], path: Path) -> Value:
    register = register_at(path)
    return None if register is None else winner(register)[1].value


def _remove_what_lost(overlay: _Overlay, winners: dict[Path, Value]) -> set[Path]:
    """Removes leaves that are not the winner; returns the paths."""
    gone = set()
    for path, value in winners.items():
        there = overlay.leaf(path)
        if there is None or there is FULL or there == value:
            continue
        overlay.remove(path)
        gone.add(path)
    return gone


def _put_winner(
    overlay: _Overlay,
    path: Path,
    value: Value,
    register_at: Callable[[Path], Register | None],
    restated: dict[Path, Register],
) -> None:
    """Puts a winner, unless it is displaced; a file above it gives way."""
    if value is None:
        return
    for depth in range(1, len(path)):
        above = path[:depth]
        there = overlay.leaf(above)
        if there is FULL:
            continue
        if there is None or type(there) is Directory:
            break
        if register_at(above) is None:
            # Its dot is forgotten: whoever took this path does not take the one above, and could put it here.
            restated[above] = restate(there)
        overlay.remove(above)
        break
    there = overlay.leaf(path)
    if there is not FULL and there != value:
        overlay.put(path, value)


def _let_directories_go(overlay: _Overlay, emptied: set[Path], winner_at: Callable[[Path], Value]) -> None:
    """From the deepest path upwards: directories that hold nothing go, what was displaced comes back."""
    by_depth: defaultdict[int, set[Path]] = defaultdict(set)
    for path in emptied:
        by_depth[len(path)].add(path)
    for depth in range(max(by_depth, default=0), 0, -1):
        for path in by_depth[depth]:
            if not overlay.is_vacant(path):
                continue
            value = winner_at(path)
            overlay.vacate(path)
            if value is not None:
                overlay.put(path, value)
            elif depth > 1:
                by_depth[depth - 1].add(path[:-1])


class _Overlay:
    """Pending edits over a tree, by path."""

    def __init__(self, tree: TreeReader) -> None:
        self._tree = tree
        self._leaves: dict[Path, Value] = {}
        self._below: defaultdict[Path, set[str]] = defaultdict(set)

    def leaf(self, path: Path) -> Leaf:
        """Returns what stands at a path. A directory that lost what it held is FULL until it is vacated."""
        if self._below.get(path):
            return FULL
        if path in self._leaves:
            return self._leaves[path]
        return self._tree.leaf(path)

    def put(self, path: Path, value: Value) -> None:
        self._leaves[path] = value
        for depth in range(len(path) - 1, -1, -1):
            names = self._below[path[:depth]]
            if path[depth] in names:
                break
            names.add(path[depth])

    def remove(self, path: Path) -> None:
        self._leaves[path] = None
        self._below[path[:-1]].discard(path[-1])

    def is_vacant(self, path: Path) -> bool:
        """Whether nothing stands at a path any more: nothing at all, or a directory that holds nothing."""
        if self._below.get(path):
            return False
        if path in self._leaves:
            return self._leaves[path] is None
        there = self._tree.leaf(path)
        if there is not FULL:
            return there is None
        return all(self._is_gone((*path, name)) for name in self._tree.names(path))

    def vacate(self, path: Path) -> None:
        """Removes the directory at a path, which holds nothing, if one is there."""
        if path not in self._leaves and self._tree.leaf(path) is not None:
            self.remove(path)

    def edits(self) -> tuple[list[Path], list[tuple[Path, Value]]]:
        """Returns what goes, the deepest first, and what comes, in order of paths."""
        gone: list[Path] = []
        put: list[tuple[Path, Value]] = []
        for path in sorted(self._leaves):
            now, before = self.leaf(path), self._tree.leaf(path)
            if now == before or (now is FULL and (before is None or type(before) is Directory)):
                continue
            if before is not None and (now is None or _is_directory(before) or _is_directory(now)):
                gone.append(path)
            if now is not None and now is not FULL:
                put.append((path, now))
        gone.sort(key=len, reverse=True)
        return gone, put

    def _is_gone(self, path: Path) -> bool:
        return not self._below.get(path) and path in self._leaves and self._leaves[path] is None


def _is_directory(leaf: Leaf) -> bool:
    return leaf is FULL or type(leaf) is Directory
