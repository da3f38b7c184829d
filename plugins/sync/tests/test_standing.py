"""What a node tells of its cluster: health, gauges, statistics, and who holds back what is forgotten."""

from __future__ import annotations

import os
from typing import Any

from msgspec.structs import replace
from svc_sync.configuration import SyncConfiguration
from svc_sync.exchange import peers
from svc_sync.gauges import SyncGauges
from svc_sync.health import SyncHealth
from svc_sync.standing import standing_of

from svc.plugin import HealthStatus

from .nodes import Node, Nodes  # noqa: TID252


class Context:
    """What is handed to gauges and checks."""

    def __init__(self, node: Node, **settings: Any) -> None:
        self.database = node.database
        self.configuration = SyncConfiguration(**settings)


def absent(node: Node, days: float) -> list[int]:
    standing = standing_of(node.database, days)
    assert standing is not None
    return standing.absent


def test_a_member_that_lacks_something_and_is_silent_is_named(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    b.put("y", b"1")
    nodes.heal()
    assert absent(a, 0.0) == [], "it has all, so nobody waits for it"
    a.put("x", b"1")
    a.snapshot()
    place = a.database.state_directory / "sync" / peers._heard_name(b.node_id)
    os.utime(place, (1, 1))
    assert absent(a, 30) == [], "its own last write is not that old"
    assert absent(a, 0.0) == [b.node_id]
    found = SyncHealth().check(Context(a, absent_days=30))  # type: ignore[arg-type]
    assert found.status is HealthStatus.HEALTHY
    peers.note_heard(a.database, b.node_id)
    assert absent(a, 0.01) == []


def test_health_is_degraded_by_one(nodes: Nodes, monkeypatch: Any) -> None:
    a, b = nodes.cluster(2)
    a.put("x", b"1")
    a.snapshot()
    from svc_sync import standing

    later = standing.now_ms() + 40 * 86_400_000
    monkeypatch.setattr(standing, "now_ms", lambda: later)
    found = SyncHealth().check(Context(a))  # type: ignore[arg-type]
    assert (found.status, found.details) == (HealthStatus.DEGRADED, {"members": [b.node_id]})


def test_gauges_and_statistics(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    peers.take_peer(a.database, b.node_id, "http://b")
    status = peers.PeerStatus(state="Active", last_sync_at=5_000, lag_ms=250, clock_offset_ms=-10.0)
    peers.write_status(a.database, b.node_id, replace(status, sent=7, received=9))
    a.put("x", b"1")
    a.snapshot()
    context: Any = Context(a)
    told = {(one.name, *one.labels.values()): one.value for one in SyncGauges().gauges(context)}
    peer = str(b.node_id)
    assert told["svc_sync_peers_by_state", "active"] == 1
    assert told["svc_sync_peers_by_state", "disconnected"] == 0
    assert told["svc_sync_registers",] == 1
    assert told["svc_sync_members",] == 2
    assert told["svc_sync_absent_members",] == 0
    assert told["svc_sync_peer_lag_seconds", peer] == 0.25
    assert told["svc_sync_peer_clock_offset_seconds", peer] == -0.01
    assert told["svc_sync_peer_last_sync_seconds", peer] == 5
    assert (told["svc_sync_peer_sent_bytes", peer], told["svc_sync_peer_received_bytes", peer]) == (7, 9)
    said = SyncGauges().statistics(context, None)["sync"]  # type: ignore[arg-type]
    assert (said["members"], said["active"], said["registers"], said["absent"]) == (2, 1, 1, [])
    assert (said["lag_ms"], said["clock_offset_ms"], said["sent_bytes"]) == (250, -10.0, 7)
