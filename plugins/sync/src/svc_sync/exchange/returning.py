"""How a node joins anew that was removed, or whose file is an older copy: with all that it has.

It takes a new writer, copies what a member holds beside its own, decides for each of its registers what
becomes of it (``svc_sync.joining.carry_over``), and takes over the outcome in one transaction. Until then it
is what it was; if it is interrupted, it begins anew, and what is here does not travel again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from svc.errors import Conflict, NotFound, SvcError
from svc.plugin import Database, Entry, Hash, Path, StoredContent, Transaction, attempt, same_content
from svc_sync.cluster import Horizons, Member
from svc_sync.exchange.commits import Snapshot, own_row, stamp
from svc_sync.exchange.documents import replace_document, rule_of
from svc_sync.exchange.links import Link
from svc_sync.exchange.losers import LOSERS, holding_losers, keep_losers, losers_of
from svc_sync.exchange.marks import note_return, only_return, write_mark
from svc_sync.exchange.membership import note_peers, read_admission
from svc_sync.exchange.reading import VersionTree, leaf_of
from svc_sync.exchange.records import ACTOR, NODE, STAMPED, NodeRecord, State, new_identity, put_state
from svc_sync.exchange.references import plan_all_references, put_references
from svc_sync.exchange.seen_cluster import Contents, SeenCluster, pages_of, see_cluster, value_at
from svc_sync.exchange.store import (
    MADE,
    OWN,
    SEEN,
    RegisterStore,
    copy_registers,
    forget_returning,
    put_registers,
)
from svc_sync.exchange.trees import TreeCopier
from svc_sync.joining import carry_over, may_return_through, row_of_returned
from svc_sync.models import Admission, JoinRequest
from svc_sync.registers import Dot, Register
from svc_sync.scopes import REFERENCES, SYSTEM, is_of_user
from svc_sync.tree import Application, apply, value_of
from svc_sync.values import Document, Value

__all__ = ["rejoin", "take_over"]

_TRIES = 3
_NOTHING = Application([], [], {})


class _Outcome(Struct):
    """What the node is to be; the registers are aside, at ``MADE``.

    Attributes:
        root: the tree.
        vt: the latest of the virtual times of its new life.
    """

    root: Hash
    vt: int = 0


def rejoin(
    database: Database,
    link: Link,
    address: str,
    *,
    distrusts_log: bool,
    is_copy: bool = False,
    own_address: str = "",
    label: str = "",
) -> NodeRecord:
    """Makes this node a member with a new writer, that brings all that the cluster lacks. Blocks; commits.

    Args:
        database: of this node.
        link: to the member that lets it in.
        address: of that member.
        distrusts_log: whether the log is an older copy: others may know other writes of its times.
        is_copy: whether another database has this node's identity: then it gets an id of its own.
        own_address: where members reach this node; empty: they can't.
        label: of this node.

    Raises:
        Conflict: the member lacks something that this node has forgotten, or belongs to another cluster.
        ServiceUnavailable: this node is returning already, by another thread or process.
    """
    for number in range(_TRIES):
        try:
            with only_return(database):
                return _rejoin(database, link, address, distrusts_log, is_copy, own_address, label)
        except NotFound:
            # A content or version was gone at the member before it travelled.
            if number == _TRIES - 1:
                raise
    raise AssertionError


def _rejoin(
    database: Database,
    link: Link,
    address: str,
    distrusts_log: bool,
    is_copy: bool,
    own_address: str,
    label: str,
) -> NodeRecord:
    before = stamp(database, level=True)
    old = before.node
    if len(before.state.cluster.members) == 1:
        # What was written while nobody else was there has no registers: nobody could say what became of it.
        raise Conflict(
            "This node knows of no other member: it can't bring what it has. Join with an empty one."
        )
    member = before.state.cluster.members.get(old.writer)
    former = () if distrusts_log else (*(member.former if member is not None else ()), old.writer)
    request = JoinRequest(
        node_id=new_identity() if is_copy else old.node_id,
        writer=new_identity(),
        address=own_address,
        label=label,
        former=former,
        sync_paths=before.scope.globs,
    )
    assert request.writer is not None
    note_return(database, old.writer, distrusts_log=distrusts_log)
    admission = link.call("/sync/join", request, Admission)
    said, root = read_admission(admission, request.writer)
    if admission.cluster_id != old.cluster_id:
        raise Conflict("The member belongs to another cluster.")
    if not may_return_through(before.state.cluster, said.known):
        raise Conflict("The member lacks what this node has forgotten: join anew through another one.")
    seen, trees = see_cluster(
        database,
        link,
        before.tree,
        Member(request.writer, request.node_id, before.scope.globs, former),
        root,
        said.cluster.without(before.state.cluster.removed),
        old.cluster_id,
    )
    seen.vt = max(seen.vt, said.vt)
    distrusted = (old.writer,) if distrusts_log else ()
    node = replace(old, node_id=request.node_id, writer=request.writer, copying=None)

    def decide(snapshot: Snapshot) -> Iterator[dict[Path, Register]]:
        return _carried(database, snapshot, seen, node.writer, distrusted)

    attempt(lambda: take_over(database, seen, trees, root, node, decide, distrusted), "This node")
    write_mark(database, node.writer)
    trees.let_go()
    note_peers(database, admission, address, node.node_id)
    return node


def take_over(
    database: Database,
    seen: SeenCluster,
    trees: TreeCopier,
    root: Hash,
    node: NodeRecord,
    decide: Callable[[Snapshot], Iterable[dict[Path, Register]]],
    distrusted: tuple[int, ...] = (),
) -> None:
    """One transaction: the node is what the cluster is, and has what it brings.

    Args:
        database: of this node.
        seen: what the member holds.
        trees: has copied its trees.
        root: of the version that the member keeps for this node.
        node: who this node is from then on.
        decide: returns, page by page, the registers of what this node brings.
        distrusted: its old writer, if its log was put back.

    Raises:
        PreconditionFailed: something was changed here meanwhile.
    """
    snapshot = stamp(database, level=True)
    if not seen.scope.is_whole:
        seen.require_same_rest(snapshot.tree)
    outcome = _outcome(database, snapshot, seen, trees, root, node.writer, decide(snapshot))
    state = _state_after(database, snapshot, seen, outcome, node.writer, distrusted)
    held = _keep_losers(database, seen, snapshot, outcome)
    system = database.system()
    made = RegisterStore(system, MADE)
    with database.transaction(actor=ACTOR, message="join the cluster anew", checks_contents=False) as changes:
        changes.set_ref("HEAD", outcome.root, expected=snapshot.tree.version.root)
        changes.set_ref(STAMPED, outcome.root)
        if held is not None:
            changes.set_ref(LOSERS, held, expected=held)
        _put_documents(changes, snapshot, seen, made)
        planned = plan_all_references(
            snapshot.references, dict(made.below(REFERENCES)), seen.stable, seen.cluster
        )
        local = {one.root: _local(snapshot, trees, one.root) for one in planned if one.root is not None}
        put_references(changes, system, [(one, local.get(one.root or b"")) for one in planned])
        copy_registers(changes, system, MADE, OWN)
        forget_returning(changes, system)
        changes.put_system(NODE, msgspec.json.encode(node), condition=same_content(system.get(NODE)))
        put_state(changes, own_row(database, node, state), snapshot.entry)


def _state_after(
    database: Database,
    snapshot: Snapshot,
    seen: SeenCluster,
    outcome: _Outcome,
    writer: int,
    distrusted: tuple[int, ...],
) -> State:
    own = snapshot.state
    known = row_of_returned(seen.known, own.known, distrusted)
    vt = max(own.vt, seen.vt, *known.values(), outcome.vt)
    return replace(
        own,
        sequence=database.head().sequence,
        root=outcome.root,
        vt=vt,
        known={**known, writer: vt},
        cluster=seen.cluster,
        is_level=False,
        partial=None,
        partial_vt=0,
        pruned={},
        pruned_scoped={},
        has_documents=True,
    )


def _outcome(
    database: Database,
    snapshot: Snapshot,
    seen: SeenCluster,
    trees: TreeCopier,
    root: Hash,
    writer: int,
    pages: Iterable[dict[Path, Register]],
) -> _Outcome:
    """Keeps aside what comes of the registers that this node brings; commits page by page."""
    base = seen.tree.version.root
    with database.transaction(actor=ACTOR, message="begin to carry over") as changes:
        copy_registers(changes, database.system(), SEEN, MADE)
    outcome = _Outcome(trees.edit(root, _NOTHING, seen.contents.of, base=base))
    contents = contents_of(database, snapshot, seen)
    for carried in pages:
        times = (register.context.get(writer, 0) for register in carried.values())
        outcome.vt = max(outcome.vt, *times, 0)
        _carry_page(database, seen, trees, root, outcome, carried, contents)
    return outcome


def _carried(
    database: Database, snapshot: Snapshot, seen: SeenCluster, writer: int, distrusted: tuple[int, ...]
) -> Iterator[dict[Path, Register]]:
    """Decides for each of this node's registers."""
    horizons = Horizons(seen.cluster)
    theirs = seen.registers()
    for page in pages_of(snapshot.registers.items()):
        carried: dict[Path, Register] = {}
        histories = _Histories(database, [path for path, _ in page])
        for path, register in page:
            rule = rule_of(path)
            if rule is None:
                continue
            made = carry_over(
                theirs.get(path),
                seen.shown(path, theirs),
                register,
                writer=writer,
                known=seen.known,
                seen=snapshot.state.known,
                forgotten=horizons.of(path),
                stood=histories.of(path),
                distrusted=distrusted,
                rule=rule,
            )
            if made is not None:
                carried[path] = made
        yield carried


def _carry_page(
    database: Database,
    seen: SeenCluster,
    trees: TreeCopier,
    root: Hash,
    outcome: _Outcome,
    carried: dict[Path, Register],
    contents: Callable[[Path, Entry], Entry | StoredContent],
) -> None:
    if not carried:
        return
    store = seen.registers(MADE)
    tree = VersionTree(database.version_of(outcome.root))
    edits = apply(
        tree,
        [path for path in carried if is_of_user(path)],
        lambda path: carried.get(path) or store.get(path),
    )
    with database.transaction(actor=ACTOR, message="carry over") as changes:
        put_registers(changes, store, {**carried, **edits.restated})
    if edits.removed or edits.put:
        outcome.root = trees.edit(root, edits, contents)


def contents_of(
    database: Database, snapshot: Snapshot, seen: SeenCluster
) -> Callable[[Path, Entry], Entry | StoredContent]:
    """Returns what finds a content in what this node has by now, or had when the copy began."""
    here = Contents(database, snapshot.tree)

    def find(path: Path, value: Entry) -> Entry | StoredContent:
        return here.find(path, value) or seen.contents.of(path, value)

    return find


def _keep_losers(database: Database, seen: SeenCluster, snapshot: Snapshot, outcome: _Outcome) -> Hash | None:
    tree = VersionTree(database.version_of(outcome.root))
    contents = contents_of(database, snapshot, seen)
    needed: list[tuple[Path, Dot]] = []
    for page in pages_of(seen.registers(MADE).items()):
        lost: dict[tuple[Path, Dot], tuple[Entry, Entry | StoredContent | None]] = {}
        for path, register in page:
            if is_of_user(path):
                for dot, value in losers_of(register, value_of(tree.leaf(path))):
                    lost[path, dot] = value, contents(path, value)
        keep_losers(database, lost)
        needed += lost
    return holding_losers(database, needed)


def _put_documents(
    changes: Transaction, snapshot: Snapshot, seen: SeenCluster, registers: RegisterStore
) -> None:
    own = {path for path, _ in snapshot.documents.walk(None)}
    named = {path for path in seen.stable if path[:2] == SYSTEM} | {
        path for path, _ in registers.below(SYSTEM)
    }
    for path in sorted(own | named):
        value = value_at(seen.stable, registers, path) if path in named else None
        replace_document(changes, snapshot.documents, path, value if isinstance(value, Document) else None)


def _local(snapshot: Snapshot, trees: TreeCopier, root: Hash) -> Hash:
    local = trees.copied(root) or snapshot.references.local_root(root)
    return root if local is None else local


class _Histories:
    """What has stood at paths here: read when it is first asked for, of all paths of a page at once."""

    def __init__(self, database: Database, paths: Collection[Path]) -> None:
        self._database = database
        self._paths = paths
        self._found: dict[Path, list[Value]] | None = None

    def of(self, path: Path) -> Collection[Value]:
        """Returns what stood at a path."""
        return _Stood(self, path)

    def values(self, path: Path) -> list[Value]:
        """Returns what stood at a path, read by now."""
        if self._found is None:
            self._found = self._read()
        return self._found.get(path, [])

    def _read(self) -> dict[Path, list[Value]]:
        found: dict[Path, list[Value]] = {}
        for commit in self._database.commits():
            touched = {change.path for one in commit.transactions for change in one.changes}
            if commit.root == commit.parent_root:
                continue
            try:
                self._database.require_available(commit.root)
            except SvcError:
                continue
            version = self._database.version_of(commit.root)
            for path in self._paths:
                if is_of_user(path) and any(path[:depth] in touched for depth in range(len(path) + 1)):
                    found.setdefault(path, []).append(value_of(leaf_of(version.get(path))))
        return found


class _Stood(Collection[Value]):
    def __init__(self, histories: _Histories, path: Path) -> None:
        self._histories = histories
        self._path = path

    def __contains__(self, value: object) -> bool:
        return value in self._histories.values(self._path)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._histories.values(self._path))

    def __len__(self) -> int:
        return len(self._histories.values(self._path))
