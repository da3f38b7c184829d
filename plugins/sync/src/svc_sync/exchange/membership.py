"""How nodes become members, and cease to be: what a member does that is asked, and what the joiner does."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from svc.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from svc.plugin import (
    EMPTY_ROOT,
    Database,
    EntryKind,
    Hash,
    Path,
    Transaction,
    Version,
    attempt,
    format_path,
    reference_path,
    same_content,
)
from svc_sync.clock import check_received
from svc_sync.cluster import Member
from svc_sync.exchange.commits import own_row, stamp
from svc_sync.exchange.documents import begin_documents
from svc_sync.exchange.marks import write_mark
from svc_sync.exchange.messages import (
    AdmittedState,
    check_cluster,
    decode_message,
    encode_message,
)
from svc_sync.exchange.parts import HIDDEN_ROOT, taken_places
from svc_sync.exchange.peers import take_peer
from svc_sync.exchange.records import (
    ACTOR,
    COPY,
    JOINING,
    NODE,
    PEERS,
    Copying,
    NodeRecord,
    State,
    ensure_node,
    find_node,
    new_identity,
    now_ms,
    peers_of,
    put_state,
    read_state,
)
from svc_sync.exchange.references import note_references, present_references
from svc_sync.joining import welcome
from svc_sync.models import Admission, JoinRequest
from svc_sync.scopes import Scope, check_globs

__all__ = [
    "admit",
    "is_alone",
    "note_peers",
    "prepare_join",
    "read_admission",
    "remove_member",
    "require_directories",
    "require_room",
    "take_admission",
]

_OWN = (".svc-config", ".config")
"""What new databases hold by themselves, which is no data of anybody."""


def admit(database: Database, request: JoinRequest) -> Admission:
    """Takes a node in: notes it as a member BEFORE it gets anything, and keeps a version for it to copy.

    Raises:
        Conflict: this node waits for its own first copy, or takes a part of the paths only.
    """
    from svc_auth_self.api import signing_keys

    if not 0 < request.node_id < 1 << 63 or (request.writer is not None and not 0 < request.writer < 1 << 63):
        raise InvalidInput("An id of a node has at most 63 bits, and is not 0.", field="node_id")
    if any(not 0 < writer < 1 << 63 for writer in request.former):
        raise InvalidInput("A writer has at most 63 bits, and is not 0.", field="former")
    scope = check_globs(request.sync_paths)
    member = Member(request.writer or new_identity(), request.node_id, scope, request.former)

    def once() -> tuple[NodeRecord, State, Hash]:
        snapshot = stamp(database, level=True)
        state, root = snapshot.state, snapshot.tree.version.root
        if snapshot.node.copying is not None:
            raise Conflict("This node has not got its first copy yet.")
        if not snapshot.scope.is_whole:
            raise Conflict("This node takes a part of the paths only: join through a member that takes all.")
        if snapshot.node.node_id == member.node_id:
            raise Conflict("The node that joins has the id of this one: it is a copy of its database.")
        if not state.is_level or state.root != root:
            raise PreconditionFailed("Something was merged meanwhile.")
        former = [one.writer for one in state.cluster.members.values() if one.node_id == member.node_id]
        cluster = welcome(state.cluster.without(former), state.known, member)
        after = own_row(database, snapshot.node, replace(state, cluster=cluster))
        with database.transaction(actor=ACTOR, message="take in a node") as changes:
            changes.set_ref(f"{JOINING}{member.node_id}", root)
            if not after.has_documents:
                after = replace(after, has_documents=True)
                _begin_system(database, changes)
            put_state(changes, after, snapshot.entry)
        return snapshot.node, after, root

    ensure_node(database)
    # Who takes a part only gets what nodes need to talk, and not what signs the tokens of users.
    keys = signing_keys(database, with_active=scope is None)
    node, state, root = attempt(once, "The state of the cluster")
    others = [peer for peer in peers_of(database.system()) if peer.node_id != member.node_id]
    if request.address:
        take_peer(database, member.node_id, request.address, request.label)
    said = AdmittedState(member=member, known=dict(state.known), cluster=state.cluster, vt=state.vt)
    return Admission(
        cluster_id=node.cluster_id,
        signing_keys=keys,
        peers=others,
        node_id=node.node_id,
        root=(root if scope is None else HIDDEN_ROOT).hex(),
        state=base64.b64encode(encode_message(said)).decode(),
    )


def _begin_system(database: Database, changes: Transaction) -> None:
    """From now on what changes in the system tree is stamped."""
    system = database.system()
    begin_documents(changes, system)
    note_references(changes, present_references(database, system), system)


def remove_member(database: Database, node_id: int) -> None:
    """Removes a node: nobody waits for it any more, and it can't come back without joining anew.

    Raises:
        NotFound: there is no peer and no member of this id.
        Conflict: it is this node.
    """
    ensure_node(database)

    def once() -> None:
        snapshot = stamp(database)
        if snapshot.node.node_id == node_id:
            raise Conflict("A node can't remove itself: ask another one.")
        if not snapshot.scope.is_whole:
            raise Conflict("This node takes a part of the paths only: ask a member that takes all.")
        cluster = snapshot.state.cluster
        writers = [one.writer for one in cluster.members.values() if one.node_id == node_id]
        place = (*PEERS, f"{node_id:016x}")
        is_peer = database.system().get(place) is not None
        if not writers and not is_peer:
            raise NotFound("There is no such peer.", node_id=node_id)
        state = replace(snapshot.state, cluster=cluster.without(writers))
        with database.transaction(actor=ACTOR, message="remove a node") as changes:
            if is_peer:
                changes.delete_system(place)
            if database.system().get(reference_path(f"{JOINING}{node_id}")) is not None:
                changes.set_ref(f"{JOINING}{node_id}", None)
            put_state(changes, own_row(database, snapshot.node, state), snapshot.entry)

    attempt(once, "The state of the cluster")


def is_alone(database: Database) -> bool:
    """Whether this node has never been in a cluster with others."""
    node = find_node(database.system())
    if node is None:
        return True
    state, _ = read_state(database.system())
    return node.copying is None and _is_lone(state)


def _is_lone(state: State) -> bool:
    return len(state.cluster.members) == 1 and not state.cluster.removed


def prepare_join(
    database: Database,
    own_address: str,
    label: str,
    sync_paths: Iterable[str] | None = None,
    *,
    brings: bool = False,
) -> JoinRequest:
    """Returns what a node asks a member for that joins; its new life has a new writer.

    Args:
        database: of this node.
        own_address: where members reach it; empty: they can't.
        label: for people.
        sync_paths: globs of what it takes; None: everything.
        brings: whether it adds what it holds to what the cluster does.

    Raises:
        Conflict: this database holds files that the node would take, or belongs to a cluster already. One
            whose first copy is not complete may begin anew, also with another member.
    """
    scope = check_globs(sync_paths)
    node = ensure_node(database)
    if node.copying is None and not is_alone(database):
        raise Conflict("This node belongs to a cluster already.")
    require_room(database, Scope(scope), brings=brings)
    return JoinRequest(
        node_id=node.node_id, writer=new_identity(), address=own_address, label=label, sync_paths=scope
    )


def take_admission(
    database: Database, request: JoinRequest, admission: Admission, address: str, *, brings: bool = False
) -> NodeRecord:
    """Makes this node a member that has nothing yet; ``continue_copy`` then copies what the cluster holds.

    Args:
        database: of this node.
        request: what it asked for.
        admission: what the member has answered.
        address: of the member.
        brings: whether the node adds what it holds, by ``bring_own``.

    Raises:
        InvalidInput: the answer is not one to the request.
        Conflict: files were stored here meanwhile.
    """
    from svc_auth_self.api import take_signing_keys

    assert request.writer is not None
    writer = request.writer
    said, root = read_admission(admission, writer)
    if said.cluster.members[writer].scope != request.sync_paths:
        raise InvalidInput("The member has taken this node in with other paths than it has asked for.")
    scope = Scope(request.sync_paths)
    copying = Copying(address=address.rstrip("/"), root=root, brings=brings)
    joined = NodeRecord(
        node_id=request.node_id, writer=writer, cluster_id=admission.cluster_id, copying=copying
    )

    def once() -> None:
        before = stamp(database)
        # Others may have joined this one since it asked.
        is_in = before.node.copying is None and not _is_lone(before.state)
        if before.node.node_id != request.node_id or is_in:
            raise Conflict("This node belongs to a cluster already.")
        require_room(database, scope, brings=brings)
        vt = max(before.state.vt, said.vt)
        cluster = said.cluster
        if before.node.copying is not None:
            # Another member may have taken in the life that ends here: nobody is to wait for it.
            cluster = cluster.without({before.node.writer, *before.state.cluster.removed})
        state = replace(before.state, vt=vt, known={**said.known, writer: vt}, cluster=cluster)
        entry = database.system().get(NODE)
        with database.transaction(actor=ACTOR, message="join a cluster") as changes:
            changes.put_system(NODE, msgspec.json.encode(joined), condition=same_content(entry))
            put_state(changes, state, before.entry)
            take_signing_keys(database, changes, admission.signing_keys)
            if database.system().get(reference_path(COPY)) is not None:
                changes.set_ref(COPY, None)  # of a copy that was not completed

    attempt(once, "The state of the cluster")
    write_mark(database, writer)
    note_peers(database, admission, address, request.node_id)
    return joined


def note_peers(database: Database, admission: Admission, address: str, node_id: int) -> None:
    """Takes note of the nodes that a member has named, and of the member; not of this one."""
    take_peer(database, admission.node_id, address)
    for peer in admission.peers:
        if peer.node_id != node_id:
            take_peer(database, peer.node_id, peer.address, peer.label)


def read_admission(admission: Admission, writer: int) -> tuple[AdmittedState, Hash]:
    """Returns what a member has said to a node that it lets in under a writer, and the version to copy.

    Raises:
        InvalidInput: it is no answer to that.
    """
    try:
        root = bytes.fromhex(admission.root)
        said = decode_message(base64.b64decode(admission.state), AdmittedState)
    except ValueError as error:
        raise InvalidInput("The member has answered something else.") from error
    check_cluster(said.member, said.known, said.cluster, now_ms())
    check_received(said.vt, now_ms())
    if said.member.writer != writer or writer not in said.cluster.members or len(root) != len(EMPTY_ROOT):
        raise InvalidInput("The member has taken in another node.")
    return said, root


def require_room(database: Database, scope: Scope, *, brings: bool) -> None:
    """Raises Conflict where there is something that the node takes, and that the cluster would replace."""
    version = database.at()
    if not brings and any(path[0] not in _OWN for path in taken_places(version, scope)):
        where = "" if scope.is_whole else " at the paths that it would take"
        raise Conflict(f"This database holds files{where}: join with --merge to add them to the cluster's.")
    require_directories(version, ((*root, "*") for root in scope.roots))


def require_directories(present: Version, paths: Iterable[Path]) -> None:
    """Raises Conflict where this node has a file or link of its own above a path that it takes."""
    for parent in sorted({path[:depth] for path in paths for depth in range(1, len(path))}):
        entry = present.get(parent)
        if entry is not None and entry.kind is not EntryKind.DIRECTORY:
            raise Conflict(
                f"This node has a file or link of its own at {format_path(parent)}, and takes what the "
                "cluster has below that path: move or remove it.",
                path=format_path(parent),
            )
