"""One node of the model: what a database would keep of a member, and the steps of an exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from itertools import count
from typing import NamedTuple

from svc_sync import cluster as clusters
from svc_sync import conflicts, hello, joining, pages, references, registers, stamping, tree
from svc_sync.clock import next_vt, vt_of
from svc_sync.cluster import Cluster, Head, Horizons, Member
from svc_sync.hello import PROTOCOL, Hello, Meeting, Verdict
from svc_sync.registers import Dot, Register, Rule
from svc_sync.scopes import REFERENCES, SYSTEM, Scope, is_of_user
from svc_sync.values import Reference, Value

from svc.plugin import Path
from sync_model.memory_tree import MemoryTree, rebuilt

__all__ = ["Arrived", "Commit", "Node", "PageSent", "meeting", "rule_of"]


def rule_of(path: Path) -> Rule:
    """The rule of a register: in the system tree ``k...`` are like keys, others like settings."""
    if path[:2] != SYSTEM:
        return Rule.KEEP_LOSERS
    return Rule.REMOVAL_WINS if path[-1].startswith("k") else Rule.LAST_WRITER


class Commit(NamedTuple):
    identity: bytes
    tree: MemoryTree
    system: dict[Path, Value]

    def value(self, path: Path) -> Value:
        return tree.value_of(self.tree.leaf(path)) if is_of_user(path) else self.system.get(path)


class PageSent(NamedTuple):
    """A page is under way: anything may happen before it arrives."""

    paths: list[Path]


class Arrived(NamedTuple):
    """A page was merged, or thrown away."""

    paths: list[Path]
    merged: bool
    finished: bool


class Node:
    identities = count(1)
    checks_rebuild = True

    def __init__(
        self, writer: int, node_id: int, skew: int = 0, scope: tuple[str, ...] | None = None
    ) -> None:
        self.writer, self.node_id, self.skew = writer, node_id, skew
        self.former: tuple[int, ...] = ()
        self.scope = Scope(scope)
        self.vt = 0
        self.tree, self.stamped = MemoryTree(), MemoryTree()
        self.system: dict[Path, Value] = {}
        self.stamped_system: dict[Path, Value] = {}
        self.registers: dict[Path, Register] = {}
        self.known: dict[int, int] = {}
        self.cluster = Cluster()
        self.pending: list[tuple[int, list[Path]]] = []
        self.log: list[Commit] = []
        self.must_rejoin = False
        self.found_late = False
        self._horizons: tuple[Cluster, Horizons] | None = None
        self._append()

    # -- what a database does by itself

    @property
    def member(self) -> Member:
        return Member(self.writer, self.node_id, self.scope.globs, self.former)

    def backup(self) -> Node:
        """Returns a copy of the node as it is now."""
        twin = copy(self)
        twin.tree, twin.stamped = self.tree.copy(), self.stamped.copy()
        for name in ("system", "stamped_system", "registers", "known", "pending", "log"):
            setattr(twin, name, copy(getattr(self, name)))
        return twin

    def put_back(self, older: Node) -> None:
        """Makes the node what it was."""
        self.__dict__.update(older.backup().__dict__)

    def commit(self, tree_now: MemoryTree, system: dict[Path, Value], now_ms: int) -> list[Path]:
        """A commit of a caller; returns the paths that it changed."""
        changed = [
            path
            for path in sorted(tree_now.leaves.keys() | self.tree.leaves.keys())
            if tree_now.leaves.get(path) != self.tree.leaves.get(path)
        ]
        changed += [
            path
            for path in sorted(system.keys() | self.system.keys())
            if system.get(path) != self.system.get(path)
        ]
        if changed:
            self.pending.append((now_ms + self.skew, changed))
            self.tree, self.system = tree_now, system
            self._append()
        return changed

    def _append(self) -> None:
        identity = next(self.identities).to_bytes(8, "big")
        self.log.append(Commit(identity, self.tree.copy(), dict(self.system)))

    def holds(self, head: Head) -> bool:
        return head.sequence < len(self.log) and self.log[head.sequence].identity == head.identity

    # -- stamping

    def stamp(self) -> None:
        """Makes writes of registers of what was committed here."""
        touched: dict[Path, int] = {}
        for time_ms, paths in self.pending:
            self.vt = next_vt(time_ms, self.vt)
            touched.update(dict.fromkeys(paths, self.vt))
        touched |= {
            path[:depth]: vt
            for path, vt in touched.items()
            if is_of_user(path)
            for depth in range(1, len(path))
            if path[:depth] not in touched
        }
        for path, vt in touched.items():
            if not self.scope.takes(path):
                continue
            dot = Dot(vt, self.writer)
            before = self.registers.get(path)
            if is_of_user(path):
                after = stamping.stamp(before, dot, self.stamped.leaf(path), self.tree.leaf(path))
            else:
                after = stamping.stamp_system(
                    before, dot, self.stamped_system.get(path), self.system.get(path), rule_of(path)
                )
            if after is not None:
                self.registers[path] = after
        self.pending = []
        self._say_what_is_known()

    def _say_what_is_known(self) -> None:
        self.stamped, self.stamped_system = self.tree.copy(), dict(self.system)
        self.known[self.writer] = max(self.vt, self.known.get(self.writer, 0))
        head = Head(self.vt, len(self.log) - 1, self.log[-1].identity)
        self.cluster = self.cluster.with_row(self.writer, self.known, head)

    # -- conflicts and names

    def conflicts(self) -> dict[Path, list[conflicts.Conflict]]:
        found = {
            path: conflicts.conflicts_of(register, self.tree.leaf(path))
            for path, register in self.registers.items()
            if is_of_user(path)
        }
        return {path: rows for path, rows in found.items() if rows}

    def resolve(self, path: Path, pick: Dot | None, now_ms: int) -> None:
        """Chooses a version of a conflict; None keeps what stands there."""
        self.stamp()
        register = self.registers[path]
        self.vt = next_vt(now_ms + self.skew, self.vt)
        shown = self.tree.leaf(path)
        if pick is not None:
            value = register.versions[pick].value
            if shown is tree.FULL:
                value = None  # it cannot stand there
        else:
            value = None if shown is tree.FULL else shown or registers.winner(register)[1].value
        self.registers[path] = registers.resolve(register, Dot(self.vt, self.writer), value)
        self._bring_tree_to([path])
        self._say_what_is_known()

    def names(self) -> dict[str, tuple[bytes, str, Dot]]:
        """What the names of forks show."""
        depth = len(REFERENCES) + 1
        found = [(p[depth], r) for p, r in sorted(self.registers.items()) if p[:2] == REFERENCES]
        having = {name for name, _ in found}
        stable = [
            (p[depth], v.root)
            for p, v in sorted(self.system.items())
            if p[:2] == REFERENCES and isinstance(v, Reference) and p[depth] not in having
        ]
        return references.shown_references(stable, found, lambda writer: f"n{writer}")

    def roots(self) -> dict[str, bytes]:
        """The names of forks, and what they lead to."""
        return {name: root for name, (root, _, _) in self.names().items()}

    def delete_loser(self, path: Path, loser: Dot, now_ms: int) -> None:
        """Deletes what stands under the name of a loser."""
        self.vt = next_vt(now_ms + self.skew, self.vt)
        self.registers[path] = references.forget_loser(self.registers[path], loser, Dot(self.vt, self.writer))
        self._say_what_is_known()

    # -- registers become the tree

    def _bring_tree_to(self, changed: Iterable[Path]) -> None:
        changed = list(changed)
        of_user = [path for path in changed if is_of_user(path)]
        stable = dict(self.tree.leaves)
        edits = tree.apply(self.tree, of_user, self.registers.get)
        self.registers.update(edits.restated)
        self.tree = self.tree.copy()
        self.tree.take(edits)
        for path in changed:
            if not is_of_user(path):
                value = registers.winner(self.registers[path], rule_of(path))[1].value
                self.system.pop(path, None)
                if value is not None:
                    self.system[path] = value
        self._append()
        if self.checks_rebuild:
            winners = {
                path: registers.winner(register)[1].value
                for path, register in self.registers.items()
                if is_of_user(path)
            }
            whole = rebuilt({p: v for p, v in stable.items() if p not in winners}, winners)
            assert self.tree.leaves == whole, ("apply is not the rebuild", changed, self.tree.leaves, whole)
        self.stamped, self.stamped_system = self.tree.copy(), dict(self.system)

    def horizon(self, path: Path) -> dict[int, int]:
        if self._horizons is None or self._horizons[0] is not self.cluster:
            self._horizons = self.cluster, Horizons(self.cluster)
        return self._horizons[1].of(path)

    def prune(self) -> None:
        for path, register in list(self.registers.items()):
            shown = self.tree.leaf(path) if is_of_user(path) else self.system.get(path)
            if conflicts.is_settled(register, self.horizon(path), shown, rule_of(path)):
                del self.registers[path]

    # -- exchange

    def learn(self, theirs: Cluster) -> None:
        self.cluster = clusters.learn(self.cluster, theirs)

    def hello(self) -> Hello:
        return Hello(PROTOCOL, "the cluster", self.member, self.known, self.cluster)

    def page(self, asker: Scope, known: dict[int, int], after: Path | None, size: int) -> pages.Page:
        self.stamp()
        found, last = pages.select_page(
            sorted(self.registers),
            self.registers.get,
            known,
            lambda path: self.scope.takes(path) and asker.takes(path),
            after=after,
            limit=size,
        )
        return pages.Page(found, last, dict(self.known), self.cluster)

    def merge(self, page: pages.Page, now_ms: int) -> None:
        """One transaction: registers, tree, clock."""
        self.stamp()
        changed = []
        for path, register in page.registers:
            pages.check_register(register, now_ms + self.skew)
            mine = self.registers.get(path)
            joined = registers.join(mine, register, self.horizon(path))
            assert joined is not None
            if joined != mine:
                self.registers[path] = joined
                changed.append(path)
            self.vt = max(self.vt, *register.context.values(), 0)
        if changed:
            self._bring_tree_to(changed)

    def pull(self, other: Node, size: int, clock: list[int]) -> Iterator[PageSent | Arrived]:
        """Pulls page by page from a node that has accepted the hello; anything may happen at each yield."""
        lives = self.writer, other.writer
        self.stamp()
        other.stamp()
        self.learn(other.cluster)
        other.learn(self.cluster)
        known, first, after = dict(self.known), None, None
        while True:
            if self.writer not in other.cluster.members or self.writer in self.cluster.removed:
                return
            page = other.page(self.scope, known, after, size)
            first = page.known if first is None else first
            paths = [path for path, _ in page.registers]
            yield PageSent(paths)
            if (self.writer, other.writer) != lives or self.must_rejoin or other.must_rejoin:
                return
            self.learn(page.cluster)
            if self.writer in self.cluster.removed or other.writer not in self.cluster.members:
                return
            if not pages.is_current(page, other.writer, self.cluster):
                yield Arrived(paths, merged=False, finished=False)
                continue
            self.merge(page, clock[0])
            if page.last:
                self.known = clusters.row_after_pull(self.known, self.scope, other.member, other.scope, first)
                self._say_what_is_known()
            self.prune()
            yield Arrived(paths, merged=True, finished=page.last)
            if page.last:
                return
            after = paths[-1]

    # -- joining

    def start_cluster(self, members: Iterable[Node]) -> None:
        for one in members:
            self.cluster = self.cluster.with_member(one.member, {})

    def join(self, host: Node, writer: int) -> dict[Path, Register]:
        """Joins, or joins anew; returns the registers that were carried over."""
        old, trusted = self.writer, not self.found_late
        was_member = bool(self.cluster.members)
        self.writer = writer
        if was_member:
            self.former = (*self.former, old) if trusted else ()
            self._stamp_as_new(old)
        host.stamp()
        mine, seen = self.registers, self.known
        forgotten = clusters.Horizons(host.cluster)
        if was_member:
            host.cluster = host.cluster.without([old])
        host.cluster = joining.welcome(host.cluster, host.known, self.member)
        self._take_copy(host)
        carried = {}
        for path, register in sorted(mine.items()):
            if not self.scope.takes(path):
                continue
            shown = self.tree.leaf(path) if is_of_user(path) else self.system.get(path)
            made = joining.carry_over(
                self.registers.get(path),
                shown,
                register,
                known=host.known,
                seen=seen,
                forgotten=forgotten.of(path),
                stood=[one.value(path) for one in self.log],
                writer=writer,
                distrusted=() if trusted else (old,),
                rule=rule_of(path),
            )
            if made is not None:
                carried[path] = made
        self.registers.update(carried)
        # What a path outside the scope displaces at the host stands here.
        self._bring_tree_to(carried if self.scope.is_whole else self.registers)
        if was_member:
            self.known = joining.row_of_returned(host.known, seen, () if trusted else (old,))
        self.vt = max([self.vt, host.vt, *self.known.values(), *self._own_times()])
        self.must_rejoin = self.found_late = False
        self._say_what_is_known()
        return carried

    def _stamp_as_new(self, old: int) -> None:
        cluster, known = self.cluster, dict(self.known)
        self.stamp()
        self.cluster, self.known = cluster, known
        assert old != self.writer

    def _take_copy(self, host: Node) -> None:
        self.tree = MemoryTree({p: v for p, v in host.tree.leaves.items() if self.scope.takes(p)})
        self.system = dict(host.system) if self.scope.is_whole else {}
        self.registers = {p: r for p, r in host.registers.items() if self.scope.takes(p)}
        # Who was removed stays removed, also if only this node knew it.
        self.known, self.cluster = dict(host.known), host.cluster.without(self.cluster.removed)
        self.pending = []
        self.stamped, self.stamped_system = self.tree.copy(), dict(self.system)

    def _own_times(self) -> Iterator[int]:
        return (register.context.get(self.writer, 0) for register in self.registers.values())

    def bring(self, path: Path, value: Value) -> Register | None:
        """Adds what a joiner has at a path; returns the register that was made."""
        dot = Dot(vt_of(getattr(value, "updated_ms", 0)) + 1, self.writer)
        made = joining.bring(
            self.registers.get(path), self.tree.leaf(path), value, dot, blocked=self.tree.is_blocked(path)
        )
        if made is not None:
            self.registers[path] = made
            self._bring_tree_to([path])
            self.vt = max(self.vt, dot.vt)
            self._say_what_is_known()
        return made


def meeting(mine: Node, theirs: Node) -> Verdict:
    """What a node says of a meeting."""
    if mine.must_rejoin:
        return Verdict.I_AM_STALE
    return hello.judge(Meeting(mine.hello(), theirs.hello(), 0, mine.holds))
