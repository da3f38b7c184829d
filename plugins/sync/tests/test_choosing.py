"""Which node does what one node shall do: all that reach each other say the same."""

from __future__ import annotations

import logging
import os
import time
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from svc_sync.choosing import chosen_node
from svc_sync.configuration import SyncConfiguration
from svc_sync.exchange import peers
from svc_sync.exchange.membership import remove_member
from svc_sync.exchange.pulling import MeetingRefused
from svc_sync.exchange.records import ensure_node, now_ms, peers_of
from svc_sync.job import _PeerWork, _Slots

from .nodes import Node, Nodes  # noqa: TID252


@pytest.fixture
def cluster(nodes: Nodes) -> list[Node]:
    """Three nodes by their ids, which know of each other as peers."""
    found = sorted(nodes.cluster(3), key=lambda node: node.node_id)
    nodes.heal()
    for one in found:
        for other in found:
            if one is not other:
                peers.take_peer(one.database, other.node_id, f"http://{other.node_id}")
    return found


@pytest.fixture
def began_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_began", {os.getpid(): 1})


def chosen(cluster: list[Node]) -> list[int | None]:
    return [chosen_node(one.database, 300) for one in cluster]


def hear(one: Node, other: Node, ago_ms: int) -> None:
    """One has pulled from another some time ago, and was not asked by it since."""
    at = now_ms() - ago_ms
    peers.write_status(one.database, other.node_id, peers.PeerStatus(last_sync_at=at))
    place = one.database.state_directory / "sync" / peers._heard_name(other.node_id)
    if place.exists():
        os.utime(place, (at / 1_000, at / 1_000))


def test_a_node_alone_is_it(nodes: Nodes) -> None:
    alone = nodes.new()
    alone.snapshot()
    assert chosen([alone]) == [alone.node_id]


def test_all_say_the_same_and_after_a_start_nobody_takes_over(cluster: list[Node]) -> None:
    assert chosen(cluster) == [cluster[0].node_id] * 3


def test_the_next_takes_over_from_one_that_is_silent(cluster: list[Node], began_long_ago: None) -> None:
    first, second, third = cluster
    hear(second, first, 299_000)
    hear(third, first, 301_000)
    hear(third, second, 0)
    assert chosen([second]) == [first.node_id]
    assert chosen([third]) == [second.node_id]
    hear(second, first, 301_000)
    assert chosen(cluster) == [first.node_id, second.node_id, second.node_id], "both sides of a partition"
    peers.note_heard(second.database, first.node_id)
    assert chosen([second]) == [first.node_id], "one that asks is there, though it cannot be asked"


def test_a_hello_is_heard(nodes: Nodes, began_long_ago: None) -> None:
    a, b = nodes.cluster(2)
    before = time.time_ns() // 1_000_000
    a.pull(b)
    assert peers.heard_ms(b.database, a.node_id) >= before - 10


def test_who_is_removed_or_must_join_anew_is_not_it(cluster: list[Node], nodes: Nodes) -> None:
    first, second, third = cluster
    remove_member(second.database, first.node_id)
    third.pull(second)
    assert chosen([second, third]) == [second.node_id] * 2
    status = peers.status_of(first.database, second.node_id)
    peers.write_status(first.database, second.node_id, replace(status, stale="removed"))
    assert chosen([first]) == [None]


def test_a_member_that_takes_a_part_is_not_it(nodes: Nodes) -> None:
    whole, part = sorted((nodes.new(), nodes.new()), key=lambda node: -ensure_node(node.database).node_id)
    whole.put(".config/cron.json", b"{}")
    part.join(whole, "/docs/**")
    part.pull(whole)
    whole.pull(part)
    assert part.node_id < whole.node_id
    assert chosen([whole, part]) == [whole.node_id] * 2


def test_who_was_removed_is_not_it_when_no_member_answers(cluster: list[Node]) -> None:
    first, second, third = cluster
    remove_member(second.database, first.node_id)
    [peer] = [peer for peer in peers_of(first.database.system()) if peer.node_id == second.node_id]
    context: Any = SimpleNamespace(database=first.database, logger=logging.getLogger(), extensions=None)

    def work() -> _PeerWork:
        return _PeerWork(peer, context, SyncConfiguration(), Event(), _Slots(), Lock())

    with pytest.raises(MeetingRefused) as refused:
        first.pull(second)
    work()._failed(refused.value)
    assert chosen([first]) == [None]
    work()._failed(OSError("away"))
    assert chosen([first]) == [None]
    first.rejoin(third)
    work()._failed(OSError("away"))
    assert peers.status_of(first.database, second.node_id).stale is None, "it is another life"
