"""Nodes that were removed, put back from an older copy, or copied: they join anew, and nothing is lost."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from svc_sync.entering import is_copy_of_other, returns_by_itself
from svc_sync.exchange import marks, pulling, returning, taking_over
from svc_sync.exchange.membership import remove_member
from svc_sync.exchange.pulling import MeetingRefused
from svc_sync.exchange.trees import TreeCopier

from svc.errors import Conflict, NotFound, ServiceUnavailable
from svc.plugin import collect, reference_path

from .nodes import Cut, DirectConnection, Node, Nodes, agree  # noqa: TID252


def contents(node: Node, name: str) -> set[bytes]:
    """What stands at a path, and what has lost there."""
    from svc_sync.exchange.losers import Losers

    losers = Losers(node.database)
    found = {node.read(name)}
    for row in node.conflicts().get((name,), []):
        entry = losers.at((name,), row.dot)
        found.add(None if entry is None else losers.read_all(entry))
    return found  # type: ignore[return-value]


def test_a_removed_node_brings_what_it_wrote_and_takes_what_it_missed(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    for name in ("both", "deleted-there", "changed-there", "same", "deleted-here"):
        a.put(name, b"old")
    nodes.heal()
    remove_member(a.database, c.node_id)
    c.put("both", b"of c")
    c.put("new", b"of c" * 30_000)
    c.mkdir("empty")
    c.delete("deleted-here")
    a.put("both", b"of a")
    a.put("changed-there", b"of a" * 30_000)
    a.delete("deleted-there")
    for one, other in ((a, b), (b, a), (a, b)):
        one.pull(other)
    with pytest.raises(MeetingRefused):
        c.pull(a)
    c.rejoin(b)
    assert c.read("changed-there") == b"of a" * 30_000
    nodes.heal()
    agree(a, b, c)
    assert a.read("new") == b"of c" * 30_000
    for node in (a, b, c):
        assert contents(node, "both") == {b"of a", b"of c"}
        assert node.read("deleted-there") is None
        assert node.read("deleted-here") is None
    c.put("later", b"of c")
    nodes.heal()
    assert a.read("later") == b"of c"
    assert len(a.snapshot().state.cluster.members) == 3


def test_a_file_that_was_put_back_returns_without_losing_what_it_wrote_since(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    b.put("before", b"1")
    nodes.heal()
    older = nodes.copy(b)
    b.put("seen", b"by a")
    b.put("seen-and-changed", b"by a")
    nodes.heal()
    b.put("unseen", b"gone with the file")
    b = nodes.put_back(b, older)
    b.put("since", b"written since")
    b.put("seen-and-changed", b"written since")
    b.delete("before")
    with pytest.raises(MeetingRefused) as refused:
        b.pull(a)
    assert refused.value.is_stale
    b.rejoin(a, distrusts_log=True)
    assert b.read("seen") == b"by a"
    nodes.heal()
    agree(a, b)
    for node in (a, b):
        assert node.read("since") == b"written since"
        assert contents(node, "seen-and-changed") == {b"by a", b"written since"}
        assert node.read("before") is None
    assert len(a.snapshot().state.cluster.members) == 2


def test_writes_during_the_return_are_kept(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    a.put("x", b"old")
    nodes.heal()
    remove_member(a.database, c.node_id)
    a.put("other", b"1" * 100_000)
    nodes.all.remove(c)
    nodes.heal()
    nodes.all.append(c)
    number = 0

    def on_question(question: str) -> None:
        nonlocal number
        number += 1
        c.put("x", b"during the return, %d" % number)
        a.put(f"of-a-{number}", b"1")

    c.on_question = on_question
    c.rejoin(a)
    c.on_question = lambda question: None
    nodes.heal()
    agree(a, b, c)
    assert a.read("x") == b"during the return, %d" % number
    assert a.conflicts() == {}
    assert number > 3


def test_documents_and_names_of_one_that_returns(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)

    def put(node: Node, name: str, content: bytes | None) -> None:
        with node.database.transaction() as changes:
            if content is None:
                changes.delete_system(("api-keys", name))
            else:
                changes.put_system(("api-keys", name), content)

    def get(node: Node, name: str) -> bytes | None:
        system = node.database.system()
        entry = system.get(("api-keys", name))
        return None if entry is None else system.read_all(entry)

    for name in ("revoked-here", "revoked-there", "kept"):
        put(a, name, b"key")
    with a.database.transaction() as changes:
        changes.set_ref("forks/f", a.root)
        changes.set_ref("snapshots/gone", a.root)
    nodes.heal()
    remove_member(a.database, b.node_id)
    put(b, "revoked-here", None)
    put(b, "new", b"key")
    put(a, "revoked-there", None)
    put(a, "of-a", b"key")
    for node, content in ((a, b"of a"), (b, b"of b")):
        with node.database.transaction(ref="forks/f") as changes:
            changes.put(("x",), content * 30_000)
    with a.database.transaction() as changes:
        changes.set_ref("snapshots/gone", None)
    a.snapshot()
    pulling.prune(a.database)
    b.rejoin(a)
    nodes.heal()
    for node in (a, b):
        found = {name: get(node, name) for name in ("revoked-here", "revoked-there", "kept", "new", "of-a")}
        assert found == {
            "revoked-here": None,
            "revoked-there": None,
            "kept": b"key",
            "new": b"key",
            "of-a": b"key",
        }
        assert node.database.system().get(reference_path("snapshots/gone")) is None
    refs = [dict(node.database.refs("forks")) for node in (a, b)]
    assert refs[0] == refs[1]
    assert len(refs[0]) == 2, "both states of the fork are there"


def test_a_copied_file_becomes_a_node_of_its_own(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    nodes.heal()
    copied = nodes.open(nodes.copy(b))
    copied.put("of-the-copy", b"2")
    b.put("of-the-original", b"3")
    with pytest.raises(MeetingRefused) as refused:
        copied.pull(b)
    assert refused.value.is_copy
    assert not marks.has_mark(copied.database, copied.snapshot().node.writer)
    assert marks.has_mark(b.database, b.snapshot().node.writer)
    copied.rejoin(b, distrusts_log=True, is_copy=True)
    assert copied.node_id != b.node_id
    nodes.heal()
    agree(a, b, copied)
    assert a.read("of-the-copy") == b"2"
    assert copied.read("of-the-original") == b"3"
    assert len(a.snapshot().state.cluster.members) == 3


def test_a_node_that_reaches_itself_is_no_copy(nodes: Nodes) -> None:
    """One whose file was put back asks who answers where members reach it: it may answer itself."""
    _, b = nodes.cluster(2)
    nodes.heal()
    copied = nodes.open(nodes.copy(b))

    class Transport:
        schemes = ("there",)

        def check_address(self, address: str, context: object) -> None:
            pass

        def connect(self, address: str, context: object) -> DirectConnection:
            return DirectConnection(b.database)

    transports = {"there": SimpleNamespace(value=Transport(), context=None)}
    assert is_copy_of_other(copied.database, transports, "there://b", "")
    assert not is_copy_of_other(b.database, transports, "there://b", "")
    with pytest.raises(MeetingRefused, match="to this node itself") as refused:
        b.pull(b)
    assert refused.value.stale is None
    whole = nodes.copy(b)
    shutil.copytree(f"{b.database.path}.d", f"{whole}.d")
    for copy in (copied, nodes.open(whole)):
        with pytest.raises(MeetingRefused, match="copy of the other") as refused:
            copy.pull(b)
        assert refused.value.stale == "copy"


def test_a_return_that_breaks_off_changes_nothing_and_begins_anew(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    c.put("x", b"of c")
    remove_member(a.database, c.node_id)
    a.put("large", b"0123456789abcdef" * 50_000)

    for asked in range(1, 30):
        before = c.leaves(), c.snapshot().node
        c.cut_at(asked)
        try:
            c.rejoin(a)
        except Cut:
            assert (c.leaves(), c.snapshot().node) == before
        else:
            break
    assert asked > 4
    c.on_question = lambda question: None
    nodes.heal()
    agree(a, b, c)
    assert a.read("x") == b"of c"
    assert len(a.snapshot().state.cluster.members) == 3


def test_what_lost_here_while_a_node_returns_is_carried_too(nodes: Nodes) -> None:
    """A third member does not know yet that the node was removed."""
    a, b, c = nodes.cluster(3)
    nodes.heal()
    remove_member(a.database, c.node_id)
    b.put("x", b"of b")
    c.put("x", b"of c")
    waiting = c.do_once_before("registers", lambda: c.pull(b))
    c.rejoin(a)
    nodes.heal()
    agree(a, b, c)
    assert not waiting
    assert len(a.conflicts()) == 1


def test_two_returns_at_once_do_not_mix_what_they_see(nodes: Nodes) -> None:
    """A server that is asked to return, and its background process, which returns by itself."""
    a, b, c = nodes.cluster(3)
    nodes.heal()
    a.put("x", b"of a")
    remove_member(a.database, c.node_id)

    def return_by_another() -> None:
        with pytest.raises(ServiceUnavailable, match="already"):
            c.rejoin(b)

    waiting = c.do_once_before("registers", return_by_another)
    c.rejoin(a)
    nodes.heal()
    agree(a, b, c)
    assert not waiting
    c.rejoin(b)
    nodes.heal()
    agree(a, b, c)


def test_a_return_that_was_interrupted_goes_on_by_itself(nodes: Nodes) -> None:
    """The member that lets a node in removes its former life: that is no removal on purpose."""
    a, b, c = nodes.cluster(3)
    nodes.heal()
    older = nodes.copy(b)
    b.put("x", b"seen by a")
    a.pull(b)
    b = nodes.put_back(b, older)
    with pytest.raises(MeetingRefused) as refused:
        b.pull(a)
    assert refused.value.stale == "put_back"
    assert returns_by_itself(b.database, refused.value)

    def on_question(question: str) -> None:
        if question == "tree":
            raise Cut

    b.on_question = on_question
    with pytest.raises(Cut):
        b.rejoin(a, distrusts_log=True)
    b.on_question = lambda question: None
    with pytest.raises(MeetingRefused) as refused:
        b.pull(a)
    assert refused.value.stale == "removed"
    assert returns_by_itself(b.database, refused.value)
    assert marks.begun_return(b.database, b.snapshot().node.writer) is True, (
        "its log is not trusted now either"
    )
    b.rejoin(a, distrusts_log=True)
    nodes.heal()
    agree(a, b, c)
    assert marks.begun_return(b.database, b.snapshot().node.writer) is None
    remove_member(a.database, c.node_id)
    with pytest.raises(MeetingRefused) as refused:
        c.pull(a)
    assert refused.value.stale == "removed"
    assert not returns_by_itself(c.database, refused.value)


def test_one_that_lacks_what_is_forgotten_here_does_not_let_in(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    nodes.heal()
    remove_member(c.database, b.node_id)
    c.put("x", b"1")
    a.pull(c)
    c.pull(a)
    assert c.registers() == {}, "it has forgotten what b never knew"
    remove_member(c.database, a.node_id)
    remove_member(b.database, c.node_id)
    with pytest.raises(Conflict, match="no other member"):
        c.rejoin(b)
    with pytest.raises(Conflict, match="forgotten"):
        a.rejoin(b)


def test_a_copy_tells_members_nothing_before_it_knows_what_it_is(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    nodes.heal()
    copied = nodes.open(nodes.copy(b))
    nodes.all.remove(copied)
    for number in range(3):
        copied.put(f"{number}", b"of the copy")
    before = a.snapshot().state
    pulling.greet(copied.database, copied.link(a), times=1, address="http://copy")
    assert a.snapshot().state == before
    b.put("x", b"of the original")
    nodes.heal()
    agree(a, b)


def test_only_versions_that_have_a_name_can_be_asked_for(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"old")
    old = a.root
    a.put("x", b"new")
    nodes.heal()
    node = b.snapshot().node
    copier = TreeCopier(b.database, b.link(a), node.cluster_id, node.writer)
    for root in (old, a.root, a.database.system().root, bytes(32)):
        with pytest.raises(NotFound):
            copier(root, [])
    with a.database.transaction() as changes:
        changes.set_ref("snapshots/s", old)
    a.snapshot()
    assert copier(old, []) == old
    copier.let_go()


@pytest.fixture
def before_tries(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has something done in the middle of each of the next tries to take over, so that the try fails."""

    def set_acts(*acts: Callable[[], object]) -> None:
        waiting, hold_losers = iter(acts), taking_over.holding_losers

        def hold(*arguments: Any) -> Any:
            for act in waiting:
                act()
                break
            return hold_losers(*arguments)

        monkeypatch.setattr(taking_over, "holding_losers", hold)

    return set_acts


def test_a_second_try_decides_on_what_was_written_since_alone(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, before_tries: Callable[..., None]
) -> None:
    a, b, c = nodes.cluster(3)
    for number in range(50):
        c.put(f"files/{number}", b"1")
    nodes.heal()
    remove_member(a.database, c.node_id)
    nodes.all.remove(c)
    nodes.heal()
    nodes.all.append(c)
    for number in range(50):
        c.put(f"files/{number}", b"of c")
    decide, decided = returning.carry_over, 0

    def count(*arguments: Any, **named: Any) -> Any:
        nonlocal decided
        decided += 1
        return decide(*arguments, **named)

    monkeypatch.setattr(returning, "carry_over", count)
    before_tries(*(partial(c.put, f"files/{number}", b"written before a try") for number in range(8)))
    c.rejoin(a)
    assert decided == 50 + 8
    nodes.heal()
    agree(a, b, c)
    assert a.read("files", "7") == b"written before a try"
    assert a.read("files", "8") == b"of c"


def test_an_empty_directory_of_the_cluster_stands_again_when_a_second_try_empties_it(
    nodes: Nodes, before_tries: Callable[..., None]
) -> None:
    a = nodes.new()
    a.mkdir("empty")
    b, c = nodes.new(), nodes.new()
    b.join(a)
    c.join(a)
    nodes.heal()
    remove_member(a.database, c.node_id)
    c.put("empty/file", b"1")
    before_tries(lambda: c.delete("empty"))
    c.rejoin(a)
    nodes.heal()
    agree(a, b, c)
    assert ("empty",) in a.leaves()


def test_a_file_that_an_earlier_try_displaced_stays_a_conflict(
    nodes: Nodes, before_tries: Callable[..., None]
) -> None:
    a, b, c = nodes.cluster(3)
    nodes.heal()
    a.put("name", b"file")
    b.pull(a)
    a.pull(b)
    remove_member(a.database, c.node_id)
    pulling.prune(a.database)
    c.put("name/below", b"1")
    # The pull from a member that has not heard of the removal brings a register of the file.
    before_tries(lambda: (c.pull(b), c.put("other", b"1")))
    c.rejoin(a)
    nodes.heal()
    agree(a, b, c)
    for node in (a, b, c):
        assert [*node.conflicts()] == [("name",)]
    c.delete("name")
    nodes.heal()
    agree(a, b, c)


@pytest.mark.parametrize("tries", [0, 2])
def test_a_document_that_does_not_travel_stays_whatever_is_tried(
    nodes: Nodes, before_tries: Callable[..., None], tries: int
) -> None:
    a, _, c = nodes.cluster(3)
    nodes.heal()
    remove_member(a.database, c.node_id)
    with c.database.transaction() as changes:
        changes.put_system(("api-keys", "large"), b"k" * 70_000)
    before_tries(*(partial(c.put, f"file-{number}", b"1") for number in range(tries)))
    c.rejoin(a)
    entry = c.database.system().get(("api-keys", "large"))
    assert entry is not None
    assert entry.size == 70_000


@pytest.mark.parametrize("brings", [True, False])
def test_a_collection_between_two_tries_is_no_damage(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, before_tries: Callable[..., None], brings: bool
) -> None:
    a, b = nodes.cluster(2)
    c = nodes.new()
    if not brings:
        c.join(a)
        nodes.heal()
        remove_member(a.database, c.node_id)
    for number in range(100):
        c.put(f"{number % 20}/{number}", b"of c %d" % number * 1_000)
    before_tries(lambda: [c.put(f"{number}/0", b"new" * 1_000) for number in range(20)])
    stamp, stamped = taking_over.stamp, itertools.count()

    def collect_before(*arguments: Any, **named: Any) -> Any:
        if next(stamped) == 1:
            collect(c.database)
            c.database.drop_caches()
        return stamp(*arguments, **named)

    monkeypatch.setattr(taking_over, "stamp", collect_before)
    if brings:
        c.join_with_data(a)
    else:
        c.rejoin(a)
    assert next(stamped) >= 2
    nodes.heal()
    agree(a, b, c)
    assert a.read("5", "0") == b"new" * 1_000


def test_a_collection_while_a_node_carries_over_lets_it_begin_anew(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, c = nodes.cluster(3)
    nodes.heal()
    remove_member(a.database, c.node_id)
    c.put("x", b"1" * 200)
    a.put("y", b"2" * 200)
    carry_over, collected = returning.carry_over, itertools.count()

    def collect_before(*arguments: Any, **named: Any) -> Any:
        if not next(collected):
            c.put("x", b"3" * 200)
            c.snapshot()
            collect(c.database)
            c.database.drop_caches()
        return carry_over(*arguments, **named)

    monkeypatch.setattr(returning, "carry_over", collect_before)
    c.rejoin(a)
    nodes.heal()
    agree(a, b, c)
    assert a.read("x") == b"3" * 200


def test_a_name_that_is_made_here_while_the_cluster_brings_it_is_tried_again(
    nodes: Nodes, before_tries: Callable[..., None]
) -> None:
    a, b, c = nodes.cluster(3)
    nodes.heal()
    remove_member(a.database, c.node_id)
    for number in range(3):
        with a.database.transaction() as changes:
            changes.set_ref(f"snapshots/{number}", a.root)
    c.put("x", b"of c")

    def make() -> None:
        with c.database.transaction() as changes:
            changes.set_ref("snapshots/1", c.root)

    before_tries(make)
    c.rejoin(a)
    nodes.heal()
    agree(a, b, c)
    names = [sorted(node.database.refs("snapshots")) for node in (a, b, c)]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) == 4, "what c has made stands under the name of a loser"
