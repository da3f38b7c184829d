"""Snapshots and forks: their names, and the trees that stand behind them, are those of the cluster."""

from __future__ import annotations

import time

import pytest
from svc_sync.exchange import answering, first_copy
from svc_sync.exchange.records import find_node
from svc_sync.exchange.trees import PARTIAL, TreeCopier, forget_partial_trees

from svc.plugin import collect, reference_path

from .nodes import Cut, Node, Nodes, agree  # noqa: TID252


def name(node: Node, ref: str, root: bytes | None = None) -> None:
    """Makes or moves a ref; of HEAD without a root."""
    with node.database.transaction() as changes:
        changes.set_ref(ref, node.root if root is None else root)


def forget(node: Node, ref: str) -> None:
    with node.database.transaction() as changes:
        changes.set_ref(ref, None)


def write(node: Node, ref: str, path: str, content: bytes) -> None:
    """Writes into a fork."""
    with node.database.transaction(ref=ref) as changes:
        changes.put(tuple(path.split("/")), content)


def names(node: Node, kind: str = "forks") -> dict[str, bytes]:
    return {ref.partition("/")[2]: root for ref, root in node.database.refs(kind)}


def content(node: Node, ref: str, path: str) -> bytes | None:
    entry = node.database.system().get(reference_path(ref))
    assert entry is not None
    version = node.database.version_of(entry.hash)
    found = version.get(tuple(path.split("/")))
    return None if found is None else version.read_all(found)


def test_a_snapshot_is_there_at_every_node_and_goes_from_all(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    a.put("x", b"1")
    a.put("large", b"0123456789abcdef" * 50_000)
    name(a, "snapshots/monday")
    a.put("x", b"2")
    a.delete("large")
    nodes.heal()
    agree(a, b, c)
    for node in (b, c):
        assert names(node, "snapshots") == names(a, "snapshots")
        assert content(node, "snapshots/monday", "x") == b"1"
        collect(node.database)
        node.database.drop_caches()
        assert content(node, "snapshots/monday", "large") == b"0123456789abcdef" * 50_000
    forget(c, "snapshots/monday")
    nodes.heal()
    assert names(a, "snapshots") == names(b, "snapshots") == {}
    assert a.registers() == b.registers() == c.registers() == {}
    assert not [ref for ref, _ in a.database.refs("sync") if ref.startswith("sync/tree-")]


def test_a_fork_moves_at_all_nodes(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_TREE_ENTRIES", 2)
    a, b = nodes.cluster(2)
    for number in range(7):
        a.put(f"d/{number}/x", b"%d" % number)
    nodes.heal()
    name(a, "forks/f")
    nodes.heal()
    leaves = count_leaves(monkeypatch)
    write(a, "forks/f", "d/1/x", b"changed")
    with a.database.transaction(ref="forks/f") as changes:
        changes.delete(("d", "2"), recursive=True)
        changes.delete(("d", "3"), recursive=True)
        changes.put(("d", "3"), b"a file where a directory was")
        changes.delete(("d", "4", "x"))
        changes.mkdir(("d", "5", "empty"))
        changes.delete(("d", "0"), recursive=True)
        changes.mkdir(("d", "0"))
    nodes.heal()
    assert names(a) == names(b)
    assert 5 <= sum(leaves) < 12, "what differs travels, not the whole tree"
    write(b, "forks/f", "d/3x", b"of b")
    with b.database.transaction(ref="forks/f") as changes:
        changes.delete(("d", "3"))
        changes.put(("d", "3", "below"), b"a directory where a file was")
    nodes.heal()
    assert names(a) == names(b)
    assert content(a, "forks/f", "d/3/below") == b"a directory where a file was"
    assert a.registers() == b.registers() == {}


def test_of_two_forks_that_moved_apart_the_loser_has_the_name_of_its_node(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    a.put("x", b"old")
    nodes.heal()
    name(a, "forks/f")
    nodes.heal()
    write(a, "forks/f", "x", b"of a")
    time.sleep(0.005)
    write(b, "forks/f", "x", b"of b, later")
    nodes.heal()
    loser = f"f~{a.node_id}"
    for node in (a, b, c):
        assert names(node) == names(a)
        assert names(node).keys() == {"f", loser}
        assert content(node, "forks/f", "x") == b"of b, later"
        assert content(node, f"forks/{loser}", "x") == b"of a"
    forget(c, f"forks/{loser}")
    nodes.heal()
    for node in (a, b, c):
        assert names(node).keys() == {"f"}
    assert a.registers() == b.registers() == c.registers() == {}


def test_a_loser_that_is_written_to_is_a_fork_of_its_own(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    name(a, "forks/f")
    nodes.heal()
    write(a, "forks/f", "x", b"of a")
    time.sleep(0.005)
    write(b, "forks/f", "x", b"of b, later")
    nodes.heal()
    loser = f"f~{a.node_id}"
    write(b, f"forks/{loser}", "y", b"more")
    nodes.heal()
    assert names(a) == names(b)
    assert content(a, f"forks/{loser}", "x") == b"of a"
    assert content(a, f"forks/{loser}", "y") == b"more"
    assert a.registers() == b.registers() == {}


def test_a_change_counts_more_than_a_deletion(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    name(a, "forks/f")
    nodes.heal()
    write(a, "forks/f", "x", b"of a")
    forget(b, "forks/f")
    nodes.heal()
    assert names(a) == names(b)
    assert content(b, "forks/f", "x") == b"of a"


def test_the_name_comes_with_its_tree_or_not_at_all(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("gone", b"0123456789abcdef" * 50_000)
    name(a, "snapshots/s")
    a.delete("gone")

    def on_question(question: str) -> None:
        if question == "objects":
            raise Cut

    b.on_question = on_question
    with pytest.raises(Cut):
        b.pull(a)
    assert names(b, "snapshots") == {}
    assert [ref for ref, _ in b.database.refs("sync") if ref.startswith("sync/tree-")]
    forget_partial_trees(b.database)
    assert not [ref for ref, _ in b.database.refs("sync") if ref.startswith("sync/tree-")]
    b.on_question = lambda question: None
    nodes.heal()
    assert names(b, "snapshots") == names(a, "snapshots")
    assert content(b, "snapshots/s", "gone") == b"0123456789abcdef" * 50_000
    assert not [ref for ref, _ in b.database.refs("sync") if ref.startswith("sync/tree-")]


def test_a_joiner_gets_the_names_and_brings_its_own(nodes: Nodes) -> None:
    a, b = nodes.new(), nodes.new()
    a.put("x", b"1")
    name(a, "snapshots/s")
    name(a, "snapshots/long/" + "n" * 150)
    name(a, "forks/f")
    write(a, "forks/f", "y", b"of the fork")
    a.put("x", b"2")
    b.put("own", b"of b")
    name(b, "snapshots/own")
    b.delete("own")
    b.join(a)
    nodes.heal()
    assert names(a) == names(b)
    assert names(a, "snapshots") == names(b, "snapshots")
    assert names(b, "snapshots").keys() == {"s", "long/" + "n" * 150, "own"}
    assert content(b, "forks/f", "y") == b"of the fork"
    assert content(a, "snapshots/own", "own") == b"of b"
    assert find_node(b.database.system()).copying is None  # type: ignore[union-attr]
    assert not [ref for ref, _ in b.database.refs("sync") if ref.startswith("sync/tree-")]


def count_leaves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many leaves each answer to the question for a tree has."""
    counts: list[int] = []
    honest = answering.TreeAnswer

    def made(**members: object) -> object:
        counts.append(len(members["leaves"]))  # type: ignore[arg-type]
        return honest(**members)  # type: ignore[arg-type]

    monkeypatch.setattr(answering, "TreeAnswer", made)
    return counts


@pytest.mark.parametrize("pages_before", [1, 2, 3])
def test_two_threads_that_copy_one_tree_do_not_mix_it(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, pages_before: int
) -> None:
    """Each peer is pulled from by a thread of its own, and several peers have the tree."""
    monkeypatch.setattr(answering, "_TREE_ENTRIES", 2)
    a, b = nodes.cluster(2)
    for number in range(8):
        a.put(f"f{number}", b"%d" % number)
    name(a, "snapshots/monday")
    root = a.root
    for number in range(8):
        a.delete(f"f{number}")
    asker = b.snapshot().node
    other = TreeCopier(b.database, b.link(a), asker.cluster_id, asker.writer)
    asked = 0

    def on_question(question: str) -> None:
        nonlocal asked
        asked += question == "tree"
        if asked == pages_before:
            b.on_question = lambda question: None
            assert other(root, []) == root
            other.let_go()

    a.snapshot()  # The name is known as one of the cluster.
    b.on_question = on_question
    copier = TreeCopier(b.database, b.link(a), asker.cluster_id, asker.writer)
    assert copier(root, []) == root
    assert len(list(b.database.version_of(root).walk())) == 8
    copier.let_go()
    assert not [ref for ref, _ in b.database.refs("sync") if ref.startswith(PARTIAL)]


@pytest.mark.parametrize("question", [1, 2, 3, 4, 5])
def test_a_first_copy_that_broke_off_behind_its_files_goes_on(nodes: Nodes, question: int) -> None:
    """Behind the last part of the tree come documents, names, and trees of names: each may fail."""

    a, b = nodes.new(), nodes.new()
    a.put("x", b"1")
    a.put("large", b"0123456789abcdef" * 50_000)
    a.mkdir("empty")
    with a.database.transaction() as changes:
        changes.set_ref("snapshots/monday", a.root)
    a.put("x", b"2")
    asked = 0

    def on_question(question_asked: str) -> None:
        nonlocal asked
        asked += question_asked != "join"
        if asked == question:
            raise Cut

    b.on_question = on_question
    with pytest.raises(Cut):
        b.join(a)
    b.on_question = lambda question_asked: None
    assert first_copy.continue_copy(b.database, b.link(a))
    agree(a, b)
    nodes.heal()
    assert dict(b.database.refs("snapshots")) == dict(a.database.refs("snapshots"))


def test_a_version_in_which_a_file_became_an_empty_directory_is_copied(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    nodes.heal()
    a.delete("x")
    a.mkdir("x")
    name(a, "snapshots/s")
    a.put("later", b"2")
    nodes.heal()
    agree(a, b)
    assert dict(b.database.refs("snapshots")) == dict(a.database.refs("snapshots"))
