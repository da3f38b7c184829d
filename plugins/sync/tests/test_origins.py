"""The log of a node says where what it merged was made: on which node, by whom and when."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from svc_sync.exchange import answering, commits, resolving
from svc_sync.exchange.links import Link
from svc_sync.exchange.messages import PageAnswer
from svc_sync.exchange.users import USERS, Write, read_users
from svc_sync.registers import Dot

from svc.errors import InvalidInput
from svc.plugin import Origin, Path, PathChange, TransactionRecord

from .nodes import Node, Nodes, agree  # noqa: TID252


def by(node: Node, user: str | None, *puts: str, gone: tuple[str, ...] = ()) -> int:
    """A user of a node writes files and deletes some; returns the time of the commit."""
    with node.database.transaction(actor=user) as changes:
        for path in gone:
            changes.delete(tuple(path.split("/")))
        for path in puts:
            changes.put(tuple(path.split("/")), f"{path} of {user}".encode())
    return node.database.head().time_ms


def origins(node: Node) -> dict[Path, Origin | None]:
    """Where the last commit that changed a path says that it was made."""
    found: dict[Path, Origin | None] = {}
    for commit in node.database.commits():
        for record in commit.transactions:
            if record.ref == "HEAD":
                found |= {one.path: record.origin for one in record.changes if not one.system}
    return found


def users_kept(node: Node) -> int:
    system = node.database.system()
    if system.get(USERS) is None:
        return 0
    return sum(1 for _ in system.walk(USERS, files_only=True))


def test_a_merge_names_node_user_and_time_also_of_what_came_by_another_node(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    first = by(a, "anna", "x", "d/y")
    second = by(a, "bert", "z", gone=("x",))
    b.pull(a)
    c.pull(b)
    agree(a, b, c)
    for node in (b, c):
        assert origins(node)["d", "y"] == Origin(a.node_id, "anna", first)
        assert origins(node)["z",] == Origin(a.node_id, "bert", second)
    by(c, None, "z")
    last = by(c, "carl", "d/y", gone=("z",))
    nodes.heal()
    agree(a, b, c)
    assert origins(a)["z",] == origins(b)["z",] == Origin(c.node_id, "carl", last)
    assert {users_kept(one) for one in (a, b, c)} == {0}, "what all know is forgotten"


def test_several_users_of_one_commit_stay_apart(nodes: Nodes) -> None:
    a, _ = nodes.cluster(2)
    by(a, "anna", "x")
    anna, bert, merged = (
        TransactionRecord(actor, message, "HEAD", (PathChange("put", (path,)),))
        for actor, message, path in (
            ("anna", None, "x"),
            ("bert", None, "y"),
            ("carl", Origin(1).message, "z"),
        )
    )
    commit = a.database.commit(a.database.head().sequence)
    users: dict[Write, str] = {}
    noted = commits.UsersOfCommit(replace(commit, transactions=(anna, bert, merged)), Dot(5, 6), users)
    noted.note(("x", "below"))
    noted.note(("y",))
    assert users == {
        Write.of(Dot(5, 6), ("x", "below")): "anna",
        Write.of(Dot(5, 6), ("y",)): "bert",
    }
    users.clear()
    commits.UsersOfCommit(replace(commit, transactions=(anna, merged)), Dot(5, 6), users).note(("x",))
    assert users == {Write(5, 6): "anna"}


def test_who_merges_stamps_nothing_of_it_again(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    by(a, "anna", "x", "d/y")
    by(a, "bert", "z", gone=("x",))
    b.pull(a)
    own = b.snapshot().node.writer
    by(b, "carl", "own")
    b.snapshot()
    written = {path for path, one in b.registers().items() if own in one.context}
    assert written == {("own",)}


def test_a_first_copy_names_the_member(nodes: Nodes) -> None:
    a, b = nodes.new(), nodes.new()
    by(a, "anna", "x")
    b.join(a)
    moves = [
        record.origin
        for commit in b.database.commits()
        for record in commit.transactions
        if any(change.kind == "ref" and change.path == ("HEAD",) for change in record.changes)
    ]
    assert moves == [Origin(a.node_id)]
    assert b.registers() == {}, "nothing of it is written again"


def test_a_resolution_has_its_user_on_every_node(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    by(a, "anna", "x")
    by(b, "bert", "x")
    nodes.heal()
    resolving.resolve_conflict(a.database, ("x",), pick_loser=True, name=None, actor="root")
    nodes.heal()
    agree(a, b)
    assert origins(b)["x",].user == "root"  # type: ignore[union-attr]
    assert origins(a)["x",] is None


def test_a_node_of_before_neither_sends_nor_reads_users(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = nodes.cluster(2)
    at = by(a, "anna", "x")
    asked = Link.registers

    def without(link: Link, message: Any) -> PageAnswer:
        return replace(asked(link, message), users={})

    monkeypatch.setattr(Link, "registers", without)
    b.pull(a)
    agree(a, b)
    assert origins(b)["x",] == Origin(a.node_id, None, at)


def test_users_that_cannot_be_are_refused() -> None:
    good = Write(1, 1)
    for said in (
        {"a\nb": [good]},
        {"": [good]},
        {"x" * 201: [good]},
        {"x": [Write(-1, 1)]},
        {"x": [Write(1, 0)]},
        {"x": [Write(1, 1, b"12")]},
        {"x": [good] * 5_001},
    ):
        with pytest.raises(InvalidInput):
            read_users(said)
    assert read_users({"x": [good]}) == {good: "x"}


def test_the_bytes_that_users_cost(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = nodes.cluster(2)
    for number in range(10):
        by(a, "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", f"f{number}")
    sizes: list[int] = []
    encode = answering.encode_message

    def encoded(message: Any) -> bytes:
        made: bytes = encode(message)
        if isinstance(message, PageAnswer) and message.registers:
            sizes.append(len(made) - len(encode(replace(message, users={}))))
        return made

    monkeypatch.setattr(answering, "encode_message", encoded)
    b.pull(a)
    assert sizes == [39 + 10 * 20], "the user once, and 20 bytes for each commit"
