"""Random trees with a history, as plain dictionaries, and what a caller may see of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from authorization_model.rules import Caller, Path, may

__all__ = ["Node", "State", "View", "random_states", "text_of"]


class Node(NamedTuple):
    """A file (``f``) with its content, a link (``l``) with its target, or a directory (``d``)."""

    kind: str
    content: str = ""


State = dict[Path, Node]
DIRECTORIES: list[Path] = [(), ("a",), ("b",), ("a", "a"), ("a", "b"), ("b", "a"), ("a", "b", "a")]
FILES = [(*at, name) for at in DIRECTORIES for name in ("x.txt", "y.json")]
LINKS = [(*at, name) for at in DIRECTORIES[:5] for name in ("l", "m")]
GONE: Path = ("b", "none")


def text_of(path: Path) -> str:
    return "/" + "/".join(path)


def random_states(rng: random.Random) -> tuple[State, State, State]:
    """What a snapshot, HEAD and a fork hold: HEAD and the fork both come from the snapshot."""
    past: State = {}
    changed(rng, past, 10, 0)
    for at in LINKS:
        if rng.random() < 0.3:
            # Links l lead to what is no link, m to anything but m: so there is no circle.
            targets = [*FILES, *DIRECTORIES[1:], GONE]
            targets += [link for link in LINKS if at[-1] == "m" and link[-1] == "l"]
            add(past, at, Node("l", text_of(rng.choice(targets))))
    head, fork = dict(past), dict(past)
    changed(rng, head, 4, 4)
    changed(rng, fork, 3, 2)
    return past, head, fork


def add(state: State, path: Path, node: Node) -> None:
    for length in range(1, len(path)):
        state.setdefault(path[:length], Node("d"))
    state[path] = node


def changed(rng: random.Random, state: State, puts: int, deletes: int) -> None:
    for _ in range(deletes):
        if state:
            gone = rng.choice(sorted(state))
            for path in [path for path in state if path[: len(gone)] == gone]:
                del state[path]
    for _ in range(puts):
        add(state, rng.choice(FILES), Node("f", f'{{"n": {rng.randrange(8)}}}'))
    if rng.random() < 0.5:
        add(state, rng.choice(DIRECTORIES[1:]), Node("d"))


@dataclass(frozen=True)
class View:
    """A state as a caller sees it: ``head`` is given of the past, of which what is gone needs ``d``."""

    caller: Caller
    state: State
    head: State | None = None

    def node(self, path: Path) -> Node | None:
        return Node("d") if not path else self.state.get(path)

    def may(self, letter: str, path: Path) -> bool:
        node = self.node(path)
        return may(self.caller, letter, path, node is not None and node.kind == "d")

    def counts(self, path: Path) -> bool:
        """Whether what stood there once is still there, or the caller may see what was deleted."""
        return self.head is None or not path or path in self.head or may(self.caller, "d", path)

    def shows(self, path: Path) -> bool:
        return (self.may("r", path) or self.may("l", path)) and self.counts(path)

    def follow(self, path: Path, final: bool = True) -> tuple[Path, Node | None]:
        """Where a path leads by the links that the caller may see."""
        for length in range(1, len(path) + 1):
            link = self.state.get(path[:length])
            if link is None:
                return path, None
            if link.kind == "l" and (final or length < len(path)):
                if not self.shows(path[:length]):
                    return path, None
                target = tuple(part for part in link.content.split("/") if part)
                return self.follow(target + path[length:], final)
        return path, self.node(path)

    def find(self, path: Path, *letters: str, final: bool = True) -> tuple[str, Path]:
        """What a read of a path comes to: ``denied``, ``missing`` or the kind that is found, and where."""
        place, node = self.follow(path, final)
        is_directory = node is not None and node.kind == "d"
        if not letters:
            knows = is_directory and any(may(self.caller, one, place, True) for one in "rl")
            letters = ("l",) if knows else ("r",)
        ends = (path, place)
        if not all(may(self.caller, letter, end, is_directory) for letter in letters for end in ends):
            return "denied", place
        if node is None or not self.counts(place):
            return "missing", place
        return node.kind, place

    def below(self, path: Path) -> list[Path]:
        return sorted(at for at in self.state if len(at) > len(path) and at[: len(path)] == path)

    def children(self, path: Path) -> list[Path]:
        return [at for at in self.below(path) if len(at) == len(path) + 1]
