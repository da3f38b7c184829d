"""What operations ask other nodes: to be taken in, who they are, and to pull."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from svc.errors import Conflict, SvcError
from svc.plugin import Confidential, run_blocking, without_turn
from svc_sync.api import TRANSPORTS
from svc_sync.configuration import SyncConfiguration
from svc_sync.exchange.commits import read_snapshot, stamp
from svc_sync.exchange.links import Link, connect
from svc_sync.exchange.marks import begun_return, has_mark
from svc_sync.exchange.membership import prepare_join, take_admission
from svc_sync.exchange.messages import PullAnswer, PullMessage
from svc_sync.exchange.peers import take_peer, wait_for_try, wake
from svc_sync.exchange.pulling import MeetingRefused, greet
from svc_sync.exchange.records import NodeRecord, ensure_node, now_ms, peers_of
from svc_sync.exchange.returning import rejoin as join_anew
from svc_sync.models import (
    Admission,
    EnterBody,
    Joined,
    JoinRequest,
    NewPeer,
    PeerShown,
    RejoinBody,
    Triggered,
    TriggerResult,
)
from svc_sync.rounds import Rounds
from svc_sync.scopes import check_globs
from svc_sync.showing import shown_peers

if TYPE_CHECKING:
    from svc.plugin import Call, Database

__all__ = [
    "add",
    "enter",
    "enter_by",
    "introduce",
    "is_copy_of_other",
    "rejoin",
    "return_by",
    "returns_by_itself",
    "trigger",
]

_TRIGGER_SECONDS = 25.0

_ROUNDS: WeakKeyDictionary[Database, Rounds[Triggered]] = WeakKeyDictionary()
"""Exchanges that somebody asked for, of each open database."""


def enter(call: Call, body: EnterBody) -> Joined:
    """Joins a cluster; see the operation."""
    settings: SyncConfiguration = call.configuration or SyncConfiguration()
    own = settings.cluster_address if body.own_address is None else body.own_address
    label = settings.cluster_label if body.label is None else body.label
    paths = settings.sync_paths if body.sync_paths is None else body.sync_paths
    return enter_by(
        call.database,
        call.extensions(TRANSPORTS),
        body.address,
        body.token,
        own_address=own or "",
        label=label,
        sync_paths=paths,
        brings=body.merge,
    )


def enter_by(
    database: Database,
    transports: Any,
    address: str,
    key: str | None,
    *,
    own_address: str,
    label: str,
    sync_paths: Sequence[str],
    brings: bool = False,
) -> Joined:
    """Joins the cluster of a member.

    Args:
        database: of this node.
        transports: those in use.
        address: of the member.
        key: root key of the member; None where its auth is disabled.
        own_address: where members reach this node; empty: they can't.
        label: of this node.
        sync_paths: globs of what it takes; none: everything.
        brings: whether it adds what it holds to what the cluster does.
    """
    if own_address:
        connect(own_address, transports).close()
    connection = connect(address, transports)
    try:
        request = prepare_join(database, own_address, label, sync_paths or None, brings=brings)
        admission = run_blocking(_ask_to_join, database, connection, key, request)
    finally:
        connection.close()
    joined = take_admission(database, request, admission, address, brings=brings)
    return Joined(joined.node_id, joined.cluster_id)


class _Token(Confidential, frozen=True):
    """What is taken of the answer to a key."""

    token: str


def _ask_to_join(database: Database, connection: Any, key: str | None, request: JoinRequest) -> Admission:
    token = None
    if key is not None:
        token = Link(database, connection, "").call("/auth/token", {"api_key": key}, _Token).token
    return Link(database, connection, token or "").call("/sync/join", request, Admission)


def rejoin(call: Call, body: RejoinBody) -> Joined:
    """Joins the cluster anew; see the operation."""
    database = call.database
    settings: SyncConfiguration = call.configuration or SyncConfiguration()
    peers = [peer.address for peer in peers_of(database.system())]
    addresses = peers if body.address is None else [body.address]
    failure: SvcError = Conflict("This node has no peer: name a member.")
    for address in addresses:
        try:
            connection = connect(address, call.extensions(TRANSPORTS))
            try:
                transports = call.extensions(TRANSPORTS)
                made = return_by(database, transports, Link(database, connection), address, settings)
            finally:
                connection.close()
        except SvcError as error:
            failure = error
            continue
        wake(database)
        return Joined(made.node_id, made.cluster_id)
    raise failure


def return_by(
    database: Database, transports: Any, link: Link, address: str, settings: SyncConfiguration
) -> NodeRecord:
    """Joins anew through a member, if that refuses this node as one that has to, or if it is a copy.

    Raises:
        Conflict: it need not, or the member can't let it in.
    """
    own, label = settings.cluster_address or "", settings.cluster_label
    is_trusted = False
    try:
        met = greet(database, link, times=1, address=own, label=label)
        is_copy = is_copy_of_other(database, transports, met.answer.your_address, own)
        if not is_copy:
            raise Conflict("This node is a member, and lacks nothing: it need not join anew.")
    except MeetingRefused as refused:
        if refused.stale is None:
            raise
        is_trusted = refused.was_removed and not refused.was_put_back
        is_copy = refused.is_copy or is_copy_of_other(database, transports, refused.your_address, own)
    began_distrusted = begun_return(database, read_snapshot(database).node.writer) is True
    return join_anew(
        database,
        link,
        address,
        distrusts_log=is_copy or not is_trusted or began_distrusted,
        is_copy=is_copy,
        own_address=own,
        label=label,
    )


def returns_by_itself(database: Database, refused: MeetingRefused) -> bool:
    """Whether a node that was refused joins anew although nobody has said so.

    A copy and an older copy do. One that was removed does only if the removal was a part of its own return,
    which was interrupted.
    """
    writer = read_snapshot(database).node.writer
    if refused.is_copy:
        return not has_mark(database, writer)
    if refused.stale == "removed":
        return begun_return(database, writer) is not None
    return refused.stale == "put_back"


def is_copy_of_other(database: Database, transports: Any, address: str, own: str) -> bool:
    """Whether this database is a copy of one that runs at the address where others reach this node.

    Args:
        database: of this node.
        transports: those in use.
        address: where others reach this node, as a member knows it.
        own: where this node says that it is reached.

    One that has lived beside its state directory is none.
    """
    writer = read_snapshot(database).node.writer
    if has_mark(database, writer) or not address or address == own.rstrip("/"):
        return False
    try:
        connection = connect(address, transports)
        try:
            greet(database, Link(database, connection), times=1)
        finally:
            connection.close()
    except MeetingRefused as refused:
        return refused.is_copy
    except SvcError:
        return False  # Nobody is there: this node has moved.
    return False


def add(call: Call, body: NewPeer) -> PeerShown:
    """Asks a node who it is, and takes note of it as a peer."""
    database = call.database
    settings: SyncConfiguration = call.configuration or SyncConfiguration()
    wanted = check_globs(body.sync_paths)
    node_id = introduce(database, call.extensions(TRANSPORTS), settings, body.address, body.label, wanted)
    wake(database)
    return next(one for one in shown_peers(database) if one.node_id == node_id)


def introduce(
    database: Database,
    transports: Any,
    settings: SyncConfiguration,
    address: str,
    label: str = "",
    sync_paths: tuple[str, ...] | None = None,
) -> int:
    """Asks the node at an address who it is, and takes note of it as a peer; returns its id. Blocks.

    Args:
        database: of this node.
        transports: those in use.
        settings: of this node.
        address: of the other.
        label: of the other.
        sync_paths: globs that it must take; None: whatever they are.

    Raises:
        Conflict: it takes others.
    """
    ensure_node(database)
    connection = connect(address, transports)
    try:
        link = Link(database, connection)
        met = greet(
            database, link, times=1, address=settings.cluster_address or "", label=settings.cluster_label
        )
    finally:
        connection.close()
    member = read_snapshot(database).state.cluster.members.get(met.answer.member.writer, met.answer.member)
    if sync_paths is not None and member.scope != sync_paths:
        taken = "everything" if member.scope is None else ", ".join(member.scope)
        raise Conflict(
            f"That member takes {taken}. What a node takes is said when it joins: to change it, remove the "
            "node, and let it join with an empty database."
        )
    node_id: int = member.node_id
    take_peer(database, node_id, address, label)
    return node_id


def trigger(call: Call) -> Triggered:
    """Lets the background process pull from all peers, and asks them to pull; waits for both.

    Many who ask at once make one such exchange, not as many.
    """
    rounds = _ROUNDS.get(call.database)
    if rounds is None:
        rounds = _ROUNDS[call.database] = Rounds()
    return rounds.share(lambda: _exchange(call))


def _exchange(call: Call) -> Triggered:
    database = call.database
    ensure_node(database)
    snapshot = stamp(database)
    peers = peers_of(database.system())
    began = now_ms()
    wake(database)
    message = PullMessage(
        cluster_id=snapshot.node.cluster_id, asker=snapshot.node.writer, wait_ms=int(_TRIGGER_SECONDS * 1_000)
    )
    deadline = time.monotonic() + _TRIGGER_SECONDS
    results = []
    for peer in peers:
        with without_turn():
            status = wait_for_try(database, peer.node_id, began, max(1.0, deadline - time.monotonic()))
        error, pulled, pushed = "Nobody has pulled in time.", 0, None
        if status is not None:
            error, pulled = status.last_error or "", status.pulled
        if not error:
            answer = _ask_to_pull(database, call.extensions(TRANSPORTS), peer.address, message)
            error, pushed = answer.error or "", answer.pulled
        results.append(
            TriggerResult(
                node_id=peer.node_id,
                address=peer.address,
                ok=not error,
                pulled=pulled,
                pushed=pushed,
                error=error or None,
            )
        )
    return Triggered(results)


def _ask_to_pull(database: Database, transports: Any, address: str, message: PullMessage) -> PullAnswer:
    try:
        connection = connect(address, transports)
        try:
            with without_turn():  # nor one for threads: the peer takes its time
                return run_blocking(Link(database, connection).pull, message)
        finally:
            connection.close()
    except SvcError as error:
        return PullAnswer(error=f"The peer does not pull: {error}")
