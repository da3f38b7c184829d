"""A user tree in memory: its leaves by path, with the rules that the database has for writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from svc_sync.tree import FULL, Application, Leaf, TreeReader
from svc_sync.values import Directory, Value

from svc.errors import Conflict
from svc.plugin import Path

__all__ = ["MemoryTree", "rebuilt"]


class MemoryTree(TreeReader):
    def __init__(self, leaves: dict[Path, Value] | None = None) -> None:
        self.leaves: dict[Path, Value] = {}
        self._below: Counter[Path] = Counter()
        for path, value in (leaves or {}).items():
            self._set(path, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryTree) and self.leaves == other.leaves

    __hash__ = None

    def copy(self) -> MemoryTree:
        twin = MemoryTree()
        twin.leaves, twin._below = dict(self.leaves), Counter(self._below)
        return twin

    def leaf(self, path: Path) -> Leaf:
        found = self.leaves.get(path)
        return FULL if found is None and self._below[path] else found

    def names(self, path: Path) -> Iterator[str]:
        depth = len(path)
        return iter(sorted({p[depth] for p in self.leaves if len(p) > depth and p[:depth] == path}))

    def below(self, path: Path) -> list[tuple[Path, Value]]:
        return [(p, v) for p, v in sorted(self.leaves.items()) if p[: len(path)] == path]

    def put(self, path: Path, value: Value) -> None:
        """Puts a leaf as a caller of the database may; raises Conflict where it must not stand."""
        if self.is_blocked(path):
            raise Conflict("A file stands above.")
        there = self.leaf(path)
        if there is FULL or (there is not None and (type(there) is Directory or type(value) is Directory)):
            raise Conflict("A directory stands there, or is to be made where something is.")
        for depth in range(1, len(path)):
            if path[:depth] in self.leaves:
                self._unset(path[:depth])
        self._set(path, value)

    def remove(self, path: Path, now_ms: int) -> None:
        """Removes what is at and below a path; a directory that lost its last entry stays, empty."""
        gone = self.below(path)
        if not gone:
            raise Conflict("Nothing is there.")
        for one, _ in gone:
            self._unset(one)
        if len(path) > 1 and not self._below[path[:-1]]:
            self._set(path[:-1], Directory(now_ms))

    def is_blocked(self, path: Path) -> bool:
        found = [self.leaves.get(path[:depth]) for depth in range(1, len(path))]
        return any(value is not None and type(value) is not Directory for value in found)

    def take(self, edits: Application) -> None:
        """Does what registers ask for; complains of edits that a database would refuse."""
        for path in edits.removed:
            if path in self.leaves:
                self._unset(path)
            else:
                assert not self._below[path], f"a directory goes that holds something: {path}"
        for path, value in edits.put:
            assert not self._below[path], f"a file is put where a directory is: {path}"
            assert not self.is_blocked(path), f"a file is put below a file: {path}"
            for depth in range(1, len(path)):
                if path[:depth] in self.leaves:
                    self._unset(path[:depth])
            if path in self.leaves:
                self._unset(path)
            self._set(path, value)

    def _set(self, path: Path, value: Value) -> None:
        if path not in self.leaves:
            for depth in range(len(path)):
                self._below[path[:depth]] += 1
        self.leaves[path] = value

    def _unset(self, path: Path) -> None:
        del self.leaves[path]
        for depth in range(len(path)):
            self._below[path[:depth]] -= 1


def rebuilt(stable: dict[Path, Value], winners: dict[Path, Value]) -> dict[Path, Value]:
    """Returns the leaves of the tree by its definition, from everything that is stable and all registers."""
    live = {path: value for path, value in stable.items() if path not in winners}
    live.update((path, value) for path, value in winners.items() if value is not None)
    holders = {path[:depth] for path in live for depth in range(1, len(path))}
    for path in holders & live.keys():
        assert path in winners or type(live[path]) is Directory, f"a stable file is displaced: {path}"
    return {path: value for path, value in live.items() if path not in holders}
