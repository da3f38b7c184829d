"""Nodes that join with data of their own: nothing of it is lost, and the cluster hears of all."""

from __future__ import annotations

import pytest
from svc_sync.exchange.bringing import bring_own
from svc_sync.exchange.losers import Losers
from svc_sync.exchange.membership import prepare_join, take_admission
from svc_sync.models import Admission

from svc.errors import Conflict
from svc.plugin import reference_path

from .nodes import Cut, Node, Nodes, agree  # noqa: TID252


def losers(node: Node, *path: str) -> set[bytes]:
    kept = Losers(node.database)
    found = [kept.at(path, row.dot) for row in node.conflicts().get(path, [])]
    return {kept.read_all(entry) for entry in found if entry is not None}


def a_cluster_and_a_stranger(nodes: Nodes) -> tuple[Node, Node, Node]:
    a, b = nodes.cluster(2)
    c = nodes.new()
    for name in ("same", "both", "there/x", "blocked", "kept"):
        a.put(name, b"of a" if name != "same" else b"alike")
    a.put("large", b"of a" * 50_000)
    nodes.all.remove(c)
    nodes.heal()
    nodes.all.append(c)
    for name in ("same", "both", "there", "blocked/y", "here/z"):
        c.put(name, b"of c" if name != "same" else b"alike")
    c.put("own-large", b"of c" * 50_000)
    c.mkdir("empty")
    return a, b, c


def test_what_the_cluster_lacks_is_written_and_what_differs_is_a_conflict(nodes: Nodes) -> None:
    a, b, c = a_cluster_and_a_stranger(nodes)
    c.join_with_data(a)
    assert c.read("here", "z") == b"of c"
    nodes.heal()
    agree(a, b, c)
    for node in (a, b, c):
        assert node.read("own-large") == b"of c" * 50_000
        assert node.read("large") == b"of a" * 50_000
        assert [node.read(name) for name in ("same", "both", "kept")] == [b"alike", b"of a", b"of a"]
        assert node.read("there", "x") == b"of a"
        assert node.read("blocked") == b"of a"
        assert node.database.at().get(("empty",)) is not None
        assert set(node.conflicts()) == {("both",), ("there",), ("blocked", "y")}
        for path in node.conflicts():
            assert losers(node, *path) == {b"of c"}
    assert len(b.snapshot().state.cluster.members) == 3
    c.put("both", b"later")
    nodes.heal()
    agree(a, b, c)
    assert a.read("both") == b"later"


def test_the_registers_of_what_was_brought_go_when_all_know_it(nodes: Nodes) -> None:
    a, b, c = a_cluster_and_a_stranger(nodes)
    c.join_with_data(b)
    nodes.heal()
    agree(a, b, c)
    for node in (a, b, c):
        assert set(node.registers()) == {("both",), ("there",), ("blocked", "y"), ("empty",)}


def test_what_is_written_while_it_copies_is_brought_too(nodes: Nodes) -> None:
    a, b, c = a_cluster_and_a_stranger(nodes)
    number = 0

    def on_question(question: str) -> None:
        nonlocal number
        number += 1
        c.put("during", b"%d" % number)
        c.put(f"of-c-{number}", b"1")
        if number == 2:
            c.delete("here")
        with c.database.transaction() as changes:
            changes.put_system(("api-keys", f"of-c-{number}"), b"key")
        a.put(f"of-a-{number}", b"1")

    c.on_question = on_question
    c.join_with_data(a)
    c.on_question = lambda question: None
    nodes.heal()
    agree(a, b, c)
    assert b.read("during") == b"%d" % number
    assert [b.read(f"of-{node}-{number}") for node in "ac"] == [b"1", b"1"]
    assert b.read("here", "z") is None
    assert number > 3


def test_snapshots_and_forks_come_and_users_do_not(nodes: Nodes) -> None:
    a, b, c = a_cluster_and_a_stranger(nodes)
    roots = {node: node.root for node in (a, c)}
    for node in (a, c):
        with node.database.transaction() as changes:
            changes.set_ref("snapshots/both", node.root)
            changes.set_ref(f"forks/of-{'a' if node is a else 'c'}", node.root)
            changes.put_system(("api-keys", "both"), b"of a" if node is a else b"of c")
            changes.put_system(("api-keys", "of-a" if node is a else "of-c"), b"key")
    nodes.all.remove(c)
    nodes.heal()
    nodes.all.append(c)
    c.join_with_data(a)
    nodes.heal()
    agree(a, b, c)
    for node in (a, b, c):
        snapshots, forks = dict(node.database.refs("snapshots")), dict(node.database.refs("forks"))
        assert snapshots == {
            "snapshots/both": roots[a],
            f"snapshots/both~{c.node_id}": roots[c],
        }
        assert forks == {"forks/of-a": roots[a], "forks/of-c": roots[c]}
        node.database.require_version(roots[c])
        system = node.database.system()
        keys = {name: system.read_all(entry) for name, entry in system.entries(("api-keys",))}
        assert keys == {"both": b"of a", "of-a": b"key"}


def test_a_join_that_breaks_off_leaves_what_is_here_and_begins_anew_with_any_member(nodes: Nodes) -> None:
    a, b, c = a_cluster_and_a_stranger(nodes)
    before = c.root

    for asked in range(1, 12):
        c.cut_at(asked)
        try:
            c.join_with_data(a if asked % 2 else b)
        except Cut:
            assert c.root == before
            assert len(list(c.database.refs("sync"))) < 10
        else:
            break
    assert asked > 3
    c.on_question = lambda question: None
    nodes.heal()
    agree(a, b, c)
    assert a.read("here", "z") == b"of c"
    assert len(a.snapshot().state.cluster.members) == 3


def test_a_part_is_brought_without_what_lies_beside_it(nodes: Nodes) -> None:
    a, b, c = a_cluster_and_a_stranger(nodes)
    c.join_with_data(a, "/here/**", "/bot*")
    nodes.heal()
    assert a.read("here", "z") == b"of c"
    assert [a.read("own-large"), c.read("large")] == [None, None]
    assert c.read("own-large") == b"of c" * 50_000
    assert [node.read("both") for node in (a, b, c)] == [b"of a"] * 3
    assert losers(b, "both") == {b"of c"}


def test_a_snapshot_of_an_empty_node_that_the_cluster_has_too_is_not_lost(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    c = nodes.new()
    c.put("x", b"1")
    root = c.root
    for node in (a, c):
        with node.database.transaction() as changes:
            changes.set_ref("snapshots/s", node.root)
    c.delete("x")
    c.join(a)
    nodes.heal()
    agree(a, b, c)
    kept = f"snapshots/s~{c.node_id}-{root.hex()[:12]}"
    for node in (a, b, c):
        assert node.database.system().get(reference_path("snapshots/s")) is not None
        assert dict(node.database.refs("snapshots"))[kept] == root


def test_who_is_joined_meanwhile_joins_nobody(nodes: Nodes) -> None:
    a, b, other = nodes.new(), nodes.new(), nodes.new()
    for node in (a, other):
        node.put("f", b"of a" if node is a else b"of the other")
    request = prepare_join(a.database, "", "", brings=True)
    admission = a.link(b).call("/sync/join", request, Admission)
    other.join_with_data(a)
    a.pull(other)
    with pytest.raises(Conflict, match="already"):
        take_admission(a.database, request, admission, "http://member", brings=True)
    assert losers(a, "f") == {b"of the other"}


def test_who_is_let_in_by_another_member_meanwhile_brings_nothing_by_the_first(nodes: Nodes) -> None:
    a, b, c = a_cluster_and_a_stranger(nodes)
    b.put("only-b", b"of b")
    c.do_once_before("registers", lambda: c.enter(b, brings=True))
    with pytest.raises(Conflict, match="meanwhile"):
        c.join_with_data(a)
    c.on_question = lambda question: None
    bring_own(c.database, c.link(b))
    nodes.heal()
    agree(a, b, c)
    assert [a.read("only-b"), a.read("here", "z")] == [b"of b", b"of c"]


def test_a_name_that_two_members_gave_comes_with_both_versions(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    nodes.heal()
    for node in (a, b):
        node.put(f"of-{node.node_id}", b"1")
        with node.database.transaction() as changes:
            changes.set_ref("snapshots/s", node.root)
        node.put("later", b"%d" % node.node_id)
    nodes.heal()
    c = nodes.new()
    c.put("own", b"of c")
    c.join_with_data(a)
    nodes.heal()
    agree(a, b, c)
    names = [dict(node.database.refs("snapshots")) for node in (a, b, c)]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) == 2
