"""What has no end is ended: pages, chunks, messages, and answers that come a byte at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import cbor2
import pytest
from msgspec.structs import replace
from svc_sync.api import MAXIMUM_QUESTION, Connection
from svc_sync.exchange import answering, links, messages, pulling
from svc_sync.exchange.links import Link
from svc_sync.exchange.messages import PullMessage, decode_message, encode_message
from svc_sync.exchange.records import ensure_node, now_ms
from svc_sync.job import MOST_AT_ONCE, MOST_FAILING_AT_ONCE, _Slots

from svc.errors import InvalidInput, PayloadTooLarge, ServiceUnavailable
from svc.plugin import hash_content

from .nodes import Node, Nodes, agree  # noqa: TID252
from .test_refusing import Liar, hello, register_of, verdict  # noqa: TID252


def pull_from(b: Node, liar: Liar) -> None:
    link = Link(b.database, liar)
    pulling.pull(b.database, link, pulling.greet(b.database, link, times=1).answer.member)


@pytest.mark.parametrize("paths", [["/z"], ["/a", "/z"], []], ids=["one", "two", "none"])
def test_pages_that_come_again_and_again_are_refused(nodes: Nodes, paths: list[str]) -> None:
    a, b = nodes.cluster(2)
    pages = 0

    def change(page: messages.PageAnswer) -> messages.PageAnswer:
        nonlocal pages
        pages += 1
        assert pages < 10, "it is asked for without end"
        return replace(page, registers=[(path, register_of(5)) for path in paths], last=False)

    with pytest.raises(InvalidInput, match="leads nowhere"):
        pull_from(b, Liar(a, "registers", change, messages.PageAnswer))
    b.pull(a)


def test_parts_of_a_tree_that_come_again_and_again_are_refused(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    root = ensure_node(b.database)
    parts = iter(["/b", "/c", "/b", "/c"])

    def change(part: messages.TreeAnswer) -> messages.TreeAnswer:
        return replace(part, after=next(parts))

    link = Link(b.database, Liar(a, "tree", change, messages.TreeAnswer))
    message = messages.TreeMessage(
        cluster_id=root.cluster_id, asker=root.writer, root=a.root, of_system=True, after=None
    )
    after = link.tree(message).after
    after = link.tree(replace(message, after=after)).after
    with pytest.raises(InvalidInput, match="leads nowhere"):
        link.tree(replace(message, after=after))


def test_chunks_without_a_byte_are_refused(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"0123456789" * 100_000)
    asked = 0

    def change(answer: messages.ObjectsAnswer) -> messages.ObjectsAnswer:
        nonlocal asked
        asked += 1
        assert asked < 10, "it is asked for without end"
        if answer.hashes:
            return replace(answer, hashes=[hash_content(b"")] * 64, has_more=True)
        return replace(answer, chunks=[b""])

    class EndlessLiar(Liar):
        def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
            if path.endswith("objects") and decode_message(payload, messages.ObjectsMessage).hashes:
                return encode_message(change(messages.ObjectsAnswer(chunks=[b""])))
            return super().post(path, payload, media_type, token)

    with pytest.raises(InvalidInput, match="without a byte"):
        pull_from(b, EndlessLiar(a, "objects", change, messages.ObjectsAnswer))
    assert b.read("x") is None


@pytest.mark.parametrize("question", sorted(answering.QUESTIONS))
def test_a_question_with_more_than_any_node_asks_is_refused(nodes: Nodes, question: str) -> None:
    a, _ = nodes.cluster(2)
    limit = MAXIMUM_QUESTION if question == "hello" else 64 << 10
    with pytest.raises(PayloadTooLarge):
        answering.answer(a.database, question, b"\x80" * (limit + 1))
    with pytest.raises(InvalidInput):
        answering.answer(a.database, question, b"\x80" * limit)


@pytest.mark.parametrize(
    "item",
    [b"\x80", b"\xa0", b"\x00", b"\x61a", b"\x9f\xff", b"\xc0\x00", b"\x18\x00", b"\x40"],
    ids=["lists", "maps", "numbers", "texts", "endless lists", "tags", "long numbers", "bytes"],
)
def test_a_message_of_too_many_items_is_refused_before_they_are_made(
    item: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loads(payload: bytes) -> None:
        raise AssertionError(f"{len(payload)} bytes are decoded")

    monkeypatch.setattr(messages.cbor2, "loads", loads)
    with pytest.raises(InvalidInput, match="items"):
        decode_message(b"\x9a\x00\x03\x00\x00" + item * 196_608, PullMessage)


def test_long_strings_are_few_items() -> None:
    payload = cbor2.dumps(
        {"cluster_id": "x" * 300_000, "asker": 1, "wait_ms": 70_000, "more": b"\x80" * 300_000}
    )
    assert decode_message(payload, PullMessage).wait_ms == 70_000


def test_a_hello_that_comes_again_changes_nothing(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    for one in (a, b, c):
        one.pull(a if one is not a else b)
    said = hello(b)
    assert verdict(a, said) == "accept"
    b.put("x", b"later")
    a.pull(b)
    before = a.snapshot()
    assert verdict(a, said) == "they_are_stale"
    assert a.snapshot().state.cluster.rows == before.state.cluster.rows
    # Of a member that was removed since, it lets nobody in.
    answering.answer(a.database, "hello", hello(c))
    said = hello(c)
    from svc_sync.exchange.membership import remove_member

    remove_member(a.database, c.node_id)
    assert verdict(a, said) == "they_are_stale"
    assert c.node_id not in [one.node_id for one in a.snapshot().state.cluster.members.values()]
    assert verdict(a, hello(b, t1=now_ms() - 61_000)) == "clocks_apart"
    b.pull(a)
    agree(a, b)


class Dripping(Connection):
    """Answers when it is told that it takes too long, or at once."""

    def __init__(self, answer: bytes) -> None:
        self.aborted = threading.Event()
        self.is_slow = True
        self._answer = answer

    def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
        if self.is_slow:
            assert self.aborted.wait(60), "nobody ends it"
            raise ServiceUnavailable("The connection was closed.")
        return self._answer

    def abort(self) -> None:
        self.aborted.set()


def test_an_exchange_that_takes_too_long_is_ended(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a = nodes.new()
    ensure_node(a.database)
    connection = Dripping(encode_message(messages.PullAnswer()))
    link = Link(a.database, connection, "")
    failures: list[str] = []

    def ask() -> None:
        try:
            link.pull(PullMessage(cluster_id="x", asker=1))
        except ServiceUnavailable as error:
            failures.append(error.message)

    link.abort_if_overdue()
    assert not connection.aborted.is_set(), "nothing is asked"
    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: link._asked_at is not None)
    link.abort_if_overdue()
    assert not connection.aborted.is_set(), "it may take its time"
    monkeypatch.setattr(links, "_EXCHANGE_SECONDS", -1e9)
    link.abort_if_overdue()
    thread.join(60)
    assert failures == ["The node takes too long for an exchange."]
    # What comes in between counts for it, and so does a new beginning.
    connection.is_slow = False
    link.pull(PullMessage(cluster_id="x", asker=1))
    link.begin_exchange()
    link.abort_if_overdue()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_peers_that_fail_leave_places_for_others() -> None:
    slots = _Slots()
    taken = [slots.take(is_failing=True) for _ in range(MOST_AT_ONCE)]
    assert taken == [True] * MOST_FAILING_AT_ONCE + [False] * (MOST_AT_ONCE - MOST_FAILING_AT_ONCE)
    others = [slots.take(is_failing=False) for _ in range(MOST_AT_ONCE)]
    assert others.count(True) == MOST_AT_ONCE - MOST_FAILING_AT_ONCE
    slots.give_back(is_failing=True)
    assert slots.take(is_failing=False)
    assert not slots.take(is_failing=True)
    slots.give_back(is_failing=False)
    assert slots.take(is_failing=True)
