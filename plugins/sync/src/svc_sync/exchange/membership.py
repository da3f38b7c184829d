"""How nodes become members, and cease to be: what a member does that is asked, and what the joiner does."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from svc.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, SvcError
from svc.plugin import (
    EMPTY_ROOT,
    Database,
    Entry,
    EntryKind,
    Hash,
    Origin,
    Path,
    Transaction,
    Version,
    attempt,
    format_path,
    reference_path,
    same_content,
)
from svc_sync.checking import check_value
from svc_sync.clock import check_received
from svc_sync.cluster import Member
from svc_sync.exchange.commits import own_row, stamp
from svc_sync.exchange.contents import Fetcher
from svc_sync.exchange.copying_documents import copy_documents
from svc_sync.exchange.documents import begin_documents, take_copied
from svc_sync.exchange.links import Link
from svc_sync.exchange.marks import write_mark
from svc_sync.exchange.merging import put_value
from svc_sync.exchange.messages import (
    AdmittedState,
    ObjectsMessage,
    TreeMessage,
    check_cluster,
    decode_message,
    encode_message,
    read_path,
    read_register,
)
from svc_sync.exchange.parts import HIDDEN_ROOT, begin_part, follow_rest, taken_places
from svc_sync.exchange.peers import take_peer
from svc_sync.exchange.pulling import greet, pull
from svc_sync.exchange.records import (
    ACTOR,
    COPY,
    JOINING,
    NODE,
    PEERS,
    STAMPED,
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
from svc_sync.exchange.references import note_references, present_references, take_copied_references
from svc_sync.exchange.trees import PARTIAL
from svc_sync.joining import welcome
from svc_sync.models import Admission, JoinRequest
from svc_sync.registers import winner
from svc_sync.scopes import Scope, check_globs

__all__ = [
    "admit",
    "continue_copy",
    "is_alone",
    "note_peers",
    "prepare_join",
    "read_admission",
    "remove_member",
    "take_admission",
]

_OWN = (".svc-config", ".config")
"""What new databases hold by themselves, which is no data of anybody."""

logger = logging.getLogger("svc.sync")


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
    return node.copying is None and len(state.cluster.members) == 1 and not state.cluster.removed


def prepare_join(
    database: Database, own_address: str, label: str, sync_paths: Iterable[str] | None = None
) -> JoinRequest:
    """Returns what a node asks a member for that joins; its new life has a new writer.

    Args:
        database: of this node.
        own_address: where members reach it; empty: they can't.
        label: for people.
        sync_paths: globs of what it takes; None: everything.

    Raises:
        Conflict: this database holds files that the node would take, or belongs to a cluster already.
    """
    scope = check_globs(sync_paths)
    node = ensure_node(database)
    if not is_alone(database):
        raise Conflict("This node belongs to a cluster already.")
    _require_empty(database, Scope(scope))
    return JoinRequest(
        node_id=node.node_id, writer=new_identity(), address=own_address, label=label, sync_paths=scope
    )


def take_admission(
    database: Database, request: JoinRequest, admission: Admission, address: str
) -> NodeRecord:
    """Makes this node a member that has nothing yet; ``continue_copy`` then copies what the cluster holds.

    Args:
        database: of this node.
        request: what it asked for.
        admission: what the member has answered.
        address: of the member.

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
    copying = Copying(address=address.rstrip("/"), root=root)
    joined = NodeRecord(
        node_id=request.node_id, writer=writer, cluster_id=admission.cluster_id, copying=copying
    )

    def once() -> None:
        before = stamp(database)
        if before.node.node_id != request.node_id or before.node.cluster_id == admission.cluster_id:
            raise Conflict("This node belongs to a cluster already.")
        _require_empty(database, scope)
        vt = max(before.state.vt, said.vt)
        state = replace(before.state, vt=vt, known={**said.known, writer: vt}, cluster=said.cluster)
        entry = database.system().get(NODE)
        with database.transaction(actor=ACTOR, message="join a cluster") as changes:
            changes.put_system(NODE, msgspec.json.encode(joined), condition=same_content(entry))
            put_state(changes, state, before.entry)
            take_signing_keys(database, changes, admission.signing_keys)

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


def _require_empty(database: Database, scope: Scope) -> None:
    """Raises Conflict where there is something that the node takes, and that the cluster would replace."""
    version = database.at()
    if any(path[0] not in _OWN for path in taken_places(version, scope)):
        raise Conflict(
            "This database holds files: only an empty one can join a cluster."
            if scope.is_whole
            else "This database holds files at the paths that it would take: they must be free to join."
        )
    _require_directories(version, ((*root, "*") for root in scope.roots))


def continue_copy(
    database: Database,
    link: Link,
    *,
    address: str = "",
    label: str = "",
    is_stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Goes on with the first copy, from where it was left off; returns whether it is complete.

    Args:
        database: of this node.
        link: to the member that is copied.
        address: of this node.
        label: of this node.
        is_stopping: whether to leave off.

    Raises:
        Conflict: files were stored here meanwhile.
        NotFound: the member keeps the version no more: join again.
    """
    node = find_node(database.system())
    if node is None or node.copying is None:
        return True
    if not node.copying.has_tree:
        node = _copy_tree(database, link, node, is_stopping)
        if node is None:
            return False
        if _scope(database, node).is_whole:
            node = copy_documents(database, link, node)
        node = _take_head(database, node)
    copying = node.copying
    assert copying is not None
    met = greet(database, link, address=address, label=label)
    pull(database, link, met.answer.member, is_stopping=is_stopping, from_nothing=True)
    if is_stopping():
        return False
    entry = database.system().get(NODE)
    with database.transaction(actor=ACTOR, message="the first copy is complete") as changes:
        changes.put_system(
            NODE, msgspec.json.encode(replace(node, copying=None)), condition=same_content(entry)
        )
        changes.set_ref(COPY, None)
        for ref, _ in database.refs("sync"):
            if ref.startswith(PARTIAL):
                changes.set_ref(ref, None)
    return True


def _scope(database: Database, node: NodeRecord) -> Scope:
    state, _ = read_state(database.system())
    return state.cluster.scope_of(node.writer)


def _copy_tree(
    database: Database, link: Link, node: NodeRecord, is_stopping: Callable[[], bool]
) -> NodeRecord | None:
    """Copies the leaves of the kept version in order of their paths, a page a transaction."""
    copying = node.copying
    assert copying is not None
    scope = _scope(database, node)
    if copying.after is None and (not scope.is_whole or database.system().get(reference_path(COPY)) is None):
        copying = replace(copying, own=EMPTY_ROOT if scope.is_whole else database.head().root)
        assert copying.own is not None
        begin_part(database, COPY, scope, copying.own)
    else:
        node = _follow_own(database, node, scope)
        copying = node.copying
        assert copying is not None
    while not is_stopping():
        asked = TreeMessage(
            cluster_id=node.cluster_id, asker=node.writer, root=copying.root, after=copying.after
        )
        answer = link.tree(asked)
        message = ObjectsMessage(cluster_id=node.cluster_id, asker=node.writer, root=copying.root)
        fetch = Fetcher(database, link.objects, message, answer.contents)
        now = now_ms()
        leaves = [
            (read_path(text), winner(read_register(leaf, now))[1].value) for text, leaf in answer.leaves
        ]
        leaves = [row for row in leaves if scope.takes(row[0])]
        system = database.system()
        entry, copied = system.get(NODE), system.get(reference_path(COPY))
        assert copied is not None
        present = database.version_of(copied.hash)
        _require_directories(present, (path for path, _ in leaves))
        after = copying.after if answer.after is None else answer.after
        copying = replace(copying, after=after)
        node = replace(node, copying=copying)
        transaction = database.transaction(actor=ACTOR, message="first copy", ref=COPY, checks_contents=False)
        with transaction as changes:
            for path, value in leaves:
                # The last part comes again if what follows it has failed.
                _put_leaf(changes, path, value, fetch, present.get(path))
            changes.put_system(NODE, msgspec.json.encode(node), condition=same_content(entry))
        if answer.after is None:
            return node
    return None


def _follow_own(database: Database, node: NodeRecord, scope: Scope) -> NodeRecord:
    """Brings to a copy that goes on what was changed here outside of a scope since it was left off."""
    copying = node.copying
    assert copying is not None
    head = database.head().root
    if scope.is_whole or copying.own is None or copying.own == head:
        return node
    follow_rest(database, COPY, scope, copying.own, head)
    after = replace(node, copying=replace(copying, own=head))
    entry = database.system().get(NODE)
    with database.transaction(actor=ACTOR, message="follow the rest") as changes:
        changes.put_system(NODE, msgspec.json.encode(after), condition=same_content(entry))
    return after


def _require_directories(present: Version, paths: Iterable[Path]) -> None:
    """Raises Conflict where this node has a file or link of its own above a path that it takes."""
    for parent in sorted({path[:depth] for path in paths for depth in range(1, len(path))}):
        entry = present.get(parent)
        if entry is not None and entry.kind is not EntryKind.DIRECTORY:
            raise Conflict(
                f"This node has a file or link of its own at {format_path(parent)}, and takes what the "
                "cluster has below that path: move or remove it.",
                path=format_path(parent),
            )


def _put_leaf(changes: Any, path: Path, value: Any, fetch: Fetcher, before: Entry | None) -> None:
    def content_of(at: Path, file: Any) -> Any:
        is_here = file.target is not None or file.size == 0
        return file if is_here else fetch(at, file)

    if value is None:
        raise InvalidInput("The other node has sent a leaf that is none.")
    check_value(value)
    try:
        put_value(changes, path, value, content_of, before)
    except SvcError as error:
        raise InvalidInput(f"The other node has sent a leaf that can't be: {error}") from error


def _take_head(database: Database, node: NodeRecord) -> NodeRecord:
    """HEAD becomes what was copied, in one transaction with the node's state."""
    copying = node.copying
    assert copying is not None
    copied = database.system().get(reference_path(COPY))
    assert copied is not None
    scope = _scope(database, node)
    if scope.is_whole and copied.hash != copying.root:
        logger.warning("the first copy has another root than the version of the member")
    after = replace(node, copying=replace(copying, has_tree=True, after=None, own=None))
    followed = copying.own
    members = (peer for peer in peers_of(database.system()) if peer.address == copying.address.rstrip("/"))
    origin = next((Origin(member.node_id) for member in members), None)

    def once() -> None:
        nonlocal followed
        snapshot = stamp(database)
        _require_empty(database, scope)
        head = database.head()
        if not scope.is_whole and followed is not None:
            follow_rest(database, COPY, scope, followed, head.root)
            followed, head = head.root, database.head()
        entry = database.system().get(reference_path(COPY))
        assert entry is not None
        copied = entry.hash
        state = replace(
            snapshot.state,
            sequence=head.sequence,
            root=copied,
            is_level=False,
            partial=None,
            partial_vt=0,
            has_documents=True,
        )
        entry = database.system().get(NODE)
        with database.transaction(actor=ACTOR, message="take the first copy") as changes:
            if scope.is_whole:
                system = database.version_of(head.system_root)
                take_copied(changes, system)
                take_copied_references(changes, system)
            with changes.merging(origin):
                changes.set_ref("HEAD", copied, expected=head.root)
            changes.set_ref(STAMPED, copied)
            changes.put_system(NODE, msgspec.json.encode(after), condition=same_content(entry))
            put_state(changes, state, snapshot.entry)

    attempt(once, "HEAD")
    return after
