"""Members that take a part of the tree: what they get, what they vouch for, and what they are never told."""

from __future__ import annotations

import cbor2
import pytest
from msgspec.structs import replace
from svc_sync.encoding import encode_register
from svc_sync.exchange import answering, first_copy, membership, messages, pulling
from svc_sync.exchange.links import Link
from svc_sync.exchange.losers import Losers
from svc_sync.exchange.messages import ObjectsMessage, PageMessage, TreeMessage
from svc_sync.exchange.parts import HIDDEN_ROOT, open_cursor, seal_cursor
from svc_sync.exchange.records import now_ms
from svc_sync.pages import Page
from svc_sync.registers import Dot, Register, Version
from svc_sync.scopes import Scope, check_globs
from svc_sync.values import Directory

from svc.errors import Conflict, Forbidden, InvalidInput, NotFound

from .nodes import DirectConnection, Node, Nodes, agree  # noqa: TID252

LARGE = bytes(range(256)) * 1_000


def test_globs_have_one_form() -> None:
    assert check_globs(["/b/**", "/a/*", "/b/**"]) == ("/a/*", "/b/**")
    assert check_globs(None) is None
    for bad in (
        [],
        ["docs"],
        ["/"],
        ["/a/../b"],
        ["/.svc-system/**"],
        ["/a\0"],
        [f"/{n}" for n in range(101)],
        [f"/{n}/*a*a?" for n in range(67)],
    ):
        with pytest.raises(InvalidInput):
            check_globs(bad)
    assert Scope(["/a/b/**", "/a/b/c", "/x*/y", "/a/b"]).roots == [()]
    assert Scope(["/a/b/**", "/a/b/c", "/c"]).roots == [("a", "b"), ("c",)]


def test_a_member_gets_and_gives_its_directory_only(nodes: Nodes) -> None:
    a = nodes.new()
    a.put("docs/one", b"1")
    a.put("docs/large", LARGE)
    a.put("secret/large", LARGE[::-1])
    part = nodes.new()
    part.join(a, "/docs/**")
    whole = nodes.new()
    whole.join(a)
    assert {path for path in part.leaves() if path[0][0] != "."} == {("docs", "one"), ("docs", "large")}
    a.put("docs/two", b"2")
    a.put("secret/two", b"2")
    part.put("docs/three", b"3")
    part.put("own/file", b"mine")
    nodes.heal()
    agree(a, whole)
    assert part.read("docs", "two") == b"2"
    assert part.read("secret", "two") is None
    assert a.read("docs", "three") == whole.read("docs", "three") == b"3"
    assert a.read("own", "file") is None
    assert part.read("own", "file") == b"mine"
    part.delete("docs/one")
    nodes.heal()
    assert a.read("docs", "one") is None
    for node in nodes.all:
        assert node.registers() == {}


def test_a_part_holds_back_what_is_forgotten_of_its_paths_only(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    part = nodes.new()
    part.join(a, "/docs/**")
    nodes.heal()
    a.put("docs/x", b"1")
    a.put("other/x", b"1")
    for one, other in ((b, a), (a, b), (b, a)):
        one.pull(other)
    assert a.registers().keys() == b.registers().keys() == {("docs", "x")}
    part.pull(a)
    for one, other in ((a, part), (b, a)):
        one.pull(other)
    assert a.registers() == b.registers() == {}


def test_a_part_vouches_for_what_it_wrote_only(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    part = nodes.new()
    part.join(a, "/docs/**")
    nodes.heal()
    a.put("docs/x", b"1")
    a.put("other/x", b"1")
    part.pull(a)
    b.pull(part)
    assert b.read("docs", "x") == b"1"
    assert b.read("other", "x") is None
    b.pull(a)
    assert b.read("other", "x") == b"1"


def test_own_files_stay_at_the_join_and_taken_ones_must_not_be_there(nodes: Nodes) -> None:
    a, part = nodes.new(), nodes.new()
    a.put("docs/x", b"1")
    part.put("own/docs", b"mine")
    part.put("docs/x", b"before")
    with pytest.raises(Conflict, match="at the paths"):
        part.join(a, "/docs/**")
    part.delete("docs")

    def write(question: str) -> None:
        if question == "tree":
            part.put("own/later", b"mine too")
            part.delete("own/docs")

    part.on_question = write
    part.join(a, "/docs/**")
    assert part.read("docs", "x") == b"1"
    assert part.read("own", "later") == b"mine too"
    assert part.read("own", "docs") is None


@pytest.mark.parametrize("page", [1_000, 1])
def test_a_first_copy_goes_on_when_an_own_file_in_its_way_is_gone(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(answering, "_TREE_ENTRIES", page)
    a, part = nodes.new(), nodes.new()
    a.put("a/x.jpg", b"1")
    a.put("p/x.jpg", b"1")
    part.put("p", b"mine")
    part.put("q", b"mine")
    for globs in ("/p/*.jpg", "/p/q/x"):
        with pytest.raises(Conflict, match="own at /p,"):
            part.join(a, globs)
    with pytest.raises(Conflict, match="own at /p,"):
        part.join(a, "/**/*.jpg")
    with pytest.raises(Conflict, match="own at /p,"):
        first_copy.continue_copy(part.database, part.link(a))
    part.delete("p")
    part.put("r", b"mine")
    assert first_copy.continue_copy(part.database, part.link(a))
    assert [part.read(*path) for path in (("a", "x.jpg"), ("p", "x.jpg"))] == [b"1"] * 2
    assert [part.read(name) for name in ("q", "r")] == [b"mine"] * 2


@pytest.mark.parametrize(("limit", "value"), [("_LOOKED_AT", 3), ("_LOOKS_S", 0.0)])
def test_a_first_copy_is_read_in_pages_that_hidden_files_do_not_name(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, limit: str, value: float
) -> None:
    monkeypatch.setattr(answering, limit, value)
    a, part = nodes.new(), nodes.new()
    for number in range(20):
        a.put(f"{number:02}.{'jpg' if number % 5 == 0 else 'hidden'}", b"%d" % number)
    asked: list[str] = []
    part.on_question = asked.append
    part.join(a, "/*.jpg")
    assert asked.count("tree") > 4
    assert len([path for path in part.leaves() if path[-1].endswith("jpg")]) == 4
    assert not [path for path in part.leaves() if path[-1].endswith("hidden")]


class _Recording(DirectConnection):
    """Keeps all that is answered."""

    def __init__(self, node: Node, answers: list[bytes]) -> None:
        super().__init__(node.database)
        self.answers = answers

    def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
        answer = super().post(path, payload, media_type, token)
        self.answers.append(answer)
        return answer


def test_nothing_hidden_is_in_any_answer(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = nodes.cluster(2)
    a.put("docs/large", LARGE)
    a.put("concealed/large", LARGE[::-1])
    a.put("concealed/small", b"unheard-of")
    with a.database.transaction() as changes:
        changes.set_ref("snapshots/unnamed", a.root)
    nodes.heal()
    part = nodes.new()
    answers: list[bytes] = []
    link_of = Node.link

    def link(node: Node, other: Node) -> Link:
        return Link(node.database, _Recording(other, answers)) if node is part else link_of(node, other)

    monkeypatch.setattr(Node, "link", link)
    part.join(a, "/docs/**")
    a.put("concealed/later", b"unheard-of")
    a.put("docs/later", b"later")
    b.put("concealed/of-b", b"unheard-of")
    a.pull(b)
    part.pull(a)
    part.pull(a)
    said = b"".join(answers)
    version = a.database.at()
    hidden = [entry for path, entry in version.walk() if path[0] == "concealed"]
    hashes = [entry.hash for entry in hidden] + [hash for e in hidden[1:] for hash, _ in version.chunks(e)]
    hashes += [a.root, b.root, *(commit.root for commit in a.database.commits())]
    identities = [a.database.commit_identity(n) for n in range(1, a.database.head().sequence + 1)]
    for needle in (b"concealed", b"unheard-of", b"unnamed", *hashes, *filter(None, identities)):
        assert needle not in said
        assert needle.hex().encode() not in said


def test_what_a_part_must_not_have_is_refused(nodes: Nodes) -> None:
    a, whole = nodes.cluster(2)
    a.put("docs/x", LARGE)
    a.put("secret/x", LARGE[::-1])
    part = nodes.new()
    part.join(a, "/docs/**")
    nodes.heal()
    node = part.snapshot().node
    kept = a.root
    ask = {"cluster_id": node.cluster_id, "asker": node.writer}
    tree = a.database.at()
    hidden, shown = tree.get(("secret", "x")), tree.get(("docs", "x"))
    assert hidden is not None
    assert shown is not None
    link = part.link(a)
    [chunk, *_] = [hash for hash, _ in tree.chunks(hidden)]
    for message in (
        ObjectsMessage(**ask, path="/secret/x", content=hidden.hash),
        ObjectsMessage(**ask, hashes=[chunk]),
        ObjectsMessage(**ask, path="/docs/x", content=shown.hash, hashes=[chunk]),
        ObjectsMessage(**ask, path="/docs/x", content=shown.hash, root=kept),
    ):
        with pytest.raises(NotFound):
            link.objects(message)
    with pytest.raises(NotFound):
        link.tree(TreeMessage(**ask, root=kept))
    with pytest.raises(Forbidden):
        link.tree(TreeMessage(**ask, root=HIDDEN_ROOT, of_system=True))
    for text in ("/docs/x", "00", seal_cursor(a.database, ("x",))[:-2]):
        with pytest.raises(InvalidInput):
            open_cursor(a.database, text)
    with pytest.raises(Conflict):
        nodes.new().join(part)
    with pytest.raises(Conflict):
        membership.remove_member(part.database, whole.node_id)


def test_what_is_sent_against_the_scopes_is_left_out(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, part = nodes.new(), nodes.new()
    part.join(a, "/docs/**")
    nodes.heal()
    made = Register({7: 5}, {Dot(5, 7): Version(Directory(5))})
    honest = messages.read_page

    def lying(answer: messages.PageAnswer, now_ms: int) -> Page:
        answer.registers.append(("/forced", encode_register(made)))
        return honest(answer, now_ms)

    monkeypatch.setattr(pulling, "read_page", lying)
    for one, other in ((a, part), (part, a)):
        one.pull(other)
        assert one.registers() == {}


def test_system_data_and_names_stay_away(nodes: Nodes) -> None:
    a, part = nodes.new(), nodes.new()
    with a.database.transaction() as changes:
        changes.put_system(("users", "ann"), b"{}")
        changes.set_ref("forks/f", a.root)
    with part.database.transaction() as changes:
        changes.put_system(("users", "bob"), b"{}")
    part.join(a, "/docs/**")
    with part.database.transaction() as changes:
        changes.put_system(("users", "eve"), b"{}")
        changes.set_ref("snapshots/own", part.root)
    nodes.heal()
    assert part.database.system().get(("users", "ann")) is None
    assert part.database.system().get(("users", "bob")) is not None
    assert a.database.system().get(("users", "eve")) is None
    assert [name for name, _ in a.database.refs("snapshots")] == []
    assert [name for name, _ in part.database.refs("forks")] == []
    assert part.registers() == {}


def test_conflicts_of_a_part_are_those_of_all(nodes: Nodes) -> None:
    a, part = nodes.new(), nodes.new()
    part.join(a, "/docs/**")
    a.put("docs/x", b"of a")
    part.put("docs/x", b"of the part")
    nodes.heal()
    assert part.conflicts().keys() == a.conflicts().keys() == {("docs", "x")}
    assert part.read("docs", "x") == a.read("docs", "x")
    assert list(Losers(part.database).paths()) == [("docs", "x")]


def test_a_removed_part_returns_with_what_it_has(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    part = nodes.new()
    part.join(a, "/docs/**")
    a.put("docs/x", b"1")
    part.put("own", b"mine")
    nodes.heal()
    part.put("docs/mine", b"2")
    part.put("docs/x", b"3")
    membership.remove_member(a.database, part.node_id)
    a.put("docs/late", b"4")
    a.put("secret/late", b"4")
    b.pull(a)
    a.pull(b)
    with pytest.raises(pulling.MeetingRefused):
        part.pull(a)
    part.rejoin(a)
    nodes.heal()
    agree(a, b)
    assert part.snapshot().scope.globs == ("/docs/**",)
    assert a.read("docs", "mine") == b"2"
    assert a.read("docs", "x") == b"3"
    assert part.read("docs", "late") == b"4"
    assert part.read("secret", "late") is None
    assert part.read("own") == b"mine"
    assert a.read("own") is None


def test_an_older_copy_is_told_from_what_only_a_part_has_seen(nodes: Nodes) -> None:
    _, b = nodes.cluster(2)
    part = nodes.new()
    part.join(b, "/docs/**")
    nodes.heal()
    older = nodes.copy(b)
    b.put("docs/x", b"lost")
    part.pull(b)
    b = nodes.put_back(b, older)
    b.put("docs/y", b"after")
    b.snapshot()
    with pytest.raises(pulling.MeetingRefused) as refused:
        b.pull(part)
    assert refused.value.was_put_back


def test_the_messages_of_scopes_are_checked(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    snapshot = b.snapshot()
    said = PageMessage(cluster_id=snapshot.node.cluster_id, asker=snapshot.node.writer, known={})
    answer = messages.decode_message(
        answering.answer(a.database, "registers", messages.encode_message(said)), messages.PageAnswer
    )
    raw = cbor2.loads(messages.encode_message(answer))
    raw["cluster"]["members"][snapshot.node.writer]["scope"] = ["docs"]
    with pytest.raises(InvalidInput):
        messages.read_page(messages.decode_message(cbor2.dumps(raw), messages.PageAnswer), 1 << 41)


def test_a_part_that_says_it_takes_all_is_not_told_the_root(nodes: Nodes) -> None:
    a, part = nodes.new(), nodes.new()
    part.join(a, "/docs/**")
    part.pull(a)
    mine = answering.hello_of_node(part.snapshot())
    said = messages.HelloMessage(
        protocol=mine.protocol,
        cluster_id=mine.cluster_id,
        member=replace(mine.member, scope=None),
        known=dict(mine.known),
        cluster=mine.cluster,
        t1=now_ms(),
        address="",
        label="",
        is_marked=True,
    )
    raw = answering.answer(a.database, "hello", messages.encode_message(said))
    answer = messages.decode_message(raw, messages.HelloAnswer)
    assert (answer.verdict, answer.head) == ("accept", b"")
