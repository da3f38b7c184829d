"""Nodes in one process: databases whose questions go from one to the other without a network."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path as FilePath
from typing import Any

import msgspec
from svc_sync.api import Connection
from svc_sync.conflicts import Conflict, conflicts_of
from svc_sync.exchange import bringing, first_copy, membership, pulling, returning
from svc_sync.exchange.answering import answer
from svc_sync.exchange.commits import Snapshot, stamp
from svc_sync.exchange.links import Link
from svc_sync.exchange.reading import leaf_of
from svc_sync.exchange.records import find_node
from svc_sync.models import Admission, JoinRequest
from svc_sync.registers import Register
from svc_sync.tree import FULL
from svc_sync.values import Value

from svc import Database
from svc.plugin import Path

__all__ = ["Cut", "DirectConnection", "Node", "Nodes", "agree"]


class DirectConnection(Connection):
    """Leads to a database of this process; ``on_question`` is called before each question."""

    def __init__(
        self, database: Database, on_question: Callable[[str], None] = lambda question: None
    ) -> None:
        self.database = database
        self.on_question = on_question

    def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
        question = path.rpartition("/")[2]
        self.on_question(question)
        if question == "join":
            request = msgspec.json.decode(payload, type=JoinRequest)
            return msgspec.json.encode(membership.admit(self.database, request))
        return answer(self.database, question, payload)


class Cut(Exception):
    """A question that got no answer."""


class Node:
    """A database with the steps of an exchange."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.on_question: Callable[[str], None] = lambda question: None

    @property
    def node_id(self) -> int:
        found = find_node(self.database.system())
        assert found is not None
        return found.node_id

    @property
    def root(self) -> bytes:
        return self.database.head().root

    def cut_at(self, number: int) -> None:
        """Cuts the node off at its question of a number, counted from now on and from 1."""
        numbers = itertools.count(1)

        def on_question(question: str) -> None:
            if next(numbers) == number:
                raise Cut

        self.on_question = on_question

    def link(self, other: Node) -> Link:
        return Link(self.database, DirectConnection(other.database, self.on_question))

    def do_once_before(self, question: str, act: Callable[[], None]) -> list[Callable[[], None]]:
        """Does something before the node's next question of a kind; what is returned is empty then."""
        waiting = [act]

        def on_question(asked: str) -> None:
            if asked == question and waiting:
                waiting.pop()()

        self.on_question = on_question
        return waiting

    def enter(self, member: Node, *globs: str, brings: bool = False) -> None:
        """Is let in by a member, and has nothing of the cluster yet."""
        request = membership.prepare_join(self.database, "", "", globs or None, brings=brings)
        admission = self.link(member).call("/sync/join", request, Admission)
        membership.take_admission(self.database, request, admission, "http://member", brings=brings)

    def join(self, member: Node, *globs: str) -> None:
        self.enter(member, *globs)
        assert first_copy.continue_copy(self.database, self.link(member))

    def join_with_data(self, member: Node, *globs: str) -> None:
        self.enter(member, *globs, brings=True)
        bringing.bring_own(self.database, self.link(member))

    def rejoin(self, member: Node, **how: Any) -> None:
        returning.rejoin(self.database, self.link(member), "http://member", **{"distrusts_log": False, **how})

    def pull(self, other: Node, **how: Any) -> int:
        link = self.link(other)
        met = pulling.greet(self.database, link, times=1)
        changed = pulling.pull(self.database, link, met.answer.member, **how)
        pulling.prune(self.database)
        return changed

    def snapshot(self) -> Snapshot:
        return stamp(self.database)

    def registers(self) -> dict[Path, Register]:
        return dict(self.snapshot().registers.items())

    def conflicts(self) -> dict[Path, list[Conflict]]:
        snapshot = self.snapshot()
        found = {
            path: conflicts_of(one, snapshot.tree.leaf(path)) for path, one in snapshot.registers.items()
        }
        return {path: rows for path, rows in found.items() if rows}

    def leaves(self) -> dict[Path, Value]:
        version = self.database.at()
        found = ((path, leaf_of(entry)) for path, entry in version.walk())
        return {path: leaf for path, leaf in found if leaf is not FULL}

    def read(self, *path: str) -> bytes | None:
        version = self.database.at()
        entry = version.get(path)
        return None if entry is None else version.read_all(entry)

    def put(self, path: str, content: bytes = b"", **how: Any) -> None:
        with self.database.transaction() as changes:
            changes.put(tuple(path.split("/")), content, **how)

    def delete(self, path: str) -> None:
        with self.database.transaction() as changes:
            changes.delete(tuple(path.split("/")), recursive=True)

    def mkdir(self, path: str) -> None:
        with self.database.transaction() as changes:
            changes.mkdir(tuple(path.split("/")))


def agree(*nodes: Node) -> None:
    """Nodes hold the same, and their versions have the same root."""
    first, *others = nodes
    for one in others:
        assert one.leaves() == first.leaves()
        assert one.root == first.root


class Nodes:
    """Makes nodes, and closes their databases at the end."""

    def __init__(self, directory: FilePath) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self._numbers = itertools.count(1)
        self.all: list[Node] = []

    def new(self) -> Node:
        path = self._directory / f"{next(self._numbers)}.svcdb"
        node = Node(self._stack.enter_context(Database(path)))
        self.all.append(node)
        return node

    def copy(self, node: Node) -> FilePath:
        """Copies the file of a node, as ``cp`` does."""
        path = self._directory / f"{next(self._numbers)}.svcdb"
        shutil.copyfile(node.database.path, path)
        return path

    def open(self, path: FilePath) -> Node:
        """A node whose file is there already."""
        node = Node(self._stack.enter_context(Database(path)))
        self.all.append(node)
        return node

    def put_back(self, node: Node, older: FilePath) -> Node:
        """Puts an older copy in the place of a node's file, and takes the state directory away."""
        path = FilePath(node.database.path)
        node.database.close()
        self.all.remove(node)
        shutil.rmtree(f"{path}.d")
        shutil.copyfile(older, path)
        return self.open(path)

    def cluster(self, count: int) -> list[Node]:
        """Nodes of which the first has founded a cluster that the others have joined."""
        first, *others = (self.new() for _ in range(count))
        for node in others:
            node.join(first)
        return [first, *others]

    def heal(self, rounds: int = 3) -> None:
        """Everybody pulls from everybody, some times."""
        for _ in range(rounds):
            for one in self.all:
                for other in self.all:
                    if one is not other:
                        one.pull(other)

    def close(self) -> None:
        self._stack.close()
