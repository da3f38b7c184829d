"""What the operations take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from svc.plugin import Confidential, Page

__all__ = [
    "Admission",
    "ConflictList",
    "ConflictQuery",
    "EnterBody",
    "JoinRequest",
    "Joined",
    "KeptQuery",
    "NewPeer",
    "PeerRecord",
    "PeerShown",
    "RejoinBody",
    "RemovedPeer",
    "ResolveBody",
    "ResolvedConflict",
    "ShownConflict",
    "SyncStatus",
    "TriggerResult",
    "Triggered",
    "VersionQuery",
    "VersionShown",
]

Address = Annotated[str, Meta(max_length=1_000)]
Label = Annotated[str, Meta(max_length=200)]
Globs = Annotated[list[Annotated[str, Meta(max_length=1_000)]], Meta(min_length=1, max_length=100)]


class PeerRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that this one pulls from.

    Attributes:
        node_id: its id.
        address: URL of its server.
        label: for people.
    """

    node_id: int
    address: str
    label: str = ""


class JoinRequest(Struct, frozen=True, kw_only=True):
    """Body of ``POST /sync/join``.

    Attributes:
        node_id: of the node that joins.
        writer: names its new life; one is made where it is None.
        address: URL that members pull from; empty: it has none.
        label: for people.
        former: writers of its former lives, all of whose writes it has; a node that joins anew has some.
        sync_paths: globs of the paths that it takes; null: everything.
    """

    node_id: int
    writer: int | None = None
    former: tuple[int, ...] = ()
    address: str = ""
    label: str = ""
    sync_paths: tuple[str, ...] | None = None


class Admission(Confidential, frozen=True, kw_only=True):
    """What a joiner gets. Its representation does not show the signing keys.

    Attributes:
        cluster_id: of the cluster.
        signing_keys: the key that signs what nodes send each other, and the one that signs tokens of users.
        peers: the nodes that can be pulled from.
        node_id: of the member that was asked.
        root: version to copy, in hex.
        state: what the member knows, in CBOR and base64.
    """

    shown = ("cluster_id", "node_id", "root")

    cluster_id: str
    signing_keys: list[dict[str, Any]]
    peers: list[PeerRecord]
    node_id: int
    root: str
    state: str


class PeerShown(Struct, frozen=True, kw_only=True):
    """A node that this one pulls from.

    Attributes:
        node_id: its id.
        address: URL of its server.
        label: for people.
        state: ``Disconnected``, ``Honeymoon`` (the clocks are compared, nothing is exchanged) or ``Active``.
        sync_paths: globs of the paths that it takes; null: everything, or it is no member.
        last_sync_at: when a pull was completed last, Unix milliseconds.
        last_error: why the last try failed.
        clock_offset_ms: how far its clock is ahead.
        lag: age in milliseconds of the oldest write that it had at the last meeting and this node had not.
        sent_bytes: of all questions that this node has asked it.
        received_bytes: of its answers.
    """

    node_id: int
    address: str
    label: str
    state: str
    sync_paths: list[str] | None = None
    last_sync_at: int | None = None
    last_error: str | None = None
    clock_offset_ms: float | None = None
    lag: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class SyncStatus(Struct, frozen=True, kw_only=True):
    """This node's view of the cluster.

    Attributes:
        node_id: of this node.
        cluster_id: of its cluster.
        head: its version, in hex.
        clock_offset_ms: the median of how far the peers' clocks are ahead; null while none is known.
        peer_count: how many peers there are.
        members: ids of the nodes of the cluster, this one among them.
        sync_paths: globs of the paths that this node takes; null: everything.
        is_copying: whether its first copy is not complete yet.
        stale: why it has to join anew: ``removed`` (somebody has removed it), ``put_back`` (its file is an
            older copy), ``copy`` (another database has its identity); null: it need not.
        peers: as ``GET /sync/peers`` lists them.
        registers: of how many paths some member may not know yet.
        absent: ids of members that are silent for days and keep registers from being forgotten.
        chosen_node: the node that does what one node shall do, as this one sees it; null: none that it knows.
    """

    node_id: int
    cluster_id: str
    head: str
    clock_offset_ms: float | None
    peer_count: int
    members: list[int]
    sync_paths: list[str] | None = None
    is_copying: bool
    peers: list[PeerShown]
    stale: str | None = None
    registers: int = 0
    absent: list[int] = []
    chosen_node: int | None = None


class NewPeer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node of the cluster to pull from.

    Attributes:
        address: URL of its server.
        label: for people.
        sync_paths: globs of the paths that it takes, as it has joined with; null: whatever they are.
    """

    address: Address
    label: Label = ""
    sync_paths: Globs | None = None


class RemovedPeer(Struct, frozen=True):
    """A node that is no member any more."""

    node_id: int
    deleted: bool = True


class TriggerResult(Struct, frozen=True, kw_only=True):
    """How it went with one peer.

    Attributes:
        node_id: its id.
        ok: whether this node has pulled from it, and it from this node.
        pulled: how many paths have changed here.
        pushed: how many paths have changed there; null where it is not known.
        error: what failed.
    """

    node_id: int
    address: str
    ok: bool
    pulled: int = 0
    pushed: int | None = None
    error: str | None = None


class Triggered(Struct, frozen=True):
    """How it went with all peers."""

    results: list[TriggerResult]


class EnterBody(Confidential, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster to join.

    Attributes:
        address: URL of a member.
        token: root key of that member; null where its auth is disabled.
        own_address: URL at which members reach this node; null: as the setting ``cluster_address`` says.
        label: of this node; null: as the setting says.
        sync_paths: globs of the paths that this node takes; null: as the setting says.
        merge: whether what this node holds is added to what the cluster does; else it must be empty.
    """

    shown = ("address", "own_address", "label", "sync_paths", "merge")

    address: Address
    token: Annotated[str, Meta(max_length=1_000)] | None = None
    own_address: Address | None = None
    label: Label | None = None
    sync_paths: Globs | None = None
    merge: bool = False


class RejoinBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The member through which a node joins anew; null: the first peer that answers."""

    address: Address | None = None


class Joined(Struct, frozen=True):
    """The node is a member. A first copy goes on in the background."""

    node_id: int
    cluster_id: str


class VersionShown(Struct, frozen=True, kw_only=True):
    """One side of a conflict.

    Attributes:
        version: names it in URLs.
        hash: of its content, in hex; null for a deletion or a directory.
        size: of its content.
        updated_at: of its content; of a deletion or a directory, when it was made. Unix milliseconds.
        node_id: who wrote it; null where that node is no member any more.
        kind: ``file``, ``link``, ``directory`` or ``deleted``.
    """

    version: str
    hash: str | None
    size: int | None
    updated_at: int
    node_id: int | None
    kind: str


class ShownConflict(Struct, frozen=True, kw_only=True):
    """Two writes of a path that did not know of each other.

    Attributes:
        path: where.
        kind: what met.
        winner: what stands there.
        loser: what does not.
        detected_at: the time of the later of the two.
    """

    path: str
    kind: str
    winner: VersionShown
    loser: VersionShown
    detected_at: int


class ConflictList(Page[ShownConflict], frozen=True, kw_only=True):
    """Conflicts in the order of paths."""

    conflicts: list[ShownConflict]


class ConflictQuery(Struct, frozen=True, kw_only=True):
    """Which conflicts: behind a cursor, and of how many paths at most."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    after: Annotated[str, Meta(max_length=6_000)] | None = None


class KeptQuery(Struct, frozen=True, kw_only=True):
    """How a path of ``/.conflicts`` is read, as paths of files are; versions mean nothing to it."""

    nofollow: bool = False
    depth: Annotated[int, Meta(ge=-1, le=4_096)] = 0
    glob: str | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    offset: Annotated[int, Meta(ge=0)] = 0
    after: str | None = None
    snapshot: str | None = None
    version: str | None = None
    fork: str | None = None
    at: str | None = None


class VersionQuery(Struct, frozen=True, kw_only=True):
    """Which loser of a path; the latest where it is left out."""

    version: Annotated[str, Meta(max_length=40)] | None = None


class ResolveBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is chosen: what stands there, or what has lost; ``version`` says which loser."""

    pick: Literal["winner", "loser"] = "winner"
    version: Annotated[str, Meta(max_length=40)] | None = None


class ResolvedConflict(Struct, frozen=True, kw_only=True):
    """What stands at the path now, and HEAD's version."""

    path: str
    picked: str
    hash: str | None
    version: str
