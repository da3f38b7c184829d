"""What every write of a schedule was, who has seen it, and the law about that."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from svc_sync import registers
from svc_sync.scopes import REFERENCES, SYSTEM, is_of_user
from svc_sync.values import CONTENT, Directory, Document, Reference, Value, rank

from svc.plugin import Path
from sync_model.memory_tree import rebuilt
from sync_model.node import Node, rule_of

__all__ = ["Broken", "History", "check_agreement", "identity_of"]

_RULES = registers.Rule


class Broken(AssertionError):
    """The law does not hold."""


class Write(NamedTuple):
    node: int
    path: Path
    kind: str
    identity: bytes | None
    seen: frozenset[int]


def identity_of(value: Value) -> bytes | None:
    """What a write is known by: its content, whatever its times are."""
    if isinstance(value, Document):
        return value.data
    if isinstance(value, Reference):
        return value.root
    return None if value is None or isinstance(value, Directory) else value.hash


class History:
    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.seen: dict[int, defaultdict[Path, set[int]]] = {}
        self.lost: set[int] = set()
        self.returned: set[Path] = set()
        self.made_again: set[int] = set()
        self._covering: defaultdict[tuple[Path, bytes], set[int]] = defaultdict(set)

    def add_node(self, node: int, seen: dict[Path, set[int]] | None = None) -> None:
        self.seen[node] = defaultdict(set, {path: set(ops) for path, ops in (seen or {}).items()})

    def write(
        self, node: Node, path: Path, before: Value, after: Value, *, sees: bool = True, again: bool = False
    ) -> int:
        """A write that was acknowledged; ``sees``: whether it was made by somebody who saw what was there.

        ``again``: a write of a log that was put back, of which nobody knows who saw it.
        """
        seen = self.seen[node.node_id][path]
        number = len(self.writes)
        old, new = identity_of(before), identity_of(after)
        if rank(after) == CONTENT:
            kind = "put"
        elif after is None and (old is not None or again):
            kind = "delete"
        else:
            kind = "directory"
        self.writes.append(Write(node.node_id, path, kind, new, frozenset(seen) if sees else frozenset()))
        seen.add(number)
        if old is not None and old != new and sees:
            self._covering[path, old].add(number)
        return number

    def resolution(self, node: Node, path: Path, gone: list[Value], chosen: Value) -> None:
        """A choice: all versions are replaced by what was chosen."""
        self.write(node, path, None, chosen)
        number = len(self.writes) - 1
        if chosen is None:
            self.writes[number] = self.writes[number]._replace(kind="delete")
        for value in gone:
            if rank(value) == CONTENT and identity_of(value) != identity_of(chosen):
                self._covering[path, identity_of(value)].add(number)

    def replaced(self, path: Path, identity: bytes, number: int) -> None:
        self._covering[path, identity].add(number)

    def forget_unseen(self, node: int, then: dict[Path, set[int]]) -> None:
        """The node's data is what it was: a write that nobody else has seen is lost."""
        self.seen[node] = defaultdict(set, {path: set(ops) for path, ops in then.items()})
        known = {op for seen in self.seen.values() for ops in seen.values() for op in ops}
        self.lost |= set(range(len(self.writes))) - known - self.made_again

    def covered(self, path: Path, identity: bytes) -> bool:
        return bool(self._covering[path, identity] - self.lost - self.made_again)

    def may_be_covered(self, path: Path, identity: bytes) -> bool:
        """Whether it was replaced by a log that cannot be trusted: nobody knows for certain."""
        return bool(self._covering[path, identity] & self.made_again)

    # -- the law

    def check(self, node: Node) -> None:
        """At a node that knows everything: no write is lost, no deletion undone, nothing comes back."""
        shown = {path: identity_of(value) for path, value in node.tree.leaves.items()}
        shown |= {path: identity_of(value) for path, value in node.system.items()}
        self._check_contents(node, shown)
        self._check_deletions(node, shown)
        self._check_system(shown)

    def _check_contents(self, node: Node, shown: dict[Path, bytes | None]) -> None:
        listed = node.conflicts()
        roots: defaultdict[str, set[bytes]] = defaultdict(set)
        for root, name, _ in node.names().values():
            roots[name].add(root)
        by_content: defaultdict[tuple[Path, bytes], int] = defaultdict(int)
        for number, one in enumerate(self.writes):
            if one.kind == "put" and number not in self.lost and one.path[:2] != SYSTEM:
                by_content[one.path, one.identity] += 1
        for (path, identity), count in by_content.items():
            is_shown = shown.get(path) == identity
            if self.covered(path, identity):
                if is_shown and count == 1:
                    raise Broken("came back", path, identity)
                continue
            if self.may_be_covered(path, identity):
                continue
            if path[:2] == REFERENCES:
                is_shown = is_shown or identity in roots[path[-1]]
            if not is_shown and all(identity_of(row.loser) != identity for row in listed.get(path, ())):
                raise Broken("vanished without a record", path, identity)

    def _check_deletions(self, node: Node, shown: dict[Path, bytes | None]) -> None:
        listed = node.conflicts()
        seen_by_others = {op for n, one in enumerate(self.writes) if n not in self.lost for op in one.seen}
        for number, one in enumerate(self.writes):
            if one.kind != "delete" or not is_of_user(one.path) or shown.get(one.path) is None:
                continue
            if number in self.lost or number in seen_by_others or one.path in self.returned:
                # Of a deletion made while a removed member was away nobody knows when that one returns.
                continue
            if all(row.loser is not None for row in listed.get(one.path, ())):
                raise Broken("deletion undone without a record", one.path, number)

    def _check_system(self, shown: dict[Path, bytes | None]) -> None:
        standing: defaultdict[Path, list[Write]] = defaultdict(list)
        seen = {op for n, one in enumerate(self.writes) if n not in self.lost for op in one.seen}
        for number, one in enumerate(self.writes):
            if one.path[:2] != SYSTEM or one.kind == "directory":
                continue
            if number not in self.lost and number not in seen:
                standing[one.path].append(one)
        for path, writes in standing.items():
            removed = any(one.kind == "delete" for one in writes)
            if rule_of(path) is _RULES.REMOVAL_WINS and removed and shown.get(path) is not None:
                raise Broken("a removal did not win", path)
            # What a removed member has changed yields to what stands in the cluster when it returns.
            if path not in self.returned and shown.get(path) not in {one.identity for one in writes}:
                raise Broken("nobody wrote this last", path)


def check_agreement(nodes: list[Node]) -> str | None:
    """Returns in what nodes differ that know the same; the first takes everything."""
    full = nodes[0]
    winners = {
        path: registers.winner(register)[1].value
        for path, register in full.registers.items()
        if is_of_user(path)
    }
    for node in nodes[1:]:
        if node.scope.is_whole:
            if node.tree != full.tree:
                return f"{node.node_id} shows another tree"
            if node.system != full.system or node.roots() != full.roots():
                return f"{node.node_id} has other system data"
            if summary(node) != summary(full):
                return f"{node.node_id} lists other conflicts"
            continue
        live = {**full.tree.leaves, **{p: v for p, v in winners.items() if v is not None}}
        live = {p: v for p, v in live.items() if node.scope.takes(p)}
        # What it has outside its scope is its own, and may be in the way.
        live |= {p: v for p, v in node.tree.leaves.items() if not node.scope.takes(p)}
        if node.tree.leaves != rebuilt({}, live):
            return f"{node.node_id} shows another part"
    return None


def summary(node: Node) -> dict[Path, set[tuple[bool, bytes | None]]]:
    """The conflicts of a node, by what lost: where it is forgotten, a stable file has lost its dot."""
    return {
        path: {(row.loser is None, identity_of(row.loser)) for row in rows}
        for path, rows in node.conflicts().items()
    }
