"""The operations on the cluster, which are root's, and the reading of what has lost, which is everybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import (
    AuthRequired,
    Conflict,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    RangeNotSatisfiable,
    ServiceUnavailable,
)
from svc.plugin import (
    Operation,
    Path,
    Weight,
    format_path,
    operation,
    parse_path,
    requires_in_body,
    requires_root,
)
from svc_sync.models import (
    Admission,
    ConflictList,
    ConflictQuery,
    EnterBody,
    Joined,
    JoinRequest,
    KeptQuery,
    NewPeer,
    PeerShown,
    RejoinBody,
    RemovedPeer,
    ResolveBody,
    ResolvedConflict,
    SyncStatus,
    Triggered,
    VersionQuery,
)

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = [
    "add_peer",
    "admit_node",
    "enter_cluster",
    "list_conflicts",
    "list_peers",
    "read_kept",
    "read_loser",
    "rejoin_cluster",
    "remove_peer",
    "resolve_conflict",
    "sync_status",
    "trigger_sync",
]

_REMOTE = (AuthRequired, Conflict, NotFound, ServiceUnavailable)


@operation("POST", "/sync/join", requires_root, errors=(Conflict,), weight=Weight.DEAR, repeatable=False)
def admit_node(call: Call, body: JoinRequest) -> Admission:
    """Takes a node into the cluster. A node that joins calls this of a member, with a token of its root."""
    from svc_sync.exchange.membership import admit

    return admit(call.database, body)


@operation("POST", "/sync/enter", requires_root, errors=_REMOTE, weight=Weight.DEAR, repeatable=False)
def enter_cluster(call: Call, body: EnterBody) -> Joined:
    """Lets this node join the cluster of another one: an empty one, or with ``merge`` one that holds data."""
    from svc_sync.entering import enter

    return enter(call, body)


@operation("POST", "/sync/rejoin", requires_root, errors=_REMOTE, weight=Weight.DEAR, repeatable=False)
def rejoin_cluster(call: Call, body: RejoinBody = RejoinBody()) -> Joined:
    """Lets this node join its cluster anew, with all that it has; for one that was removed, say."""
    from svc_sync.entering import rejoin

    return rejoin(call, body)


@operation("GET", "/sync/status", requires_root, older=("/sync/",), weight=Weight.SMALL)
def sync_status(call: Call) -> SyncStatus:
    """Tells how this node sees the cluster."""
    from svc_sync.configuration import SyncConfiguration
    from svc_sync.showing import shown_status

    return shown_status(call.database, call.configuration or SyncConfiguration())


@operation("GET", "/sync/peers", requires_root, weight=Weight.SMALL)
def list_peers(call: Call) -> list[PeerShown]:
    """Lists the nodes that this one pulls from."""
    from svc_sync.showing import shown_peers

    return shown_peers(call.database)


@operation("POST", "/sync/peers", requires_root, status=201, errors=_REMOTE, weight=Weight.DEAR)
def add_peer(call: Call, body: NewPeer) -> PeerShown:
    """Lets this node pull from another one of its cluster; the other is asked who it is."""
    from svc_sync.entering import add

    return add(call, body)


@operation("DELETE", "/sync/peers/{node_id}", requires_root, errors=(Conflict, NotFound), weight=Weight.SMALL)
def remove_peer(call: Call, node_id: str) -> RemovedPeer:
    """Removes a node from the cluster: nobody waits for it, and to come back it has to join anew."""
    from svc_sync.exchange.membership import remove_member

    if not node_id.isdecimal() or len(node_id) > 19:
        raise InvalidInput("An id of a node is a number.", field="node_id")
    remove_member(call.database, int(node_id))
    return RemovedPeer(int(node_id))


@operation("POST", "/sync/trigger", requires_root, weight=Weight.DEAR, repeatable=True)
def trigger_sync(call: Call) -> Triggered:
    """Exchanges with all peers at once, both ways, and tells how it went with each."""
    from svc_sync.entering import trigger

    return trigger(call)


@operation("GET", "/sync/conflicts", requires_root, weight=Weight.DEAR)
def list_conflicts(call: Call, query: ConflictQuery = ConflictQuery()) -> ConflictList:
    """Lists what nodes wrote without knowing of each other, and nobody has resolved."""
    from svc_sync.exchange.resolving import list_conflicts as found_conflicts
    from svc_sync.showing import shown_conflict

    after = None if query.after is None else parse_path(query.after)
    found, last = found_conflicts(call.database, after, query.limit)
    return ConflictList(
        conflicts=[shown_conflict(one) for one in found],
        has_more=last is not None,
        next_cursor=None if last is None else format_path(last),
    )


@operation(
    "GET",
    "/files/.conflicts/{path:path}",
    requires_in_body(Operation.READ, Operation.LIST),
    older=("/engine/.conflicts/{path:path}",),
    errors=(NotFound, PreconditionFailed, RangeNotSatisfiable),
    weight=Weight.STREAMING,
    responder="svc_sync.responders:read_kept",
)
def read_kept(call: Call, path: Path, query: KeptQuery = KeptQuery()) -> bytes:
    """Reads what has lost at the path in front, or lists what has, for who may read that path.

    It is there until the conflict is resolved, and the same whichever version is asked for.
    """


@operation(
    "GET",
    "/sync/conflicts/{path:path}",
    requires_root,
    errors=(NotFound,),
    weight=Weight.STREAMING,
    responder="svc_sync.responders:read_loser",
)
def read_loser(call: Call, path: Path, query: VersionQuery = VersionQuery()) -> bytes:
    """Reads the content that has lost at a path; ``version`` says which, where there are several."""


@operation(
    "POST", "/sync/conflicts/{path:path}", requires_root, errors=(Conflict, NotFound), weight=Weight.DEAR
)
def resolve_conflict(call: Call, path: Path, body: ResolveBody = ResolveBody()) -> ResolvedConflict:
    """Chooses what stands at a path; all other versions are gone, on every node. No body picks the winner."""
    from svc_sync.exchange.resolving import resolve_conflict as resolved

    done = resolved(call.database, path, pick_loser=body.pick == "loser", name=body.version, actor=call.actor)
    content = getattr(done.value, "hash", None)
    return ResolvedConflict(
        path=format_path(path),
        picked=body.pick,
        hash=None if content is None else content.hex(),
        version=done.version.hex(),
    )
