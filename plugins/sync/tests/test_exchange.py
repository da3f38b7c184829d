"""Two and three nodes in one process: what is stamped, what is merged, and what is refused."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

import pytest
from msgspec.structs import replace
from svc_sync.conflicts import ConflictKind
from svc_sync.exchange import commits, merging, pulling, resolving, store
from svc_sync.exchange.losers import Losers
from svc_sync.exchange.membership import remove_member
from svc_sync.exchange.records import ACTOR, ensure_node, put_state, read_state

from svc import Database
from svc.database.committer import CommitRequest
from svc.errors import Conflict, NotFound, SvcError
from svc.plugin import collect, reference_path

from .nodes import Node, Nodes, agree  # noqa: TID252


def test_times_types_links_and_empty_directories_travel_exactly(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("docs/one", b"1", content_type="text/x-own", created_ms=5, updated_ms=7)
    a.put("large", b"0123456789abcdef" * 50_000)
    a.mkdir("empty/below")
    with a.database.transaction() as changes:
        changes.link(("link",), "/docs/one")
    assert b.pull(a) == 4
    agree(a, b)
    entry = b.database.at().get(("docs", "one"))
    assert entry is not None
    assert (entry.created_ms, entry.updated_ms, entry.content_type) == (5, 7, "text/x-own")


def test_a_node_alone_has_no_registers(nodes: Nodes) -> None:
    node = nodes.new()
    ensure_node(node.database)
    for number in range(5):
        node.put(f"f{number}", b"x")
    assert node.registers() == {}
    sequence = node.database.head().sequence
    node.snapshot()
    assert node.database.head().sequence == sequence


def test_what_all_know_is_forgotten(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x/y", b"1")
    a.put("x/z", b"1")
    a.delete("x/z")
    nodes.heal()
    assert a.registers() == b.registers() == {}
    system = a.database.system()
    assert list(system.walk(("sync", "registers"))) == []
    assert list(system.walk(("sync", "recent"), files_only=True)) == []


def test_nothing_is_committed_where_nothing_is_new(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    nodes.heal()
    before = a.database.head().sequence, b.database.head().sequence
    nodes.heal()
    assert (a.database.head().sequence, b.database.head().sequence) == before


def test_a_conflict_keeps_both_and_its_resolution_reaches_everybody(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    a.put("x", b"old")
    nodes.heal()
    a.put("x", b"of a")
    b.put("x", b"of b")
    nodes.heal()
    agree(a, b, c)
    for node in (a, b, c):
        [row] = node.conflicts()["x",]
        assert row.kind is ConflictKind.MODIFY_MODIFY
        _, found = resolving.find_conflict(node.database, ("x",))
        version, entry = resolving.loser_content(node.database, found)
        assert {node.read("x"), version.read_all(entry)} == {b"of a", b"of b"}
    loser = {b"of a", b"of b"} - {c.read("x")}
    resolving.resolve_conflict(c.database, ("x",), pick_loser=True, name=None)
    assert c.read("x") in loser
    nodes.heal()
    agree(a, b, c)
    assert a.conflicts() == {}
    assert a.read("x") in loser
    assert list(Losers(b.database).paths()) == []
    with pytest.raises(NotFound):
        resolving.resolve_conflict(a.database, ("x",), pick_loser=False, name=None)


def test_a_change_beats_a_deletion_and_is_listed(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"old")
    nodes.heal()
    a.put("x", b"new")
    b.delete("x")
    nodes.heal()
    agree(a, b)
    assert b.read("x") == b"new"
    assert [row.kind for row in a.conflicts()["x",]] == [ConflictKind.MODIFY_DELETE]
    resolving.resolve_conflict(b.database, ("x",), pick_loser=True, name=None)
    nodes.heal()
    assert a.read("x") is None


def test_a_file_at_the_path_of_a_directory_is_a_conflict(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"file")
    b.put("x/y", b"below")
    nodes.heal()
    agree(a, b)
    assert a.read("x", "y") == b"below"
    assert a.conflicts().keys() == {("x",)}
    with pytest.raises(Conflict):
        resolving.resolve_conflict(a.database, ("x",), pick_loser=True, name=None)
    b.delete("x")
    nodes.heal()
    agree(a, b)
    assert a.conflicts().keys() == {("x",)}
    resolving.resolve_conflict(a.database, ("x",), pick_loser=True, name=None)
    nodes.heal()
    assert b.read("x") == b"file"


def test_a_displaced_file_comes_back_when_no_node_has_the_directory_any_more(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"file")
    b.put("x/y", b"1")
    b.put("x/z", b"2")
    nodes.heal()
    a.delete("x/y")
    b.delete("x/z")
    nodes.heal()
    agree(a, b)
    assert a.read("x") == b"file"
    assert a.conflicts() == {}


def test_losers_survive_a_collection(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"of a" * 50_000)
    b.put("x", b"of b" * 50_000)
    nodes.heal()
    for node in (a, b):
        collect(node.database)
        node.database.drop_caches()
        _, found = resolving.find_conflict(node.database, ("x",))
        version, entry = resolving.loser_content(node.database, found)
        assert len(version.read_all(entry)) == 200_000


def test_what_is_not_stamped_survives_a_collection(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("kept", b"1")
    nodes.heal()
    for number in range(20):
        a.put("changed", b"%d" % number)
    a.delete("kept")
    collect(a.database)
    nodes.heal()
    agree(a, b)
    assert b.read("changed") == b"19"
    assert b.read("kept") is None


def test_what_was_merged_is_no_write_of_its_own_after_a_collection(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    for name in ("f", "g", "h"):
        a.put(name, b"one")
        nodes.heal()  # Each is a merge of its own: the trees between are collected.
    assert b.registers() == {}
    a.delete("f")
    a.put("h", b"new")
    collect(b.database)
    b.database.drop_caches()
    nodes.heal()
    for node in (a, b):
        assert (node.read("f"), node.read("h"), node.conflicts()) == (None, b"new", {})
    agree(a, b)


def test_rounds_are_bounded_and_go_on(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "ROUND_PATHS", 7)
    monkeypatch.setattr(commits, "ROUND_COMMITS", 3)
    a, b = nodes.cluster(2)
    with a.database.transaction() as changes:
        for number in range(40):
            changes.put((f"d{number % 3}", f"{number}"), b"x")
    for number in range(10):
        a.put(f"one{number}", b"y")
    before = a.database.head().sequence
    a.snapshot()
    assert a.database.head().sequence - before > 5
    nodes.heal()
    agree(a, b)


def test_a_joiner_takes_everything_and_must_be_empty(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"of a")
    b.put("x", b"of b")
    nodes.heal()
    joiner = nodes.new()
    joiner.join(a)
    agree(a, joiner)
    assert joiner.conflicts().keys() == a.conflicts().keys()
    full = nodes.new()
    full.put("x", b"own")
    with pytest.raises(Conflict, match="--merge"):
        full.join(a)
    with pytest.raises(Conflict, match="already"):
        joiner.join(b)
    nodes.all.remove(full)
    nodes.heal()
    assert a.database.system().get(reference_path(f"sync/joining-{joiner.node_id}")) is None


def test_a_removed_node_is_refused_and_forgotten(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    remove_member(a.database, c.node_id)
    with pytest.raises(SvcError):
        c.pull(a)
    b.pull(a)
    with pytest.raises(SvcError):
        b.pull(c)
    with pytest.raises(NotFound):
        remove_member(a.database, 12_345)
    with pytest.raises(Conflict):
        remove_member(a.database, a.node_id)


def test_an_older_copy_that_was_put_back_is_found(nodes: Nodes) -> None:
    """The others have seen commits that its log does not hold."""
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    nodes.heal()
    state, _ = read_state(a.database.system())
    head = state.cluster.heads[ensure_node(b.database).writer]
    lost = replace(head, sequence=head.sequence + 1_000, identity=b"of a commit that is gone", vt=head.vt + 1)
    cluster = replace(state.cluster, heads={**state.cluster.heads, ensure_node(b.database).writer: lost})
    snapshot = a.snapshot()
    with a.database.transaction() as changes:
        commits.put_state(changes, replace(snapshot.state, cluster=cluster), snapshot.entry)
    with pytest.raises(pulling.MeetingRefused, match="join anew"):
        b.pull(a)


@pytest.mark.parametrize("step", range(1, 9))
def test_a_crash_before_any_commit_of_a_pull_loses_nothing(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Losers first, then the page, then what is forgotten: wherever it ends, the next pull goes on."""
    a, b = nodes.cluster(2)
    for node, content in ((a, b"of a"), (b, b"of b")):
        node.put("x", content)
        node.put("large", content * 50_000)
        node.put(f"only/{content.decode()}", content)
    a.put("y", b"file")
    b.put("y/below", b"1")
    a.snapshot()
    commits_left = step
    submit = Database.submit

    class Killed(BaseException):
        pass

    def killed(self: Database, request: CommitRequest) -> None:
        nonlocal commits_left
        if self is b.database:
            commits_left -= 1
            if commits_left == 0:
                raise Killed
        submit(self, request)

    with monkeypatch.context() as patched:
        patched.setattr(Database, "submit", killed)
        with contextlib.suppress(Killed):
            b.pull(a, limit=1)
            b.pull(a)
    nodes.heal()
    agree(a, b)
    for node in (a, b):
        pulling.tidy_all_losers(node.database)
        assert node.conflicts().keys() == {("x",), ("large",), ("y",)}
        assert sorted(Losers(node.database).paths()) == [("large",), ("x",), ("y",)]
        assert node.read("only", "of a") == b"of a"
        assert node.read("only", "of b") == b"of b"


def test_clients_write_all_the_time_while_nodes_exchange(nodes: Nodes) -> None:
    """Threads write, move and delete at the paths that are merged, between stamp and commit too."""
    a, b = nodes.cluster(2)
    stop = threading.Event()

    def write(node: Node, seed: int) -> None:
        chance = random.Random(seed)
        number = 0
        while not stop.is_set():
            number += 1
            path = "/".join(chance.choice("abc") for _ in range(chance.choice((1, 2, 2))))
            with contextlib.suppress(SvcError):
                if chance.random() < 0.6:
                    node.put(path, b"%d %d" % (seed, number))
                elif chance.random() < 0.7:
                    node.delete(path)
                else:
                    node.mkdir(path)

    threads = [threading.Thread(target=write, args=(node, seed)) for seed, node in enumerate((a, b, a, b))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            for one, other in ((a, b), (b, a)):
                with contextlib.suppress(Conflict):  # of paths that change all the time
                    one.pull(other, limit=3)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    nodes.heal()
    agree(a, b)
    assert {path: len(rows) for path, rows in a.conflicts().items()} == {
        path: len(rows) for path, rows in b.conflicts().items()
    }


def test_names_of_the_greatest_length(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("n" * 255 + "/" + "m" * 255, b"x")
    nodes.heal()
    agree(a, b)


def test_the_walk_of_many_unknown_registers_is_in_order(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_FEW", 3)
    a, b = nodes.cluster(2)
    for number in range(9):
        a.put(f"d{number % 2}/f{number}", b"%d" % number)
    found = a.snapshot().registers
    paths = list(found.unknown_to({}))
    assert paths == sorted(paths)
    assert list(found.unknown_to({}, paths[3])) == paths[4:]
    b.pull(a, limit=2)
    agree(a, b)


def test_who_learns_while_its_hello_travels_is_not_taken_for_an_older_copy(nodes: Nodes) -> None:
    """Threads of one node exchange with several peers: its hello may be older than what others know of it."""
    a, b, c = nodes.cluster(3)
    nodes.heal()
    hellos = 0

    def on_question(question: str) -> None:
        nonlocal hellos
        hellos += question == "hello"
        if hellos == 1:
            b.on_question = lambda question: None
            c.put("x", b"of c")
            b.pull(c)
            a.pull(b)

    b.on_question = on_question
    assert b.pull(a) == 0
    assert hellos == 2, "it is said anew"
    agree(a, b, c)


def test_who_lacks_what_others_count_on_is_told_although_its_log_is_whole(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    nodes.heal()
    snapshot, writer = a.snapshot(), b.snapshot().node.writer
    cluster = snapshot.state.cluster
    row = {one: vt + 1 for one, vt in cluster.rows[writer].items()}
    with a.database.transaction(actor=ACTOR) as changes:
        put_state(changes, replace(snapshot.state, cluster=cluster.with_row(writer, row)), snapshot.entry)
    with pytest.raises(pulling.MeetingRefused) as raised:
        b.pull(a)
    assert raised.value.stale == "put_back"


def test_what_loses_is_kept_while_another_thread_tidies(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is put before the registers list it: to who looks then, nothing needs it."""
    a, b, c = nodes.cluster(3)
    a.put("x", b"of a" * 30_000)
    b.put("x", b"of b" * 30_000)
    planned = merging._planned_references
    tidied = []

    def tidy(database: Database, *how: Any) -> Any:
        if not tidied:
            tidied.append(True)
            pulling.tidy_all_losers(database)
        return planned(database, *how)

    monkeypatch.setattr(merging, "_planned_references", tidy)
    b.pull(a)
    assert tidied
    [(path, [row])] = b.conflicts().items()
    assert Losers(b.database).at(path, row.dot) is not None
    c.pull(b)
    assert len(c.conflicts()) == 1


def test_what_was_taken_back_while_a_merge_was_on_its_way_is_no_write_after_it(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("path", b"of a" * 100_000)

    def write_and_take_back() -> None:
        b.put("path/below", b"of b")
        b.delete("path")

    waiting = b.do_once_before("objects", write_and_take_back)
    b.pull(a)
    assert not waiting
    nodes.heal()
    agree(a, b)
    assert b.read("path") == b"of a" * 100_000
