"""The law, on real databases: whatever happens in which order, nodes agree in the end, and nothing is lost.

A schedule is made by its seed: writes, pulls that break off, writes between questions, resolutions, joins.
``SVC_TEST_SYNC_SCHEDULES`` says how many there are.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from svc_sync.exchange import contents, resolving, seen_cluster, taking_over
from svc_sync.exchange.losers import Losers
from svc_sync.exchange.membership import remove_member
from svc_sync.exchange.pulling import MeetingRefused
from svc_sync.scopes import Scope
from svc_sync.values import CONTENT, rank

from svc.errors import Conflict, Forbidden, NotFound, SvcError
from svc.plugin import Entry, Path

from .nodes import Node, Nodes  # noqa: TID252

SCOPES = (("/a/**",), ("/**/b",), ("/a/*", "/b"), ("/*/a/**",))
SCHEDULES = int(os.environ.get("SVC_TEST_SYNC_SCHEDULES", "60"))


class _Calm(random.Random):
    """Chance that lets nothing happen."""

    def random(self) -> float:
        return 1.0

    def choice(self, seq: Any) -> Any:
        return seq[0]


class Story:
    """What was written where, and what was replaced by somebody who saw it."""

    def __init__(self, seed: int, nodes: Nodes) -> None:
        self.has_scopes = seed % 4 == 1
        self.random = random.Random(seed)
        self.nodes = nodes
        self.number = 0
        self.written: Counter[tuple[Path, bytes]] = Counter()
        self.replaced: set[tuple[Path, bytes]] = set()
        self.what: list[str] = []
        self.has_removals = False
        self.scopes: dict[int, Scope] = {}
        """What those nodes take that take a part."""

    def path(self) -> str:
        names = (self.random.choice("ab") for _ in range(self.random.choice((1, 1, 2, 2, 3))))
        return "/".join(names)

    def shown(self, node: Node) -> dict[Path, bytes]:
        return {path: value.hash for path, value in node.leaves().items() if isinstance(value, Entry)}

    def write(self, node: Node) -> None:
        g = self.random
        kind = g.choice(("put", "put", "put", "delete", "delete", "mkdir", "move", "restore", "link"))
        before, path = self.shown(node), self.path()
        scope = self.scopes.get(id(node), Scope())
        if kind == "restore" and not node.database.head().sequence:
            return
        if not scope.is_whole and (kind in ("move", "restore") or not scope.takes(tuple(path.split("/")))):
            return
        self.number += 1
        self.what.append(f"{self.nodes.all.index(node)} {kind} {path} {self.number}")
        try:
            if kind == "put":
                size = g.choice((1, 1, 1, 30_000))
                node.put(path, b"%08d" % self.number * size, content_type=g.choice((None, "text/plain")))
            elif kind == "delete":
                node.delete(path)
            elif kind == "mkdir":
                node.mkdir(path)
            elif kind == "link":
                with node.database.transaction() as changes:
                    changes.link(tuple(path.split("/")), f"/t{self.number}")
            elif kind == "move":
                with node.database.transaction() as changes:
                    changes.move(tuple(path.split("/")), tuple(self.path().split("/")))
            else:
                sequence = g.randint(1, node.database.head().sequence)
                with node.database.transaction() as changes:
                    changes.set_ref("HEAD", node.database.commit(sequence).root)
        except SvcError:
            self.what.pop()
        after = self.shown(node)
        for where, content in before.items():
            if after.get(where) != content:
                self.replaced.add((where, content))
        for where, content in after.items():
            if before.get(where) != content:
                self.written[where, content] += 1

    def resolve(self, node: Node) -> None:
        found = sorted(node.conflicts().items())
        if not found:
            return
        path, rows = self.random.choice(found)
        row = self.random.choice(rows)
        register = node.registers()[path]
        picks = self.random.random() < 0.5
        try:
            done = resolving.resolve_conflict(
                node.database, path, pick_loser=picks, name=resolving.name_of(row.dot)
            )
        except (NotFound, Conflict):
            return
        self.what.append(f"{self.nodes.all.index(node)} resolve {path} {picks}")
        chosen = done.value.hash if isinstance(done.value, Entry) else None
        for version in register.versions.values():
            if isinstance(version.value, Entry) and version.value.hash != chosen:
                self.replaced.add((path, version.value.hash))
        if chosen is not None:
            self.written[path, chosen] += 1

    def remove(self, node: Node) -> None:
        """Somebody removes a member, which may go on for long before it hears of that."""
        state = node.snapshot().state.cluster
        if id(node) in self.scopes:
            return
        others = [
            one
            for one in self.nodes.all[1:]
            if one is not node and one.snapshot().node.writer in state.members
        ]
        if others and len(state.members) > 2:
            other = self.random.choice(others)
            remove_member(node.database, other.node_id)
            self.has_removals = True
            self.what.append(f"{self.nodes.all.index(node)} removes {self.nodes.all.index(other)}")

    def meet(self, one: Node, other: Node) -> None:
        try:
            self.meet_once(one, other)
        except MeetingRefused as refused:
            stale, host = (one, other) if refused.is_stale else (other, one)
            if id(host) in self.scopes:
                one.on_question = lambda question: None
                return
            stale.on_question = lambda question: None
            one.on_question = lambda question: None
            try:
                with self.writing_before_tries(stale):
                    stale.rejoin(host)
            except Conflict as error:
                self.what.append(f"{self.nodes.all.index(stale)} may not join anew: {error}")
                return
            self.what.append(f"{self.nodes.all.index(stale)} joins anew")
        except Forbidden:
            one.on_question = lambda question: None

    def let_join(self, joiner: Node, member: Node) -> None:
        """With nothing, or with data of its own."""
        writes = self.random.choice((0, 5))
        for _ in range(writes):
            self.write(joiner)
        if not writes:
            joiner.join(member)
            return
        with self.writing_before_tries(joiner):
            joiner.join_with_data(member)

    @contextmanager
    def writing_before_tries(self, node: Node) -> Iterator[None]:
        """While a node takes over what it has seen, somebody writes, so that it has to try again."""
        hold_losers = taking_over.holding_losers

        def write_too(*arguments: Any) -> Any:
            for _ in range(self.random.choice((0, 1, 3)) if self.random.random() < 0.7 else 0):
                self.write(node)
            return hold_losers(*arguments)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(taking_over, "holding_losers", write_too)
            yield

    def meet_once(self, one: Node, other: Node) -> None:
        g = self.random
        questions = g.choice((None, None, None, 1, 2, 3))
        asked = 0

        def on_question(question: str) -> None:
            nonlocal asked
            asked += 1
            if g.random() < 0.3:
                self.write(g.choice((one, other)))

        one.on_question = on_question
        self.what.append(f"{self.nodes.all.index(one)} pulls from {self.nodes.all.index(other)}")
        one.pull(
            other,
            limit=g.choice((1, 2, 1_000)),
            is_stopping=lambda: questions is not None and asked > questions,
        )
        one.on_question = lambda question: None

    def run(self) -> None:
        g = self.random
        self.nodes.cluster(g.choice((2, 2, 3)))
        for _ in range(g.choice((1, 2)) if self.has_scopes else 0):
            globs = g.choice(SCOPES)
            part = self.nodes.new()
            part.join(self.nodes.all[0], *globs)
            self.scopes[id(part)] = Scope(globs)
            self.what.append(f"{self.nodes.all.index(part)} joins for {globs}")
        for _ in range(g.randint(5, 25)):
            chance = g.random()
            node = g.choice(self.nodes.all)
            if chance < 0.03 and len(self.nodes.all) < 4:
                joiner = self.nodes.new()
                if id(node) in self.scopes:
                    node = self.nodes.all[0]
                self.what.append("join")
                self.let_join(joiner, node)
            elif chance < 0.06:
                self.remove(node)
            elif chance < 0.55:
                self.write(node)
            elif chance < 0.65:
                self.resolve(node)
            else:
                other = g.choice(self.nodes.all)
                if other is not node:
                    self.meet(node, other)
        for _ in range(6 if self.has_removals else 0):
            for one in self.nodes.all:
                for other in self.nodes.all:
                    if one is not other:
                        self.meet_calmly(one, other)
        self.nodes.heal(4)

    def meet_calmly(self, one: Node, other: Node) -> None:
        """As ``meet``, and nothing happens meanwhile."""
        chance, self.random = self.random, _Calm()
        try:
            self.meet(one, other)
        finally:
            self.random = chance

    def check(self) -> None:
        first, *others = self.nodes.all
        summary = self._summary(first)
        for node in others:
            scope = self.scopes.get(id(node))
            if scope is not None:
                # A file at the path of a directory stands where nobody takes what the directory holds.
                rest = [path for path in first.leaves() if not scope.takes(path)]
                hidden = {path[:depth] for path in rest for depth in range(1, len(path))}
                for what in (Node.leaves, self._summary):
                    shown, wanted = what(node), what(first)
                    taken = {p for p in (*shown, *wanted) if scope.takes(p) and p not in hidden}
                    assert {p: shown.get(p) for p in taken} == {p: wanted.get(p) for p in taken}
                continue
            assert node.leaves() == first.leaves()
            assert node.root == first.root
            assert self._summary(node) == summary
        shown = self.shown(first)
        for (path, content), count in self.written.items():
            if (path, content) in self.replaced:
                # What was deleted while a member was away, and is forgotten, may come back with it.
                assert self.has_removals or shown.get(path) != content or count > 1, ("came back", path)
            else:
                assert shown.get(path) == content or content in summary[path], ("vanished", path)
        for node in self.nodes.all:
            self._check_losers(node)

    def _summary(self, node: Node) -> defaultdict[Path, set[bytes | None]]:
        found: defaultdict[Path, set[bytes | None]] = defaultdict(set)
        for path, rows in node.conflicts().items():
            found[path] = {row.loser.hash if isinstance(row.loser, Entry) else None for row in rows}
        return found

    def _check_losers(self, node: Node) -> None:
        """Every content that has lost can be read."""
        losers = Losers(node.database)
        for path, rows in node.conflicts().items():
            for row in rows:
                if rank(row.loser) == CONTENT:
                    entry = losers.at(path, row.dot)
                    assert entry is not None
                    assert isinstance(row.loser, Entry)
                    assert entry.hash == row.loser.hash
                    if entry.target is None:
                        assert len(losers.read_all(entry)) == entry.size


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_the_law_holds(seed: int, nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(seed, nodes)
    if seed % 2:
        # Nothing comes along with pages: so there are questions, and what happens meanwhile, within a merge.
        monkeypatch.setattr(contents, "INLINE_BYTES", 0)
        monkeypatch.setattr(seen_cluster, "_PAGE", 2)
    try:
        story.run()
        story.check()
    except BaseException:
        print("\n".join(story.what))
        raise
