"""The node, its peers and conflicts as answers show them."""

from __future__ import annotations

import statistics

from svc.plugin import Database, Entry, EntryKind, format_path
from svc_sync.choosing import chosen_node
from svc_sync.clock import milliseconds_of
from svc_sync.configuration import SyncConfiguration
from svc_sync.exchange.commits import read_snapshot
from svc_sync.exchange.peers import PeerStatus, status_of
from svc_sync.exchange.records import ensure_node, peers_of, read_state
from svc_sync.exchange.resolving import Found, detected_ms, name_of
from svc_sync.models import PeerRecord, PeerShown, ShownConflict, SyncStatus, VersionShown
from svc_sync.registers import Dot
from svc_sync.standing import standing_of
from svc_sync.values import Directory, Value

__all__ = ["shown_conflict", "shown_peers", "shown_status"]


def shown_status(database: Database, settings: SyncConfiguration) -> SyncStatus:
    """Returns this node's view; makes it a node if it is none yet."""
    node = ensure_node(database)
    peers = shown_peers(database)
    offsets = [peer.clock_offset_ms for peer in peers if peer.clock_offset_ms is not None]
    snapshot = read_snapshot(database)
    members = snapshot.state.cluster.members.values()
    standing = standing_of(database, settings.absent_days)
    assert standing is not None  # it is a node by now
    return SyncStatus(
        node_id=node.node_id,
        cluster_id=node.cluster_id,
        head=database.head().root.hex(),
        clock_offset_ms=statistics.median(offsets) if offsets else None,
        peer_count=len(peers),
        members=sorted(one.node_id for one in members),
        sync_paths=_globs(snapshot.scope.globs),
        is_copying=node.copying is not None,
        peers=peers,
        stale=standing.stale,
        registers=standing.registers,
        absent=standing.absent,
        chosen_node=chosen_node(database, settings.takeover_seconds),
    )


def shown_peers(database: Database) -> list[PeerShown]:
    """Returns the peers by id."""
    system = database.system()
    found = peers_of(system)
    if not found:
        return []
    members = read_state(system)[0].cluster.members.values()
    scopes = {member.node_id: member.scope for member in members}
    return [_shown_peer(peer, status_of(database, peer.node_id), scopes.get(peer.node_id)) for peer in found]


def _shown_peer(peer: PeerRecord, status: PeerStatus, globs: tuple[str, ...] | None) -> PeerShown:
    return PeerShown(
        node_id=peer.node_id,
        address=peer.address,
        label=peer.label,
        state=status.state,
        sync_paths=_globs(globs),
        last_sync_at=status.last_sync_at,
        last_error=status.last_error,
        clock_offset_ms=status.clock_offset_ms,
        lag=status.lag_ms,
        sent_bytes=status.sent,
        received_bytes=status.received,
    )


def shown_conflict(found: Found) -> ShownConflict:
    """Returns a conflict."""
    conflict = found.conflict
    return ShownConflict(
        path=format_path(found.path),
        kind=conflict.kind.value,
        winner=_version(conflict.winner_dot, conflict.winner, found.winner_node),
        loser=_version(conflict.dot, conflict.loser, found.loser_node),
        detected_at=detected_ms(found),
    )


def _globs(globs: tuple[str, ...] | None) -> list[str] | None:
    return None if globs is None else list(globs)


def _version(dot: Dot, value: Value, node_id: int | None) -> VersionShown:
    kind, content, size, updated_ms = "deleted", None, None, milliseconds_of(dot.vt)
    if isinstance(value, Directory):
        kind = "directory"
    elif isinstance(value, Entry):
        kind = "file" if value.kind is EntryKind.FILE else "link"
        content, size, updated_ms = value.hash.hex(), value.size, value.updated_ms
    return VersionShown(
        version=name_of(dot), hash=content, size=size, updated_at=updated_ms, node_id=node_id, kind=kind
    )
