"""What a node keeps of itself in the system tree: who it is, and how far it is."""

from __future__ import annotations

import secrets

import msgspec
from msgspec import Struct

from svc.errors import Conflict, PreconditionFailed
from svc.plugin import (
    Confidential,
    Database,
    Entry,
    Hash,
    Path,
    Version,
    read_record,
    same_content,
)
from svc_sync.clock import next_vt
from svc_sync.cluster import Cluster, Member
from svc_sync.exchange.marks import write_mark
from svc_sync.models import PeerRecord

__all__ = [
    "ACTOR",
    "COPY",
    "JOINING",
    "NODE",
    "PEERS",
    "STAMPED",
    "STATE",
    "Copying",
    "NodeRecord",
    "State",
    "ensure_node",
    "find_node",
    "new_identity",
    "node_id_of",
    "now_ms",
    "peers_of",
    "put_state",
    "read_state",
]

NODE: Path = ("sync", "node")
STATE: Path = ("sync", "state")
PEERS: Path = ("sync", "peers")
STAMPED = "sync/stamped"
"""The ref of the version up to which all is stamped: no collection takes it."""
COPY = "sync/copy"
"""The ref that holds what is copied until it becomes HEAD."""
JOINING = "sync/joining-"
"""Begins the names of refs that keep what joiners copy."""
ACTOR = "sync"


class Copying(Struct, frozen=True, kw_only=True):
    """A first copy that is not complete yet.

    Attributes:
        address: of the member that is copied.
        root: the version that is copied.
        after: behind what the copy goes on: the last path that is here, or what the member has said.
        has_tree: whether the tree is here, so that only registers are missing.
        documents_after: the last document of the system tree that is here, as the text of a register's path.
        own: its tree when the copy began, of a node that takes a part only: the rest of it stays; else empty.
        brings: whether the node adds what it holds to what the cluster does.
    """

    address: str
    root: Hash
    after: str | None = None
    has_tree: bool = False
    documents_after: str | None = None
    own: Hash | None = None
    brings: bool = False


class NodeRecord(Confidential, frozen=True, kw_only=True, omit_defaults=True):
    """Who the node is.

    Attributes:
        node_id: what people see.
        writer: names this life of its data.
        cluster_id: of its cluster.
        copying: what it still has to copy before it takes part; None: nothing.
    """

    node_id: int
    writer: int
    cluster_id: str
    copying: Copying | None = None


class State(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far the node is.

    Attributes:
        sequence: commits up to this one are stamped.
        root: HEAD's version after it.
        vt: the greatest virtual time given or received.
        known: the node's own row.
        cluster: what it knows of the members.
        is_level: whether ``root`` shows all that is merged: nothing was merged since.
        partial_vt: the virtual time of the commit behind ``sequence`` while that is stamped in part.
        partial: the last of its paths that is stamped.
        pruned: what all members knew when registers were forgotten last.
        pruned_scoped: the same with each of those that take a part only.
        has_documents: whether ``sync/stamped`` holds what was stamped of the system tree's documents.
    """

    sequence: int
    root: Hash
    vt: int
    known: dict[int, int]
    cluster: Cluster
    is_level: bool = True
    partial_vt: int = 0
    partial: str | None = None
    pruned: dict[int, int] = {}
    pruned_scoped: dict[int, dict[int, int]] = {}
    has_documents: bool = False


def new_identity() -> int:
    """Returns 63 random bits that are not 0."""
    return secrets.randbits(62) + 1


def now_ms() -> int:
    """Returns the wall clock, Unix milliseconds."""
    import time

    return time.time_ns() // 1_000_000


def find_node(system: Version) -> NodeRecord | None:
    """Returns who the node is; None where nobody has asked yet."""
    return read_record(system, system.get(NODE), NodeRecord)


def node_id_of(database: Database) -> int:
    """Returns the id of the node that a database is; 0: none."""
    node = find_node(database.system())
    return 0 if node is None else node.node_id


def read_state(system: Version) -> tuple[State, Entry]:
    """Returns how far the node is, and the entry for conditions.

    Raises:
        Conflict: nothing is there.
    """
    entry = system.get(STATE)
    state = read_record(system, entry, State, keep=False)
    if state is None or entry is None:
        raise Conflict("This database takes part in no cluster.")
    return state, entry


def ensure_node(database: Database) -> NodeRecord:
    """Returns who the node is; makes it the only member of a new cluster where it is nobody yet."""
    while True:
        found = find_node(database.system())
        if found is not None:
            return found
        head = database.head()
        node = NodeRecord(node_id=new_identity(), writer=new_identity(), cluster_id=secrets.token_hex(16))
        vt = next_vt(head.time_ms, 0)
        known = {node.writer: vt}
        cluster = Cluster().with_member(Member(node.writer, node.node_id), known)
        state = State(sequence=head.sequence, root=head.root, vt=vt, known=known, cluster=cluster)
        try:
            with database.transaction(actor=ACTOR, message="found a cluster") as changes:
                changes.put_system(NODE, msgspec.json.encode(node), condition=same_content(None))
                changes.put_system(STATE, msgspec.json.encode(state), condition=same_content(None))
        except PreconditionFailed:
            continue
        write_mark(database, node.writer)


def put_state(changes: object, state: State, entry: Entry | None) -> None:
    """Replaces the state, on condition that it is what was read."""
    from svc.plugin import Transaction

    assert isinstance(changes, Transaction)
    changes.put_system(STATE, msgspec.json.encode(state), condition=same_content(entry))


def peers_of(system: Version) -> list[PeerRecord]:
    """Returns the nodes that this one pulls from, by id."""
    if system.get(PEERS) is None:
        return []
    found = (read_record(system, entry, PeerRecord) for _, entry in system.entries(PEERS))
    return [peer for peer in found if peer is not None]
