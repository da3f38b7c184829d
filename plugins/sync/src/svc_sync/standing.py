"""How the cluster is, as one node sees it: what health, gauges, statistics and the command tell."""

from __future__ import annotations

from msgspec import Struct

from svc.plugin import Database, Version
from svc_sync.clock import milliseconds_of
from svc_sync.cluster import Cluster
from svc_sync.exchange.peers import PeerStatus, heard_ms, status_of
from svc_sync.exchange.records import NodeRecord, find_node, now_ms, peers_of, read_state
from svc_sync.exchange.store import REGISTERS
from svc_sync.models import PeerRecord

__all__ = ["STATES", "Standing", "absent_members", "standing_of"]

STATES = ("Disconnected", "Honeymoon", "Active")
_DAY_MS = 86_400_000


class Standing(Struct, frozen=True):
    """How the cluster is.

    Attributes:
        node: this node.
        peers: those that it pulls from, each with how it goes.
        members: how many nodes the cluster has.
        registers: how many paths some member may not know yet.
        absent: ids of members that are silent for long and hold back what is forgotten.
    """

    node: NodeRecord
    peers: list[tuple[PeerRecord, PeerStatus]]
    members: int
    registers: int
    absent: list[int]

    @property
    def stale(self) -> str | None:
        """Why this node has to join anew, as a peer says; None: it has not."""
        return next((status.stale for _, status in self.peers if status.stale is not None), None)

    def in_state(self, state: str) -> int:
        """Returns how many peers are in a state."""
        return sum(status.state == state for _, status in self.peers)


def standing_of(database: Database, absent_days: float) -> Standing | None:
    """Returns how the cluster is; None where the database is no node yet."""
    system = database.system()
    node = find_node(system)
    if node is None:
        return None
    peers = [(peer, status_of(database, peer.node_id)) for peer in peers_of(system)]
    state, _ = read_state(system)
    return Standing(
        node,
        peers,
        len(state.cluster.members),
        _count_registers(system),
        absent_members(database, state.cluster, node.writer, absent_days),
    )


def absent_members(database: Database, cluster: Cluster, writer: int, days: float) -> list[int]:
    """Returns members that lack what this node knows, and of which nothing was heard for some days.

    The times of their own writes count too, since what was heard is kept on this machine alone.
    """
    mine = cluster.rows.get(writer, {})
    oldest = now_ms() - days * _DAY_MS
    found = []
    for member in cluster.members.values():
        row = cluster.rows.get(member.writer, {})
        if member.writer == writer or all(row.get(one, -1) >= vt for one, vt in mine.items()):
            continue
        known = max(row.values(), default=0)
        times = (
            milliseconds_of(known),
            heard_ms(database, member.node_id),
            status_of(database, member.node_id).last_sync_at or 0,
        )
        if max(times) < oldest:
            found.append(member.node_id)
    return sorted(found)


def _count_registers(system: Version) -> int:
    entry = system.get(REGISTERS)
    return 0 if entry is None or entry.totals is None else entry.totals.files
