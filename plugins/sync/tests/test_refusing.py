"""What is refused: lies, clocks that are apart, strangers, and requests without bounds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from svc_sync.checking import check_value
from svc_sync.clock import vt_of
from svc_sync.encoding import encode_register
from svc_sync.exchange import answering, messages, pulling
from svc_sync.exchange.messages import decode_message, encode_message
from svc_sync.exchange.peers import PeerStatus, take_peer, write_status
from svc_sync.exchange.records import ensure_node, now_ms, peers_of
from svc_sync.registers import Dot, Register, Version
from svc_sync.values import Directory

from svc.errors import Forbidden, InvalidInput, NotFound
from svc.plugin import Entry, EntryKind, hash_content

from .nodes import DirectConnection, Node, Nodes, agree  # noqa: TID252

YEAR_9999 = 253_402_300_000_000


class Liar(DirectConnection):
    """Changes answers on their way."""

    def __init__(self, node: Node, question: str, change: Callable[[object], object], form: type) -> None:
        super().__init__(node.database)
        self._question, self._change, self._form = question, change, form

    def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
        answer = super().post(path, payload, media_type, token)
        if path.endswith(self._question):
            changed = self._change(decode_message(answer, self._form))
            return encode_message(changed)  # type: ignore[arg-type]
        return answer


def register_of(vt: int, value: object = Directory(1), writer: int = 9) -> bytes:
    return encode_register(Register({writer: vt}, {Dot(vt, writer): Version(value)}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("a time far ahead", lambda page: replace(page, registers=[("/z", register_of(vt_of(YEAR_9999)))])),
        ("a path of the system", lambda page: replace(page, registers=[("/.svc-system/x", register_of(5))])),
        ("a path that is none", lambda page: replace(page, registers=[("/a/../b", register_of(5))])),
        ("no path", lambda page: replace(page, registers=[("/", register_of(5))])),
        (
            "a path of registers of the system",
            lambda page: replace(page, registers=[("//system/x", register_of(5))]),
        ),
        ("no register", lambda page: replace(page, registers=[("/z", b"nonsense")])),
        (
            "paths out of order",
            lambda page: replace(page, registers=[("/z", register_of(5)), ("/y", register_of(5))]),
        ),
        ("a row far ahead", lambda page: replace(page, known={**page.known, 9: vt_of(YEAR_9999)})),
        ("an empty page that is not the last", lambda page: replace(page, registers=[], last=False)),
        ("another identity", lambda page: replace(page, member=replace(page.member, writer=77))),
    ],
)
def test_a_peer_that_lies_is_refused(nodes: Nodes, what: str, change: Callable[[object], object]) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"true")
    before = b.root
    link = pulling.Link(b.database, Liar(a, "registers", change, messages.PageAnswer))
    met = pulling.greet(b.database, link, times=1)
    with pytest.raises((InvalidInput, Forbidden)):
        pulling.pull(b.database, link, met.answer.member)
    assert b.root == before, what
    b.pull(a)
    agree(a, b)


_EMPTY = hash_content(b"")
_TARGET = hash_content(b"/x")


@pytest.mark.parametrize(
    "value",
    [
        Entry(EntryKind.FILE, _EMPTY, 0, 1, 1, record=_TARGET),
        Entry(EntryKind.FILE, _TARGET, 0, 1, 1),
        Entry(EntryKind.FILE, _TARGET, 5, 1, 1, "text/html\r\nX: y"),
        Entry(EntryKind.FILE, _EMPTY, 0, 1, (1 << 63) - 1),
        Entry(EntryKind.SYMLINK, _EMPTY, 2, 1, 1, target="/x"),
        Entry(EntryKind.SYMLINK, _TARGET, 3, 1, 1, target="/x"),
        Entry(EntryKind.SYMLINK, hash_content(b"../x"), 4, 1, 1, target="../x"),
        Entry(EntryKind.SYMLINK, hash_content(b"/x\0"), 3, 1, 1, target="/x\0"),
        Directory((1 << 63) - 1),
    ],
    ids=["record", "hash", "type", "time", "link hash", "link size", "link target", "link NUL", "directory"],
)
def test_a_value_that_no_node_stores_is_refused(nodes: Nodes, value: object) -> None:
    a, b = nodes.cluster(2)
    before = b.root
    lie = [("/z", register_of(5, value))]
    link = pulling.Link(
        b.database, Liar(a, "registers", lambda page: replace(page, registers=lie), messages.PageAnswer)
    )
    met = pulling.greet(b.database, link, times=1)
    with pytest.raises(InvalidInput):
        pulling.pull(b.database, link, met.answer.member)
    assert b.root == before
    with pytest.raises(InvalidInput):
        check_value(value)  # type: ignore[arg-type]


def test_contents_that_nobody_has_named_are_not_taken(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"true")

    def change(page: messages.PageAnswer) -> messages.PageAnswer:
        return replace(page, contents=[b"lies" for _ in page.contents])

    link = pulling.Link(b.database, Liar(a, "registers", change, messages.PageAnswer))
    pulling.pull(b.database, link, pulling.greet(b.database, link, times=1).answer.member)
    assert b.read("x") == b"true"


def test_a_peer_that_sends_other_chunks_is_refused(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"0123456789" * 100_000)

    def change(answer: messages.ObjectsAnswer) -> messages.ObjectsAnswer:
        return replace(answer, chunks=[b"lies" for _ in answer.chunks])

    link = pulling.Link(b.database, Liar(a, "objects", change, messages.ObjectsAnswer))
    met = pulling.greet(b.database, link, times=1)
    with pytest.raises(InvalidInput):
        pulling.pull(b.database, link, met.answer.member)
    assert b.read("x") is None


def hello(node: Node, **members: object) -> bytes:
    said = answering.hello_of_node(node.snapshot())
    message = messages.HelloMessage(
        protocol=said.protocol,
        cluster_id=said.cluster_id,
        member=said.member,
        known=dict(said.known),
        cluster=said.cluster,
        t1=now_ms(),
    )
    return encode_message(replace(message, **members))


def verdict(node: Node, payload: bytes) -> str:
    return decode_message(answering.answer(node.database, "hello", payload), messages.HelloAnswer).verdict


def test_hellos_are_judged(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    stranger = nodes.new()
    ensure_node(stranger.database)
    stranger.put("x", b"1")
    assert verdict(a, hello(b)) == "accept"
    assert verdict(a, hello(stranger)) == "other_cluster"
    assert verdict(a, hello(a)) == "my_own_writer"
    assert verdict(a, hello(b, protocol=99)) == "other_protocol"
    assert verdict(a, hello(b, t1=now_ms() - 3_600_000)) == "clocks_apart"
    with pytest.raises(pulling.MeetingRefused, match="another cluster"):
        stranger.pull(a)


def test_clocks_that_are_apart_exchange_nothing(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    with monkeypatch.context() as patched:
        patched.setattr(answering, "now_ms", lambda: now_ms() + 40_000)
        with pytest.raises(pulling.MeetingRefused, match="clocks"):
            b.pull(a)
    assert b.read("x") is None
    b.pull(a)
    assert b.read("x") == b"1"


def test_an_address_that_works_is_kept(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)

    def known() -> list[tuple[str, str]]:
        return [(one.address, one.label) for one in peers_of(a.database.system())]

    answering.answer(a.database, "hello", hello(b, address="http://one", label="of b"))
    assert known() == [("http://one", "of b")]
    take_peer(a.database, b.node_id, "http://proxy", "by root")
    answering.answer(a.database, "hello", hello(b, address="http://one", label="of b"))
    assert known() == [("http://proxy", "by root")]
    write_status(a.database, b.node_id, PeerStatus(failing_since=1))
    answering.answer(a.database, "hello", hello(b, address="http://two"))
    assert known() == [("http://two", "by root")]


def test_what_strangers_ask_is_refused(nodes: Nodes) -> None:
    a, _ = nodes.cluster(2)
    stranger = nodes.new()
    node = ensure_node(stranger.database)
    cluster_id = ensure_node(a.database).cluster_id
    for form, question in (
        (messages.PageMessage(cluster_id=cluster_id, asker=node.writer, known={}), "registers"),
        (messages.ObjectsMessage(cluster_id=cluster_id, asker=node.writer), "objects"),
        (messages.TreeMessage(cluster_id=cluster_id, asker=node.writer, root=bytes(32)), "tree"),
        (messages.PullMessage(cluster_id=cluster_id, asker=node.writer), "pull"),
    ):
        with pytest.raises(Forbidden):
            answering.answer(a.database, question, encode_message(form))
        with pytest.raises(InvalidInput):
            answering.answer(a.database, question, b"\xff\x00nonsense")
    with pytest.raises(NotFound):
        answering.answer(a.database, "nonsense", b"")


def test_requests_are_bounded(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    node = ensure_node(b.database)
    asked = messages.ObjectsMessage(
        cluster_id=node.cluster_id, asker=node.writer, hashes=[hash_content(b"%d" % n) for n in range(65)]
    )
    with pytest.raises(InvalidInput, match="64"):
        answering.answer(a.database, "objects", encode_message(asked))
