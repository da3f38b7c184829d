"""The model: a version is a whole tree in memory, and every operation a function of trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from blake3 import blake3

__all__ = ["Conflict", "Entry", "Fork", "Model", "Snapshot", "Tree"]


class Entry(NamedTuple):
    """A file: what it holds, and the time that it was given."""

    content: bytes
    stamp: int

    @property
    def hash(self) -> str:
        """The content hash, in hex."""
        return blake3(self.content).hexdigest()


Tree = Mapping[str, Entry]


class Conflict(NamedTuple):
    """A path that both sides of a merge changed, and not in the same way."""

    path: str
    kind: str
    base: Entry | None
    ours: Entry | None
    theirs: Entry | None


@dataclass
class Snapshot:
    """A named version."""

    root: str
    kind: str
    metadata: Mapping[str, object]


@dataclass
class Fork:
    """A branch: where it is, and what it was last in common with the rest."""

    root: str
    base: str


@dataclass
class Model:
    """One database.

    Attributes:
        trees: every version that the database must be able to read, by its root hash.
        head: HEAD's root hash.
        moves: every root that HEAD has had, in order.
        snapshots: by name, oldest first.
        forks: the active ones by name, oldest first.
    """

    head: str
    trees: dict[str, Tree] = field(default_factory=dict)
    moves: list[str] = field(default_factory=list)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    forks: dict[str, Fork] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trees.setdefault(self.head, {})
        self.moves.append(self.head)

    def know(self, root: str, tree: Tree) -> None:
        """Takes note of a version; a root hash always means one tree."""
        known = self.trees.setdefault(root, dict(tree))
        assert known == tree, f"{root} is two trees: {sorted(known)} and {sorted(tree)}"

    def move_head(self, root: str, tree: Tree) -> None:
        """HEAD is at a version now."""
        self.know(root, tree)
        if root != self.head:
            self.head = root
            self.moves.append(root)

    def root_of(self, place: str) -> str:
        """The root of HEAD, or of a fork."""
        return self.head if place == "HEAD" else self.forks[place].root

    def tree_of(self, place: str) -> Tree:
        """The tree of HEAD, or of a fork."""
        return self.trees[self.root_of(place)]

    def set_place(self, place: str, root: str, tree: Tree) -> None:
        """HEAD or a fork is at a version now."""
        if place == "HEAD":
            self.move_head(root, tree)
        else:
            self.know(root, tree)
            self.forks[place].root = root


def below(path: str, directory: str) -> bool:
    """Whether a path is a directory, or lies in it."""
    return path == directory or path.startswith(directory + "/")


def kind_of(tree: Tree, path: str) -> str | None:
    """``file`` or ``directory``; None for nothing, and for a directory without files."""
    if path in tree:
        return "file"
    return "directory" if any(below(name, path) for name in tree) else None


def has_file_above(tree: Tree, path: str) -> bool:
    """Whether a file stands where a parent of a path would have to be."""
    return any(path != name and below(path, name) for name in tree)


def in_the_way(tree: Tree, path: str) -> bool:
    """Whether no file can be put at a path: a directory is there, or a file above."""
    return kind_of(tree, path) == "directory" or has_file_above(tree, path)


def is_mixed(*trees: Tree) -> bool:
    """Whether a path is a file in one of some trees, and a directory in another."""
    names = {name for tree in trees for name in tree}
    return any(one != other and below(one, other) for one in names for other in names)


def without(tree: Tree, path: str) -> Tree:
    """A tree without a file, or without a directory and what is below."""
    return {name: entry for name, entry in tree.items() if not below(name, path)}


def move(tree: Tree, source: str, destination: str) -> Tree:
    """A tree in which a file or directory has another path, in place of a file that was there."""
    moved = {
        destination + name.removeprefix(source): entry for name, entry in tree.items() if below(name, source)
    }
    return {**without(without(tree, source), destination), **moved}


def restore(tree: Tree, other: Tree, path: str) -> Tree:
    """A tree in which a path is as in another tree."""
    return {**without(tree, path), **{name: entry for name, entry in other.items() if below(name, path)}}


def changes(before: Tree, after: Tree) -> dict[str, tuple[Entry | None, Entry | None]]:
    """Both sides of every file that differs."""
    return {
        path: (before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }


def change_type(before: Entry | None, after: Entry | None) -> str:
    """What happened to a file, seen by its content."""
    if before is None:
        return "added"
    if after is None:
        return "deleted"
    return "unchanged" if before.content == after.content else "modified"


def merge(
    base: Tree, ours: Tree, theirs: Tree, strategy: Literal["fail", "ours", "theirs"]
) -> tuple[Tree, list[Conflict]]:
    """The merged tree, and every conflict whether a strategy decided it or not."""
    merged: dict[str, Entry] = {}
    conflicts = []
    for path in sorted(base.keys() | ours.keys() | theirs.keys()):
        before, mine, their = base.get(path), ours.get(path), theirs.get(path)
        if alike(mine, their):
            taken = later(mine, their, before)
        elif alike(mine, before):
            taken = their
        elif alike(their, before):
            taken = mine
        else:
            kind = "modify_modify"
            if before is None:
                kind = "add_add"
            elif mine is None or their is None:
                kind = "modify_delete"
            conflicts.append(Conflict(path, kind, before, mine, their))
            taken = their if strategy == "theirs" else mine
        if taken is not None:
            merged[path] = taken
    return merged, conflicts


def alike(one: Entry | None, other: Entry | None) -> bool:
    """Whether two entries say the same; a time alone is no change."""
    return (one and one.content) == (other and other.content)


def later(mine: Entry | None, their: Entry | None, before: Entry | None) -> Entry | None:
    """Of two entries with one content the one with the later time, unless only one side gave it a time."""
    if mine is None or their is None or before == their:
        return mine
    return their if before == mine or their.stamp > mine.stamp else mine


def history_of(model: Model, path: str) -> list[tuple[str, str, Entry | None]]:
    """(change, version, entry) of every move of HEAD that changed a file's content, newest first."""
    found = []
    for before, after in zip(model.moves, model.moves[1:], strict=False):
        old, new = model.trees[before].get(path), model.trees[after].get(path)
        if old != new and change_type(old, new) != "unchanged":
            found.append((change_type(old, new), after, new))
    return found[::-1]


def snapshot_history(model: Model, names: list[str], path: str) -> list[tuple[str, str, Entry | None]]:
    """(snapshot, change, entry) of a file over the snapshots that are named oldest first; newest first."""
    found: list[tuple[str, str, Entry | None]] = []
    previous: Entry | None = None
    for name in names:
        entry = model.trees[model.snapshots[name].root].get(path)
        if entry is not None or previous is not None:
            found.append((name, change_type(previous, entry), entry))
        previous = entry
    return found[::-1]
