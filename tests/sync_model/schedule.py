"""One schedule: a seed decides how many nodes there are, what they may do, and in which order they do it."""

from __future__ import annotations

import random
from collections import Counter
from copy import deepcopy

from svc_sync import joining, tree
from svc_sync.hello import Verdict
from svc_sync.scopes import REFERENCES, SYSTEM, is_of_user
from svc_sync.values import CONTENT, Directory, Document, Reference, Value, rank

from svc.errors import Conflict
from svc.plugin import Entry, EntryKind, Path, hash_content
from sync_model.history import Broken, History, check_agreement, identity_of, summary
from sync_model.memory_tree import MemoryTree
from sync_model.node import Arrived, Node, PageSent, meeting

__all__ = ["Schedule"]

NAMES = "ab"
SCOPES = (("/a/**",), ("/b/**",), ("/a/*",), ("/**/b",), ("/a/b/**", "/b/?"), ("/*/a/**",))
SKEWS = (0, 0, -25_000, 25_000, -5, 5)
START_MS = 1_700_000_000_000


class Schedule:
    """One schedule.

    Args:
        seed: decides everything.
        stress: what happens more often: some of ``joiners``, ``removals``, ``backups``, ``system``.
    """

    def __init__(self, seed: int, stress: tuple[str, ...] = ()) -> None:
        self.random = g = random.Random(seed)
        self.now = [START_MS]
        self.stats: Counter[str] = Counter()
        self.history = History()
        self.nodes: list[Node] = []
        self.number = 0
        self.writers = 0
        self.healing = False
        self.partition: set[int] = set()
        self.backups: dict[int, tuple[Node, dict[Path, set[int]]]] = {}
        count = g.choice((2, 3, 3, 3, 4, 5))
        self.steps = g.randint(6, 40)
        self.has_scopes = g.random() < 0.35
        self.has_removals = g.random() < 0.35
        self.has_backups = g.random() < 0.3
        self.has_joiners = g.random() < 0.4
        self.has_system = g.random() < 0.3
        is_chain = not (self.has_scopes or self.has_removals or self.has_backups) and g.random() < 0.4
        self.is_chain = is_chain and not stress
        self.stress = stress
        for what in stress:
            setattr(self, f"has_{what}", True)
        for number in range(count):
            scope = g.choice(SCOPES) if number and self.has_scopes and g.random() < 0.5 else None
            self._add(scope)
        for node in self.nodes:
            node.start_cluster(self.nodes)
            node.stamp()

    def run(self) -> None:
        """Runs to the end; raises Broken, or an assertion of the model, when the law does not hold."""
        for _ in range(self.steps):
            self.now[0] += self.random.choice((0, 1, 1_000, 60_000))
            self._step()
        self._heal()

    def _step(self) -> None:
        g = self.random
        node = g.choice(self.nodes)
        if self.stress and g.random() < 0.3:
            self._stress(node)
            return
        chance = g.random()
        if self.has_joiners and chance < 0.03 and len(self.nodes) < 6:
            self._let_join()
        elif self.has_removals and chance < 0.07:
            self._remove(node)
        elif self.has_backups and chance < 0.13:
            self._back_up_or_put_back(node)
        elif chance < 0.16 and len(self.nodes) > 2:
            self._part()
        elif self.has_system and chance < 0.3:
            self._change_system(node)
        elif chance < 0.6:
            self._change(node)
        elif chance < 0.65:
            self._resolve(node)
        else:
            other = g.choice(self.nodes)
            if other is not node:
                self._meet(node, other, g.choice((None, None, None, 1, 2)))
                if g.random() < 0.6:
                    self._meet(other, node)

    def _stress(self, node: Node) -> None:
        what = self.random.choice(self.stress)
        if what == "joiners" and len(self.nodes) < 6:
            self._let_join()
        elif what == "removals":
            self._remove(node)
        elif what == "backups":
            self._back_up_or_put_back(node)
        elif what == "system":
            self._change_system(node)

    # -- members

    def _add(self, scope: tuple[str, ...] | None) -> Node:
        node = Node(self._new_writer(), len(self.history.seen) + 1, self.random.choice(SKEWS), scope)
        self.nodes.append(node)
        self.history.add_node(node.node_id)
        return node

    def _new_writer(self) -> int:
        self.writers += 1
        # Not in order of age, as random ones are not.
        return 100 + self.writers * 37 % 101

    def _let_join(self) -> None:
        g = self.random
        host = g.choice(self.nodes)
        if not host.scope.is_whole or host.must_rejoin:
            return
        scope = g.choice(SCOPES) if self.has_scopes and g.random() < 0.4 else None
        node = self._add(scope)
        if g.random() < 0.6:
            for _ in range(g.randint(1, 6)):
                self._change(node, alone=True)
            self.stats["joins with data"] += 1
        own = node.tree
        node.join(host, node.writer)
        seen = self.history.seen[host.node_id]
        self.history.add_node(node.node_id, {p: ops for p, ops in seen.items() if node.scope.takes(p)})
        for path, value in sorted(own.leaves.items()):
            if node.scope.takes(path):
                self._bring(node, path, value)
        self.stats["joins"] += 1

    def _bring(self, node: Node, path: Path, value: Value) -> None:
        before = node.tree.leaf(path)
        made = node.bring(path, value)
        if made is None:
            if rank(value) == CONTENT:
                there = before if before is not tree.FULL else None
                listed = [row.loser for row in node.conflicts().get(path, ())]
                assert identity_of(value) in map(identity_of, [there, *listed])
            return
        parked = any(v.parked and v.value == value for v in made.versions.values())
        self.history.write(node, path, None, value, sees=not parked)
        self.stats["brought, parked" if parked else "brought, written"] += 1

    def _remove(self, node: Node) -> None:
        others = [one for one in self.nodes[1:] if one is not node and one.writer in node.cluster.members]
        if others and node.scope.is_whole:
            other = self.random.choice(others)
            node.cluster = node.cluster.without([other.writer])
            self.stats["removals"] += 1

    def _rejoin(self, node: Node, host: Node) -> None:
        if not host.scope.is_whole or host.must_rejoin:
            return
        if not joining.may_return_through(node.cluster, host.known):
            self.stats["hosts that know too little"] += 1
            return
        was_put_back, is_trusted = node.must_rejoin or node.found_late, not node.found_late
        carried = node.join(host, self._new_writer())
        seen, before = self.history.seen[host.node_id], self.history.seen[node.node_id]
        self.history.add_node(node.node_id, {p: ops for p, ops in seen.items() if node.scope.takes(p)})
        for path in carried:
            own = {op for op in before[path] if self.history.writes[op].node == node.node_id}
            self.history.seen[node.node_id][path] |= before[path] if is_trusted else before[path] - own
            # Of a log that cannot be trusted, its own writes are other ones now.
            self.history.made_again |= set() if is_trusted else own
            self.history.returned.add(path)
            self.history.write(node, path, None, Directory(0), sees=False)
            for dot, version in carried[path].versions.items():
                # What was not stamped, or by a life that cannot be trusted, is written again.
                if was_put_back and dot.writer == node.writer:
                    self.history.write(node, path, None, version.value, sees=False, again=True)
        self.backups.pop(node.node_id, None)
        self.stats["rejoins"] += 1

    def _back_up_or_put_back(self, node: Node) -> None:
        if node is self.nodes[0] or node.must_rejoin:
            return
        kept = self.backups.get(node.node_id)
        if kept is None:
            node.stamp()
            self.backups[node.node_id] = node.backup(), deepcopy(self.history.seen[node.node_id])
            return
        if kept[0].writer != node.writer:
            return
        latest = len(node.log)
        node.put_back(kept[0])
        self.history.forget_unseen(node.node_id, kept[1])
        del self.backups[node.node_id]
        if self.random.random() < 0.5 or latest == len(node.log):
            node.must_rejoin = latest != len(node.log)
            self.stats["put back"] += 1
            return
        for _ in range(self.random.randint(0, 2) + (4 if self.stress else 0)):
            self._change(node)
        node.stamp()
        node.found_late = True
        knowing = [one for one in self.nodes if one is not node and self._has_seen_later(one, node)]
        if knowing:
            self.stats["put back, found by another"] += 1
            self._meet(node, self.random.choice(knowing))
        if node.found_late and not (knowing and meeting(node, knowing[0]) is Verdict.ACCEPT):
            # Nothing was exchanged yet. Where no member could tell, the marks of its views do.
            node.must_rejoin = True
            self.stats["put back, found late"] += 1

    @staticmethod
    def _has_seen_later(one: Node, node: Node) -> bool:
        head = one.cluster.heads.get(node.writer)
        return head is not None and not node.holds(head)

    # -- writes

    def _path(self, node: Node) -> Path:
        return tuple(self.random.choice(NAMES) for _ in range(self.random.choice((1, 1, 2, 2, 3))))

    def _change(self, node: Node, *, alone: bool = False) -> None:
        g = self.random
        kinds = (
            "put",
            "put",
            "put",
            "put",
            "delete",
            "delete",
            "mkdir",
            "move",
            "copy",
            "link",
            "touch",
            "restore",
        )
        kind = g.choice(kinds)
        now_tree = node.tree.copy()
        try:
            now_tree = self._changed(node, now_tree, kind)
        except Conflict:
            return
        if any(
            now_tree.leaves.get(path) != node.tree.leaves.get(path) and not node.scope.takes(path)
            for path in now_tree.leaves.keys() | node.tree.leaves.keys()
            if type(now_tree.leaves.get(path)) is not Directory
            and type(node.tree.leaves.get(path)) is not Directory
        ):
            return
        before = node.tree
        changed = node.commit(now_tree, node.system, self.now[0])
        if alone:
            return
        for path in changed:
            old, new = before.leaves.get(path), now_tree.leaves.get(path)
            if (
                new is None
                and rank(old) == CONTENT
                and rank(tree.value_of(node.stamped.leaf(path))) != CONTENT
            ):
                # It came and went before anybody could know.
                self._note_passing(node, path, old)
                continue
            self.history.write(node, path, old, new)
        above = {path[:depth] for path in changed for depth in range(1, len(path))}
        for path in sorted(above.difference(changed)):
            if before.leaf(path) != now_tree.leaf(path):
                self.history.write(node, path, None, Directory(0))
        self.stats[kind] += bool(changed)

    def _note_passing(self, node: Node, path: Path, old: Value) -> None:
        number = self.history.write(node, path, None, Directory(0))
        self.history.replaced(path, identity_of(old), number)

    def _changed(self, node: Node, now_tree: MemoryTree, kind: str) -> MemoryTree:
        g = self.random
        path = self._path(node)
        ms = self.now[0] + node.skew
        there = now_tree.leaves.get(path)
        self.number += 1
        if kind == "put":
            if there is not None and there == there and getattr(there, "kind", None) is EntryKind.SYMLINK:
                raise Conflict("A link stands there.")
            data = b"%d" % self.number if g.random() < 0.9 else b"same"
            now_tree.put(path, Entry(EntryKind.FILE, hash_content(data), len(data), ms, ms, "text/plain"))
        elif kind == "link":
            if getattr(there, "kind", None) is EntryKind.FILE:
                raise Conflict("A file stands there.")
            target = f"/t{self.number}"
            content = hash_content(target.encode())
            now_tree.put(path, Entry(EntryKind.SYMLINK, content, len(target), ms, ms, target=target))
        elif kind == "touch":
            if rank(there) != CONTENT:
                raise Conflict("No file is there.")
            now_tree.put(
                path,
                Entry(
                    there.kind,
                    there.hash,
                    there.size,
                    there.created_ms,
                    ms,
                    there.content_type,
                    None,
                    there.target,
                ),
            )
        elif kind == "mkdir":
            now_tree.put(path, Directory(ms))
        elif kind == "delete":
            now_tree.remove(path, ms)
        elif kind == "restore":
            if g.random() > 0.3:
                raise Conflict("Not this time.")
            now_tree = g.choice(node.log).tree.copy()
        else:
            self._move_or_copy(now_tree, path, self._path(node), kind, ms)
        return now_tree

    @staticmethod
    def _move_or_copy(now_tree: MemoryTree, path: Path, target: Path, kind: str, ms: int) -> None:
        if path[: len(target)] == target or target[: len(path)] == path:
            raise Conflict("One lies in the other.")
        if now_tree.leaf(target) is not None:
            raise Conflict("Something is there already.")
        found = now_tree.below(path)
        if kind == "move":
            now_tree.remove(path, ms)
        for one, value in found:
            now_tree.put(target + one[len(path) :], value)

    def _resolve(self, node: Node) -> None:
        found = sorted(node.conflicts().items())
        if not found or node.must_rejoin:
            return
        path, rows = self.random.choice(found)
        pick = self.random.choice((None, self.random.choice(rows).dot))
        node.stamp()
        register = node.registers.get(path)
        if register is None or (pick is not None and pick not in register.versions):
            return
        if pick is not None and register.versions[pick].value is not None and node.tree.is_blocked(path):
            self.stats["resolutions refused: a file stands above"] += 1
            return
        gone = [version.value for version in register.versions.values()]
        node.resolve(path, pick, self.now[0])
        now = tree.value_of(node.tree.leaf(path))
        self.history.resolution(node, path, gone, now)
        self.stats["resolutions"] += 1

    # -- system data, snapshots, forks

    def _change_system(self, node: Node) -> None:
        g = self.random
        if not node.scope.is_whole or node.must_rejoin:
            return
        if g.random() < 0.3:
            self._change_loser(node)
            return
        is_fork = g.random() < 0.4
        path = (*REFERENCES, "forks", "f") if is_fork else (*SYSTEM, g.choice(("k1", "s1")))
        self.number += 1
        content = b"%032d" % self.number
        value: Value = None
        if g.random() < 0.7:
            value = Reference(content) if is_fork else Document(content)
        system = {**node.system}
        before = system.pop(path, None)
        if value is not None:
            system[path] = value
        if value is None and node.stamped_system.get(path) is None:
            return
        node.commit(node.tree, system, self.now[0])
        if before != value:
            self.history.write(node, path, before, value)
            self.stats["system writes"] += 1

    def _change_loser(self, node: Node) -> None:
        node.stamp()
        for root, name, dot in node.names().values():
            path = (*REFERENCES, "forks", name)
            register = node.registers.get(path)
            if register is None or node.system.get(path) == Reference(root):
                continue
            node.delete_loser(path, dot, self.now[0])
            number = self.history.write(node, path, None, node.system.get(path))
            self.history.replaced(path, root, number)
            self.stats["losers of forks deleted"] += 1
            return

    # -- meetings

    def _part(self) -> None:
        """A partition begins, or ends."""
        if self.partition:
            self.partition = set()
        else:
            some = self.random.sample(self.nodes, self.random.randint(1, len(self.nodes) - 1))
            self.partition = {node.node_id for node in some}
            self.stats["partitions"] += 1

    def _reach(self, a: Node, b: Node) -> bool:
        if self.is_chain and abs(a.node_id - b.node_id) > 1:
            return False
        return (a.node_id in self.partition) == (b.node_id in self.partition)

    def _meet(self, a: Node, b: Node, limit: int | None = None, depth: int = 0) -> None:
        """A pulls from B; ``limit``: how many pages before the connection breaks."""
        if not self._reach(a, b):
            return
        verdicts = meeting(a, b), meeting(b, a)
        if Verdict.I_AM_STALE in verdicts or Verdict.THEY_ARE_STALE in verdicts:
            self.stats["refused: stale"] += 1
            if depth == 0:
                if verdicts[0] is Verdict.I_AM_STALE or verdicts[1] is Verdict.THEY_ARE_STALE:
                    self._rejoin(a, b)
                else:
                    self._rejoin(b, a)
            return
        self._pull(a, b, limit, depth)

    def _pull(self, a: Node, b: Node, limit: int | None, depth: int) -> None:
        g = self.random
        calm = limit is None and depth == 0 and g.random() < 0.6
        size = 10**9 if calm else g.choice((1, 1, 2))
        then = sent = None
        merged = 0
        for event in a.pull(b, size, self.now):
            seen = self.history.seen[b.node_id]
            if isinstance(event, PageSent):
                sent = {path: set(seen[path]) for path in event.paths}
                then = {path: set(ops) for path, ops in seen.items()} if then is None else then
            elif isinstance(event, Arrived) and event.merged:
                self._took(a, b, sent, then if event.finished else None)
                merged += 1
                if limit is not None and merged >= limit:
                    self.stats["broken pulls"] += 1
                    return
            else:
                self.stats["pages thrown away"] += 1
            while not calm and not self.healing and g.random() < 0.3:
                self._meanwhile(a, b, depth)
        self.stats["pulls"] += 1

    def _meanwhile(self, a: Node, b: Node, depth: int) -> None:
        """What goes on while a page travels, or between two."""
        g = self.random
        self.now[0] += g.choice((0, 1, 1_000))
        self.stats["between pages"] += 1
        chance = g.random()
        if depth < 2 and chance < 0.4 and len(self.nodes) > 1:
            x, y = g.sample(self.nodes, 2)
            self._meet(x, y, None, depth + 1)
        elif self.has_removals and chance < 0.5:
            self._remove(g.choice(self.nodes))
        else:
            self._change(g.choice((a, b)) if g.random() < 0.8 else g.choice(self.nodes))

    def _took(self, a: Node, b: Node, sent: dict[Path, set[int]], then: dict[Path, set[int]] | None) -> None:
        seen = self.history.seen[a.node_id]
        for path, ops in sent.items():
            seen[path] |= ops
        for path, ops in (then or {}).items():
            if a.scope.takes(path) and b.scope.takes(path):
                seen[path] |= ops
        if self.random.random() < 0.25 or self.healing:
            self._compare_equal_sets()

    def _compare_equal_sets(self) -> None:
        groups: dict[object, Node] = {}
        for node in self.nodes:
            if node.pending or node.must_rejoin:
                continue
            seen = self.history.seen[node.node_id]
            private = frozenset(path for path in node.tree.leaves if not node.scope.takes(path))
            key = node.scope.globs, private, frozenset((path, op) for path, ops in seen.items() for op in ops)
            other = groups.setdefault(key, node)
            if other is node:
                continue
            self.stats["equal sets compared"] += 1
            taken = node.scope.takes
            for what in ("tree", "system"):
                one, two = (getattr(x, what) for x in (node, other))
                one, two = (getattr(x, "leaves", x) for x in (one, two))
                if {p: v for p, v in one.items() if taken(p)} != {p: v for p, v in two.items() if taken(p)}:
                    raise Broken(f"the same writes, another {what}", other.node_id, node.node_id)
            if summary(other) != summary(node) or (node.scope.is_whole and other.roots() != node.roots()):
                raise Broken("the same writes, other conflicts", other.node_id, node.node_id)

    # -- the end

    def _heal(self) -> None:
        """Everybody meets everybody until all know the same."""
        self.healing, self.partition = True, set()
        rounds = 2 * len(self.nodes) + 2
        for number in range(rounds):
            self._everybody_meets()
            if self._is_quiet() and check_agreement(self.nodes) is None:
                self.stats[f"healed in {number + 1} rounds"] += 1
                break
        if not self._is_quiet():
            raise Broken("something does not arrive")
        difference = check_agreement(self.nodes)
        if difference is not None:
            raise Broken("no agreement", difference)
        self.history.check(self.nodes[0])
        for _ in range(2 * len(self.nodes) if self.is_chain else 4):
            self._everybody_meets()
        self.history.check(self.nodes[0])
        self._check_pruned()
        self.stats["conflicts at the end"] += len(self.nodes[0].conflicts())

    def _everybody_meets(self) -> None:
        pairs = [(a, b) for a in self.nodes for b in self.nodes if a is not b]
        self.random.shuffle(pairs)
        for a, b in pairs:
            self._meet(a, b)

    def _is_quiet(self) -> bool:
        """Whether everybody is met as a member, and who takes everything has seen everything."""
        pairs = [(a, b) for a in self.nodes for b in self.nodes if a is not b and self._reach(a, b)]
        if any(meeting(a, b) is not Verdict.ACCEPT for a, b in pairs):
            return False
        all_seen = [
            (path, ops)
            for node in self.nodes
            for path, ops in self.history.seen[node.node_id].items()
            if node.scope.takes(path)
        ]
        return all(
            ops - self.history.lost <= self.history.seen[node.node_id][path]
            for node in self.nodes
            if node.scope.is_whole
            for path, ops in all_seen
        )

    def _check_pruned(self) -> None:
        for node in self.nodes:
            listed = node.conflicts()
            for path, register in node.registers.items():
                values = [version.value for version in register.versions.values()]
                if path in listed or any(type(value) is Directory for value in values):
                    continue
                if any(
                    vt > node.horizon(path).get(w, -1)
                    for w, vt in register.context.items()
                    if w in node.cluster.removed
                ):
                    # A part of what a writer wrote came before its log was put back: nobody vouches for all.
                    assert any(what.startswith("put back") for what in self.stats)
                    continue
                if not is_of_user(path) and len(values) > 1 and path[:2] == REFERENCES:
                    continue
                raise Broken("not pruned", node.node_id, path, register)
            self.stats["registers left"] += len(node.registers)
