"""The node of a cluster that does what one node shall do: the one with the lowest id that is not silent.

Members that take a part of the files don't count: the schedules are not sent to them.
"""

from __future__ import annotations

from typing import ClassVar

from svc_tasks.api import NodeChoice

from svc.plugin import Database, PluginContext
from svc_sync.configuration import SyncConfiguration
from svc_sync.exchange.peers import PeerStatus, began_ms, heard_ms, status_of
from svc_sync.exchange.records import find_node, now_ms, peers_of, read_state

__all__ = ["LowestNode", "chosen_node"]


class LowestNode(NodeChoice):
    """Each node decides by what it has heard, so that none waits for another."""

    name: ClassVar[str] = "lowest-node"

    def runs_here(self, context: PluginContext) -> bool:
        """Reads the state of the cluster, and a small file or two for each member of a lower id."""
        settings = context.configuration or SyncConfiguration()
        database = context.database
        node = find_node(database.system())
        if node is None:
            return True
        return chosen_node(database, settings.takeover_seconds) == node.node_id


def chosen_node(database: Database, takeover_seconds: float) -> int | None:
    """Returns the node that does what one node shall do; None: this one must not, and knows of no other.

    Args:
        database: of a node.
        takeover_seconds: a member that was silent for longer does not count.
    """
    system = database.system()
    node = find_node(system)
    if node is None:
        return None
    peers = {peer.node_id: status_of(database, peer.node_id) for peer in peers_of(system)}
    if node.copying is not None or any(status.stale is not None for status in peers.values()):
        return None
    state, _ = read_state(system)
    oldest = now_ms() - takeover_seconds * 1_000
    whole = (member for member in state.cluster.members.values() if member.scope is None)
    for node_id in sorted(member.node_id for member in whole):
        if node_id == node.node_id or _last_heard(database, node_id, peers.get(node_id)) >= oldest:
            return node_id
    return None


def _last_heard(database: Database, node_id: int, status: PeerStatus | None) -> int:
    """When a member was heard of last; one that was not yet counts as heard of when this was first asked."""
    times = [began_ms(), heard_ms(database, node_id)]
    if status is not None:
        times.append(status.last_sync_at or 0)
    return max(times)
